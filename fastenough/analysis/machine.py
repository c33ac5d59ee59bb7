# SPDX-License-Identifier: GPL-2.0-or-later
"""What the machine did while it was measured: steal, SMIs, faults, throttling, clock steps."""

from __future__ import annotations

from fastenough.recording import Recording

COUNTERS = {
    "steal_ns": "time taken by the hypervisor",
    "smi": "system management interrupts",
    "clock_step_ns": "steps of the wall clock",
    "clock_sets": "settings of the wall clock",
    "throttled": "RT throttling stopped real-time tasks",
    "major_faults": "major page faults",
    "minor_faults": "minor page faults",
    "migrations": "moves between CPUs",
    "involuntary_switches": "involuntary context switches",
    "voluntary_switches": "voluntary context switches",
}
"""Counter name to what it counts; in the order of printing."""


def counter_total(recording: Recording, name: str) -> int | None:
    """A counter over the whole run: from the end, or from the intervals of a cut-off run; None: could not be read."""
    if recording.end is not None:
        value = recording.end["counters"].get(name)
        return None if value is None else int(value)
    values: list[int] = [interval.counters[name] for interval in recording.intervals
                         if interval.counters.get(name) is not None]
    return sum(values) if values and len(values) == len(recording.intervals) else None


def events_of(recording: Recording, kind: str) -> int:
    """How many events of one kind were recorded."""
    return sum(event["kind"] == kind for event in recording.events)
