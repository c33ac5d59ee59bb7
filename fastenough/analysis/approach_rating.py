# SPDX-License-Identifier: GPL-2.0-or-later
"""Rate an approach at a limit (good, marginal, awful, undecided) by verdicts or by published figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fastenough import words
from fastenough.analysis.assessment import Assessment
from fastenough.analysis.differences import run_values
from fastenough.analysis.keys import KERNEL, MACHINE, RUN_KEYS, SETUP_KEYS, UnknownValue, without_build_id
from fastenough.analysis.merged import by_system, load_name
from fastenough.implementations import IMPLEMENTATIONS, TaskKind
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.head import Head

MARGINAL_TIMES = 2.0
"""Largest factor of the limit that counts as marginal; beyond it is awful.  In the paper the step after "marginal",
PREEMPT_RT, halves the 95 % quantile of the same task (307 to 157 µs), so it does not help beyond a factor of 2."""

OFF_THE_MAP_TIMES = 20.0
"""Factor of the limit beyond which an approach is off the map.  In the paper all steps of the chart together reduce the
95 % quantile from 307 to 16 µs, a factor of 19, so no step helps beyond it."""


class Grade(StrEnum):
    """Grade of an approach at the limit."""

    GOOD = "good"
    MARGINAL = "not good: marginal"
    AWFUL = "not good: awful"
    OFF_THE_MAP = "not good: off the map"
    NOT_GOOD = "not good, degree undecided"
    UNDECIDED = "undecided"
    NO_DATA = "not measured"


@dataclass(frozen=True)
class ApproachRating:
    """Grade of an approach, its reasons, next steps and runs.  ``verdict``: at the limit itself."""

    grade: Grade
    reasons: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    verdict: Verdict | None = None


NOT_MEASURED = ApproachRating(Grade.NO_DATA)


# --- ratings by verdicts


def kernel_of(head: Head) -> str:
    """Kind of kernel (stock, rt, xenomai), from the profile of the board or else the name of the configuration."""
    implementation = IMPLEMENTATIONS.get(head.implementation)
    if implementation is not None and implementation.kind in {TaskKind.CORE_USER, TaskKind.CORE_KERNEL}:
        return "xenomai"
    kernel: Any = (head.profile or {}).get("kernel")
    options: Any = (head.profile or {}).get("kernel_config")
    chosen = options.get("of_interest") if isinstance(options, dict) else None
    if isinstance(chosen, dict) and {"CONFIG_XENOMAI", "CONFIG_EVL"} & chosen.keys():
        return "xenomai"
    if isinstance(kernel, dict) and kernel.get("preemption"):
        return "rt" if kernel["preemption"] == "preempt-rt" else "stock"
    name = "" if head.configuration is None else head.configuration.name.lower()
    if re.search(r"xenomai|\bevl\b", name):
        return "xenomai"
    if re.search(r"\brt\b|preempt[-_ ]rt", name):
        return "rt"
    return "stock" if re.search(r"\bstock\b", name) else "an unknown kernel"


def setups(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Group runs that differ only in their load: one candidate per group.

    Unknown values do not separate groups.
    """
    keys = [key for key in SETUP_KEYS if key.name != MACHINE]
    groups: dict[str, list[Recording]] = {}
    for recording in recordings:
        values = run_values(recording)
        values[KERNEL] = without_build_id(values[KERNEL])
        key = [None if isinstance(value := values[key.name], UnknownValue) else value for key in keys]
        groups.setdefault(repr(key), []).append(recording)
    return [setup for members in groups.values() for setup in by_system(members)]


def best(ratings: Iterable[ApproachRating]) -> ApproachRating:
    """The best rating among setups of an approach; an undecided one ranks after a good one."""
    return min(ratings, key=lambda rating: _BEST_FIRST.index(rating.grade), default=NOT_MEASURED)


_BEST_FIRST = (
    Grade.GOOD,
    Grade.UNDECIDED,
    Grade.MARGINAL,
    Grade.NOT_GOOD,
    Grade.AWFUL,
    Grade.OFF_THE_MAP,
    Grade.NO_DATA,
)


