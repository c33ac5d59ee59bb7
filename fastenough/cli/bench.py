# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bench``: the virtual bench, up, status and down."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click

from fastenough.cli.live import Work
from fastenough.virtual.keeper import BenchState, bench_directory, bench_state, down, keeper_pid, up
from fastenough.virtual.kernels import KERNELS

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _print(state: BenchState | None, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"running": state is not None} | (asdict(state) if state else {})))
    elif state is None:
        booting = keeper_pid(bench_directory()) is not None
        print("a virtual bench is on its way up" if booting else "no virtual bench is running")
    else:
        how = "restored" if state.restored else "booted"
        print(f"virtual bench: kernel {state.kernel} ({state.release}), {how} in {state.boot_s:.1f} s, emulated")
        print(f"  board    virtual:{state.kernel}")
        print(f"  gauge    {state.gauge or state.gauge_reason}")
        print(f"  console  {state.directory}/console.sock")
        print(f"  keeper   process {state.pid}, QEMU process {state.qemu_pid}")


@click.group()
def command() -> None:
    """The virtual bench: a board, its pins and the gauge, with no hardware."""


@command.command("up")
@click.option("--kernel", type=click.Choice(list(KERNELS)), default="stock", show_default=True,
              help="Which of Debian's kernels to boot.")
@click.option("--snapshot/--cold", default=True, show_default=True, help="Restore a snapshot where there is one.")
@_json
def up_command(kernel: str, snapshot: bool, as_json: bool) -> None:
    """Fetch, build, boot and wire a virtual bench; it stays up in the background."""
    with Work("bringing the virtual bench up") as work:
        def downloading(folder: Path, size_bytes: int) -> None:
            work.step(f"downloading kernel {kernel}, {size_bytes / 1e6:.0f} MB, then bringing the virtual bench up",
                      share=lambda: _held(folder) / size_bytes if _held(folder) < size_bytes else 0.0)

        state = up(kernel, snapshot, downloading)
    _print(state, as_json)


def _held(folder: Path) -> int:
    """Bytes of what lies in a folder that fills."""
    with suppress(OSError):
        return sum(file.stat().st_size for file in folder.iterdir())
    return 0


@command.command("status")
@_json
def status_command(as_json: bool) -> None:
    """Say what runs."""
    _print(bench_state(), as_json)


@command.command("down")
@_json
def down_command(as_json: bool) -> None:
    """End the virtual bench; nothing is left, also after a crash."""
    was_there = down()
    if as_json:
        print(json.dumps({"ended": was_there}))
    else:
        print("the virtual bench is down" if was_there else "no virtual bench was running")
