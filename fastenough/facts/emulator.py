# SPDX-License-Identifier: GPL-2.0-or-later
"""The program that emulates the board and counts its instructions; only deterministic boards have one."""

from __future__ import annotations

from fastenough.facts.fact import Absent, Fact, Inputs

_FILE = "/etc/fastenough-emulator"


def _emulator(inputs: Inputs) -> dict[str, str]:
    """``program``, ``version`` as it prints it, ``sha256`` of its file, and ``cost_model`` if it has one."""
    if inputs.get(_FILE) is None:
        raise Absent("the clock of the board does not count instructions")
    lines = (line.partition(": ") for line in inputs.text(_FILE).splitlines())
    stated = {name: value for name, _, value in lines}
    model = {name: text for name, text in stated.items() if name == "cost_model"}
    return {name: stated[name] for name in ("program", "version", "sha256")} | model


FACTS = (Fact("emulator", _emulator, files=(_FILE,)),)