def rate(
    recordings: Sequence[Recording],
    judged: Callable[[Requirement], Assessment],
    requirement: Requirement,
    times: float = MARGINAL_TIMES,
) -> ApproachRating:
    """Rate the runs of one setup.  ``judged``: their verdict on a requirement.

    The confidence of the requirement is that of one setup; callers that select the best of many must correct it.
    """
    runs = tuple(recording.run_id for recording in recordings)
    assessment = judged(requirement)
    if assessment.verdict is not Verdict.FAIL:
        idle = {load_name(recording) for recording in recordings} == {"none"}
        if assessment.verdict is Verdict.PASS and not idle:
            return ApproachRating(Grade.GOOD, assessment.reasons, (), runs, assessment.verdict)
        reasons = (*assessment.reasons, *(("measured without load only",) if idle else ()))
        next_steps = (
            *assessment.next_steps,
            *(("measure it under the load of the application (--load)",) if idle else ()),
        )
        return ApproachRating(Grade.UNDECIDED, reasons, next_steps, runs, assessment.verdict)
    longer = replace(requirement, limit_ns=round(requirement.limit_ns * times))
    beyond = judged(longer)
    grade = {Verdict.PASS: Grade.MARGINAL, Verdict.FAIL: Grade.AWFUL}.get(beyond.verdict, Grade.NOT_GOOD)
    if grade is Grade.AWFUL:
        farthest = replace(requirement, limit_ns=round(requirement.limit_ns * max(times, OFF_THE_MAP_TIMES)))
        far = judged(farthest)
        if far.verdict is Verdict.FAIL:
            grade, longer, beyond = Grade.OFF_THE_MAP, farthest, far
    reason_at_longer = (
        () if grade is Grade.NOT_GOOD else (f"at {words.exact_time(longer.limit_ns)}: {beyond.reasons[0]}",)
    )
    return ApproachRating(
        grade,
        (*assessment.reasons, *reason_at_longer),
        beyond.next_steps if grade is Grade.NOT_GOOD else (),
        runs,
        assessment.verdict,
    )


# --- configurations of a board

_BOOTED = (
    "machine",
    "configuration",
    "kernel",
    "kernel configuration",
    "command line",
    "firmware",
    "device tree",
    "processor",
    "microcode",
)


def same_configuration(first: Head, second: Head) -> bool:
    """Whether two recordings are of the same machine, booted with the same kernel, command line and firmware.

    Run-time settings do not count.  Unknown values are no difference.
    """
    keys = [key for key in RUN_KEYS if key.name in _BOOTED]
    pairs = [(key, key.of(first, None), key.of(second, None)) for key in keys]
    return all(
        first_value is None
        or second_value is None
        or isinstance(first_value, UnknownValue)
        or isinstance(second_value, UnknownValue)
        or key.agree(first_value, second_value)
        for key, first_value, second_value in pairs
    )


# --- ratings by published figures


@dataclass(frozen=True)
class PublishedFigure:
    """Published 95 % quantile and maximum, taken as exact; None: not published.  ``name``: text for reports.

    ``beyond``: the maximum exceeded the range of the source.
    """

    name: str
    p95_ns: float | None
    maximum_ns: float | None
    beyond: bool = False


PUBLISHED_MISS_RATE = 0.05


def rate_published(
    figures: Sequence[PublishedFigure], requirement: Requirement, times: float = MARGINAL_TIMES
) -> ApproachRating:
    """Rate an approach by the worst of its published figures, without bounds."""
    limits = [requirement.limit_ns * factor for factor in (1, times, max(times, OFF_THE_MAP_TIMES))]
    keeps = [[_keeps(figure, limit_ns, requirement.miss_rate) for figure in figures] for limit_ns in limits]
    reasons = tuple(
        f"{figure.name}: 95 % at {words.latency(figure.p95_ns)}, 100 % at {words.latency(figure.maximum_ns)}, "
        "published values taken as exact"
        for figure in figures
    )
    if all(keeps[0]):
        return ApproachRating(Grade.GOOD, reasons)
    if False not in keeps[0]:
        return ApproachRating(Grade.UNDECIDED, reasons, ("the source has no value for this miss rate",))
    if all(keeps[1]):
        return ApproachRating(Grade.MARGINAL, reasons)
    if False in keeps[2]:
        return ApproachRating(Grade.OFF_THE_MAP, reasons)
    return ApproachRating(Grade.AWFUL if False in keeps[1] else Grade.NOT_GOOD, reasons)


def _keeps(figure: PublishedFigure, limit_ns: float, miss_rate: float) -> bool | None:
    """Whether at most the allowed rate exceeds the limit; None if the figures do not show it."""
    within_all = figure.maximum_ns is not None and figure.maximum_ns <= limit_ns
    if within_all and not figure.beyond:
        return True
    if miss_rate == 0:
        return None if within_all or figure.maximum_ns is None else False
    if figure.p95_ns is None:
        return None
    within = figure.p95_ns <= limit_ns
    return within if miss_rate == PUBLISHED_MISS_RATE or within == (miss_rate > PUBLISHED_MISS_RATE) else None
