# SPDX-License-Identifier: GPL-2.0-or-later
"""The deterministic board: each run boots a guest whose clock counts instructions and that meets no event from outside.

``deterministic:KERNEL ARGUMENTS``; its configurations are kernels with their arguments, as those of a virtual board.
``cost-model=cache`` among the arguments is for the board, not for the kernel.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from fastenough.board.base import AS_BOOTED, DETERMINISTIC_KERNEL, Booted, configuration_of, require_configuration
from fastenough.board.virtual import kernel_names
from fastenough.facts import FACTS
from fastenough.loads.guest import GuestLoad
from fastenough.model import EMULATED
from fastenough.virtual.board import make_own_directory
from fastenough.virtual.cost_model import require_interface, split_cost_model
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import DeterministicGuest, emulator_of
from fastenough.virtual.deterministic_link import DeterministicLink
from fastenough.virtual.probe import PROBE


@dataclass(frozen=True)
class DeterministicBoard:
    """The deterministic board; ``which``: its only configuration, empty for any.

    ``as-booted`` is that configuration, or else the kernel ``stock``.
    """

    which: str = ""

    @property
    def name(self) -> str:
        return f"deterministic:{self.which}" if self.which else "deterministic"

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED, self.which) if self.which else kernel_names()

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        """Boot a guest for its profile; each run then boots one of its own."""
        require_configuration(self, configuration)
        booted = (self.which or DETERMINISTIC_KERNEL) if configuration == AS_BOOTED else configuration
        name, _, words = booted.partition(" ")
        arguments, cost_model = split_cost_model(words)
        kernel = find_kernel(name)
        measured = DeterministicGuest(kernel, arguments, cost_model)
        if cost_model is not None:
            require_interface(emulator_of(kernel.machine)["version"])
        directory = make_own_directory()
        try:
            link = DeterministicLink(DeterministicGuest(kernel, arguments), self.name, measured, directory)
            link.survey(_FILES, _COMMANDS)
            yield Booted(
                link,
                configuration_of(link, booted),
                PROBE,
                (EMULATED,),
                start_load=partial(GuestLoad, link),
                interrupt=link.interrupt,
                set_phase=link.set_phase,
                watch=link.watch,
                costs=link.costs,
            )
        finally:
            shutil.rmtree(directory, ignore_errors=True)


_FILES = sorted({pattern for fact in FACTS for pattern in (*fact.files, *fact.binary_files)})
_COMMANDS = sorted({command for fact in FACTS for command in fact.commands})


def open_board(which: str) -> DeterministicBoard:
    """Return the board of a configuration, or of any if empty; raise BadInput for an unknown kernel or cost model."""
    if which:
        require_configuration(DeterministicBoard(), which)
        split_cost_model(which.partition(" ")[2])
    return DeterministicBoard(which)
