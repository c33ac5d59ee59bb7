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
from fastenough.virtual.own import OwnFiles, own_names

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*KERNELS, *own_names()) if name.startswith(incomplete)]


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
@click.option(
    "--kernel",
    shell_complete=_names,
    metavar="NAME",
    help=f"Which kernel to boot: one of Debian's ({', '.join(KERNELS)}; stock unless said), or one of yours. "
    "With --image: what yours is called from now on (own unless said).",
)
@click.option("--image", type=_FILE, help="A kernel that you built: Image or Image.gz of arm64, bzImage of x86-64.")
@click.option("--modules", type=_FOLDER, help="Its modules: where make modules_install put them.")
@click.option("--headers", type=_FOLDER, help="The folder in which it was built, to build fastenough's module.")
@click.option("--root", type=_FOLDER, help="Files that its guest has besides, such as libraries.")
@click.option("--snapshot/--cold", default=True, show_default=True, help="Restore a snapshot where there is one.")
@_json
def up_command(
    *,
    kernel: str | None,
    image: Path | None,
    modules: Path | None,
    headers: Path | None,
    root: Path | None,
    snapshot: bool,
    as_json: bool,
) -> None:
    """Fetch, build, boot and wire a virtual bench; it stays up in the background."""
    if image is None and (modules or headers or root):
        raise click.UsageError("--modules, --headers and --root belong to a kernel of your own: name its --image too")
    own = None if image is None else OwnFiles(image, modules, headers, root)
    kernel = kernel or ("stock" if own is None else "own")
    with Work("bringing the virtual bench up") as work:

        def downloading(folder: Path, size_bytes: int) -> None:
            work.step(
                f"downloading kernel {kernel}, {size_bytes / 1e6:.0f} MB, then bringing the virtual bench up",
                share=lambda: _held(folder) / size_bytes if _held(folder) < size_bytes else 0.0,
            )

        state = up(kernel, snapshot, downloading, own)
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
