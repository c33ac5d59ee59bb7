# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual board: a kernel of Debian's or the user's, booted in QEMU for the measurement, or the running guest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial

from fastenough.board.base import AS_BOOTED, Booted, Wires, configuration_of, require_configuration
from fastenough.link import Link
from fastenough.model import EMULATED, NotApplicable
from fastenough.virtual.bench_process import open_virtual
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.custom_kernels import find_kernel, registered_names
from fastenough.virtual.kernels import KERNELS, Kernel
from fastenough.virtual.module import SOURCES, build_module
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE, install

_MODULES = {
    "fastenough": SOURCES,
    "fastenough_inject": SOURCES / "inject",
    "fastenough_rtdm": SOURCES / "rtdm",
    "fastenough_rtdm_gpio": SOURCES / "xenomai",
    "fastenough_oob": SOURCES / "oob",
    "fastenough_oob_gpio": SOURCES / "evl",
}


class KernelNames(tuple[str, ...]):
    """Names of kernels; a name followed by kernel arguments is contained too."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        kernel, blank, _ = str(name).partition(" ")
        return super().__contains__(kernel) and not (blank and kernel == AS_BOOTED)


def kernel_names() -> KernelNames:
    """All kernels that a guest can boot, and ``as-booted``."""
    return KernelNames((AS_BOOTED, *KERNELS, *registered_names()))


@dataclass(frozen=True)
class GuestBoard:
    """The virtual board; ``which``: name of its only kernel, empty for any.

    ``as-booted`` is the guest of ``fastenough bench up``; the name of a kernel boots a new guest, with the rest of the
    name as kernel arguments: ``rt skew_tick=1``.
    """

    which: str = ""

    @property
    def name(self) -> str:
        return f"virtual:{self.which}" if self.which else "virtual"

    def configurations(self) -> tuple[str, ...]:
        return KernelNames((AS_BOOTED, self.which)) if self.which else kernel_names()

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        require_configuration(self, configuration)
        with _running_guest(self.which) if configuration == AS_BOOTED else _new_guest(configuration) as booted:
            yield booted


@contextmanager
def _running_guest(which: str) -> Iterator[Booted]:
    with closing(open_virtual(which)) as link:
        kernel = find_kernel(link.name.partition(":")[2])
        yield Booted(
            link,
            configuration_of(link, kernel.name),
            PROBE,
            (EMULATED,),
            _wires(kernel),
            module=cache(partial(_module, link, kernel)),
        )


@contextmanager
def _new_guest(configuration: str) -> Iterator[Booted]:
    kernel, _, arguments = configuration.partition(" ")
    with VirtualBoard(kernel, arguments=arguments) as board:
        yield Booted(
            board.link,
            configuration_of(board.link, configuration),
            install(board.link),
            (EMULATED,),
            _wires(board.kernel),
            board.qemu.last_words,
            cache(partial(_module, board.link, board.kernel)),
            board.wire_gauge,
        )


def _wires(kernel: Kernel) -> Wires:
    return Wires(kernel.machine.pins.chip, INPUT_LINE, OUTPUT_LINE)


def _module(link: Link, kernel: Kernel, name: str) -> str:
    """Build a module on the bench and copy it into the guest's memory; return its path there."""
    if name not in _MODULES:
        raise NotApplicable(f"unknown kernel module {name}; use one of {', '.join(_MODULES)}")
    path = f"/tmp/{name}.ko"
    link.write(path, build_module(kernel, _MODULES[name]).read_bytes())
    return path


def open_board(which: str) -> GuestBoard:
    """Return the board of a kernel's name, or of any kernel if empty; raise BadInput for an unknown kernel."""
    if which:
        require_configuration(GuestBoard(), which)
    return GuestBoard(which)
