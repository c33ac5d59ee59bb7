# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual board: a kernel of Debian's or the user's, booted in QEMU for the purpose, or the bench that is up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial

from fastenough.board.base import AS_BOOTED, Booted, Wires, configuration_of, require_configuration
from fastenough.link import Link
from fastenough.model import EMULATED, NotApplicable
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.custom_kernels import find_kernel, registered_names
from fastenough.virtual.keeper import open_virtual
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


class _Kernels(tuple[str, ...]):
    """Names of kernels; one with arguments behind it is among them."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        kernel, blank, _ = str(name).partition(" ")
        return super().__contains__(kernel) and not (blank and kernel == AS_BOOTED)


@dataclass(frozen=True)
class GuestBoard:
    """``which`` is the one kernel that is meant, empty where any is.

    ``as-booted`` is the guest of ``fastenough bench up``; the name of a kernel boots a guest of its own,
    with what stands behind it as the kernel's arguments: ``rt skew_tick=1``.
    """

    which: str = ""

    @property
    def name(self) -> str:
        return f"virtual:{self.which}" if self.which else "virtual"

    def configurations(self) -> tuple[str, ...]:
        return _Kernels((AS_BOOTED, *((self.which,) if self.which else (*KERNELS, *registered_names()))))

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        require_configuration(self, configuration)
        with _running(self.which) if configuration == AS_BOOTED else _own_guest(configuration) as booted:
            yield booted


@contextmanager
def _running(which: str) -> Iterator[Booted]:
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
def _own_guest(configuration: str) -> Iterator[Booted]:
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
    """Built on the bench, and put where nothing is kept."""
    if name not in _MODULES:
        raise NotApplicable(f"unknown kernel module {name}; use one of {', '.join(_MODULES)}")
    path = f"/tmp/{name}.ko"
    link.write(path, build_module(kernel, _MODULES[name]).read_bytes())
    return path


def open_board(which: str) -> GuestBoard:
    """A kernel's name, or nothing; raises BadInput for a kernel that there is not."""
    if which:
        require_configuration(GuestBoard(), which)
    return GuestBoard(which)
