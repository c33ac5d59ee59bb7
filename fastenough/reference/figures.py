# SPDX-License-Identifier: GPL-2.0-or-later
"""One reference system: its published figures, as typed rows.

The file is CSV after lines ``# name: value`` with the source and the values that all rows share.  The name of a column
of times ends in its unit (``min_us``, ``min_ns``); columns without any value are omitted.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

_NS = {"_ns": 1, "_us": 1000}
_SHARED = ("board", "configuration", "kernel", "load")
_BEYOND = ">"
_TEXTS = (
    "probe",
    "board",
    "configuration",
    "kernel",
    "implementation",
    "variant",
    "load",
    "command",
    "duration",
    "transfer",
    "size",
    "text",
    "location",
)


@dataclass(frozen=True)
class Figure:
    """One published measurement; None or an empty text: not stated by the source.

    ``exceeds_range``: the maximum exceeds ``maximum_ns``, the end of the range of its source.  ``printed_95_khz`` and
    ``printed_100_khz``: the highest frequency as the source prints it.  ``text``: text in place of a number.
    ``kernel``: stock, rt or xenomai, whatever the source calls its configuration.  ``location``: table
    or figure in the source.
    """

    probe: str
    board: str
    configuration: str
    kernel: str
    implementation: str
    variant: str
    load: str
    command: str
    n: int | None
    duration: str
    minimum_ns: float | None
    mean_ns: float | None
    median_ns: float | None
    p95_ns: float | None
    maximum_ns: float | None
    exceeds_range: bool
    printed_95_khz: float | None
    printed_100_khz: float | None
    transfer: str
    size: str
    speed_mb_s: float | None
    text: str
    location: str

    @property
    def keywords(self) -> frozenset[str]:
        """Words that select this figure (see :meth:`Reference.matching`)."""
        named = (
            self.probe,
            self.configuration,
            self.implementation,
            self.load,
            self.variant,
            self.transfer,
            self.size,
            self.location,
        )
        return frozenset(" ".join(named).replace(",", "").split())


@dataclass(frozen=True)
class Reference:
    """A system and its published figures, with where they come from and how they were measured."""

    name: str
    title: str
    source: str
    machine: str
    conditions: str
    instrument: str
    notes: tuple[str, ...]
    figures: tuple[Figure, ...]

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes it has figures of, in the order of the source."""
        return tuple(dict.fromkeys(figure.probe for figure in self.figures))

    def of(self, probe: str) -> tuple[Figure, ...]:
        """The figures of one probe."""
        return tuple(figure for figure in self.figures if figure.probe == probe)

    def matching(self, text: str) -> tuple[Figure, ...]:
        """The figures that have every word of the text among their keywords."""
        return tuple(figure for figure in self.figures if set(text.split()) <= figure.keywords)


def _time_ns(row: Mapping[str, str], name: str) -> float | None:
    """A time exactly as printed, in ns; a median of a jitter is signed."""
    for ending, ns in _NS.items():
        printed = row.get(name + ending, "").removeprefix(_BEYOND)
        if printed:
            return float(Decimal(printed) * ns)
    return None


def _number(row: Mapping[str, str], name: str) -> float | None:
    return float(row[name]) if row.get(name) else None


def _figure(row: Mapping[str, str]) -> Figure:
    text = {name: row.get(name, "") for name in _TEXTS}
    return Figure(
        **text,
        n=int(row["n"]) if row.get("n") else None,
        minimum_ns=_time_ns(row, "min"),
        mean_ns=_time_ns(row, "mean"),
        median_ns=_time_ns(row, "median"),
        p95_ns=_time_ns(row, "p95"),
        maximum_ns=_time_ns(row, "max"),
        exceeds_range=row.get("max_us", "").startswith(_BEYOND),
        printed_95_khz=_number(row, "freq95_khz"),
        printed_100_khz=_number(row, "freq100_khz"),
        speed_mb_s=_number(row, "speed_mb_s"),
    )


def read_reference(name: str, text: str) -> Reference:
    """The reference in a file's text."""
    lines = text.splitlines()
    comments = [line[1:].partition(":") for line in lines if line.startswith("#")]
    head = {key.strip(): value.strip() for key, _, value in comments}
    shared = {key: head[key] for key in _SHARED if key in head}
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return Reference(
        name,
        head["title"],
        head["source"],
        head["machine"],
        head["conditions"],
        head["instrument"],
        tuple(value.strip() for key, _, value in comments if key.strip() == "note"),
        tuple(_figure(shared | row) for row in rows),
    )
