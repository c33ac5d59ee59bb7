# SPDX-License-Identifier: GPL-2.0-or-later
"""The frequency of the tick."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, build, costs, fine

_ENOUGH_HZ = 1000


def _look(facts: Facts) -> Seen:
    hz = int(facts.option("HZ"))
    if hz >= _ENOUGH_HZ:
        return fine(f"{hz} Hz")
    return costs(
        f"{hz} Hz: what is counted in ticks moves in steps of {1000 / hz:g} ms",
        build("CONFIG_HZ_1000=y", "CONFIG_HZ=1000"),
    )


CHECK = Check(
    "tick-frequency",
    "tick frequency",
    Group.TIMERS,
    Severity.LOW,
    _look,
    why="Drivers' time-outs, RCU and the time slices of ordinary tasks are counted in ticks. Timers of real-time tasks "
    "are not, where there are high-resolution timers.",
    source="Enea, appendix A, step 1 (CONFIG_HZ=1000); kernel: kernel/Kconfig.hz",
    elsewhere="power and some CPU time: more interrupts of a busy CPU",
)
