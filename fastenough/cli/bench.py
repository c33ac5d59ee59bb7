# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bench``: the virtual bench, up, status and down."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click

from fastenough.cli.bench_kernel import command as kernel_command
from fastenough.cli.commands import Group
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json
from fastenough.cli.progress import Work
from fastenough.virtual.bench_process import BenchState, bench_directory, bench_pid, bench_state, down, up
from fastenough.virtual.custom_kernels import KernelFiles, registered_names
from fastenough.virtual.kernels import KERNELS

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def _names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*KERNELS, *registered_names()) if name.startswith(incomplete)]


def _print(state: BenchState | None, as_json: bool) -> None:
    if as_json:
        print_json({"running": state is not None} | (asdict(state) if state else {}))
    elif state is None:
        booting = bench_pid(bench_directory()) is not None
        print("a virtual bench is starting" if booting else "no virtual bench is running")
    else:
        how = "restored" if state.restored else "booted"
        print(f"virtual bench: kernel {state.kernel} ({state.release}), {how} in {state.boot_s:.1f} s, emulated")
        print(f"  board    virtual:{state.kernel}")
        print(f"  gauge    {state.gauge or state.gauge_reason}")
        print(f"  console  {state.directory}/console.sock")
        print(f"  process  {state.pid}, QEMU process {state.qemu_pid}")


@click.group(cls=Group)
def command() -> None:
    """Start and stop the virtual bench.

    The virtual bench is a board with pins and a gauge, without hardware (docs/virtual-bench.md).
    """


command.add_command(kernel_command)


@command.command("up", example="fastenough bench up --kernel rt")
@click.option(
    "--kernel",
    shell_complete=_names,
    metavar="NAME",
    help=f"Kernel to boot: one of Debian's ({', '.join(KERNELS)}; default stock), or one of yours. "
    "With --image: name to store it under (default own).",
)
@click.option("--image", type=_FILE, help="Kernel that you built: Image or Image.gz of arm64, bzImage of x86-64.")
@click.option("--modules", type=_FOLDER, help="With --image: its modules, the directory of make modules_install.")
@click.option("--headers", type=_FOLDER, help="With --image: its build directory, to build fastenough's module for it.")
@click.option("--root", type=_FOLDER, help="Additional files for the guest, such as libraries.")
@click.option(
    "--snapshot/--cold",
    default=True,
    show_default=True,
    help="Restore the guest from a snapshot if there is one, or boot it.",
)
@json_option
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
    """Start a virtual bench.

    Downloads, builds, boots and connects it; it runs in the background.
    """
    if image is None and (modules or headers or root):
        raise click.UsageError("--modules, --headers and --root require --image")
    own = None if image is None else KernelFiles(image, modules, headers, root)
    kernel = kernel or ("stock" if own is None else "own")
    with Work("starting the virtual bench") as work:

        def downloading(folder: Path, size_bytes: int) -> None:
            work.step(
                f"downloading kernel {kernel}, {size_bytes / 1e6:.0f} MB, then starting the virtual bench",
                share=lambda: _folder_bytes(folder) / size_bytes if _folder_bytes(folder) < size_bytes else 0.0,
            )

        state = up(kernel, snapshot, downloading, own)
    _print(state, as_json)


def _folder_bytes(folder: Path) -> int:
    """Bytes of the files in a folder."""
    with suppress(OSError):
        return sum(file.stat().st_size for file in folder.iterdir())
    return 0


@command.command("status", example="fastenough bench status")
@json_option
def status_command(as_json: bool) -> None:
    """Show the state of the virtual bench.

    Prints its kernel, board, gauge and processes.
    """
    _print(bench_state(), as_json)


@command.command("down", example="fastenough bench down")
@json_option
def down_command(as_json: bool) -> None:
    """Stop the virtual bench.

    Removes all of its files and processes, also after a crash.
    """
    was_there = down()
    if as_json:
        print_json({"ended": was_there})
    else:
        print("the virtual bench is stopped" if was_there else "no virtual bench was running")
