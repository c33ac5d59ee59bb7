# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of the archive for the events of an interval: each wake-up once, with its cause as the monitor names it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from fastenough.fleet.archive import EventRow, archived_text
from fastenough.history.intervals import event_series, sources_of
from fastenough.history.schema import NO_CPU
from fastenough.recording import Event, Head
from fastenough.recording.culprits import UNKNOWN, Culprit
from fastenough.recording.wakeups import Wakeup, is_noise, station_place, wakeups

_KINDS = ("max", "threshold")
_MOST_NS = 2**62
_MOST_CPUS = 2**15
_MOST_CULPRIT = 4000
"""Length of a culprit in JSON; a longer one is omitted, but not its cause."""


def event_rows(board: str, run: str, head: Head, interval: int, events: Sequence[Event]) -> list[EventRow]:
    """The rows of the events before an interval, in the order of time.

    Several series may have their maximum in one wake-up, which is one row.  Series that the history does not store,
    such as intended delays, and the monitor's noise have none.
    """
    if not events:
        return []
    stored, counterpart = sources_of(head), event_series(head)
    names = {series.id: series.name for series in head.series}
    threshold_ns = _integer(head.parameters.get("threshold_ns"))
    rows = [
        EventRow(
            board,
            run,
            _cpu(wakeup.cpu),
            interval,
            0,
            wakeup.at.wall_ns,
            wakeup.at.mono_ns,
            archived_text(stored[counterpart[max(wakeup.series, key=lambda id: station_place(names[id]))]].name),
            min(round(wakeup.delay_ns), _MOST_NS),
            _text(wakeup.longest),
            _text(wakeup.culprit.get("task")),
            None if not wakeup.culprit or wakeup.cause == UNKNOWN else _text(wakeup.cause),
            threshold_ns,
            _json(wakeup.culprit),
        )
        for wakeup in _wakeups(
            head,
            [
                event
                for event in events
                if counterpart.get(_id(event), -1) in stored and abs(event.value or 0) < _MOST_NS
            ],
        )
    ]
    rows.sort(key=lambda row: (row.mono_ns, row.cpu, row.task or "", -row.latency_ns))
    return [replace(row, number=number) for number, row in enumerate(rows)]


def _wakeups(head: Head, events: Sequence[Event]) -> list[Wakeup]:
    """The wake-ups with a culprit, and those without one: of each CPU and instant the longest."""
    named = wakeups(head, [replace(event, culprit=_bounded(event.culprit)) for event in events if event.culprit])
    places = {(wakeup.cpu, wakeup.at.mono_ns) for wakeup in named}
    by_id = {series.id: series for series in head.series}
    others: dict[tuple[int | None, int], Wakeup] = {}
    for event in events:
        series = by_id[_id(event)]
        if event.culprit or event.kind not in _KINDS or event.value is None or is_noise(series.name):
            continue
        cpu = series.cpu if event.cpu is None else event.cpu
        place = cpu, event.at.mono_ns
        latency_ns = (abs(event.value) if series.two_sided else max(event.value, 0)) * series.unit_ns
        if place not in places and (place not in others or others[place].delay_ns < latency_ns):
            others[place] = Wakeup(
                head.run_id, event.at, event.at.mono_ns - head.begin.mono_ns, cpu, {}, latency_ns, {}, (series.id,)
            )
    return [replace(wakeup, delay_ns=abs(wakeup.delay_ns)) for wakeup in named] + list(others.values())


def _id(event: Event) -> int:
    return -1 if event.series is None else event.series


def _cpu(cpu: int | None) -> int:
    return cpu if cpu is not None and 0 <= cpu < _MOST_CPUS else NO_CPU


def _integer(value: object) -> int | None:
    """A positive integer of 64 bits; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_NS else None


def _bounded(culprit: Culprit | None) -> Culprit:
    """A culprit without integers that no measurement has."""
    return {
        name: value for name, value in (culprit or {}).items() if not isinstance(value, int) or abs(value) < _MOST_NS
    }


def _text(value: object) -> str | None:
    return archived_text(str(value)) or None if value is not None else None


def _json(culprit: Culprit) -> str | None:
    text = json.dumps(culprit, separators=(",", ":")) if culprit else ""
    return text if 0 < len(text) <= _MOST_CULPRIT else None
