# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the first of several configurations, in order, with which a board is too slow.

The search halves the range between a good and a bad configuration.  A criterion (criteria.py) decides which is which,
by confidence bounds, never by a maximum.  An undecided configuration is measured longer, up to a limit, and then left.
A configuration that cannot be installed, booted or measured is skipped.  The allowed error is divided among the others:
each is judged at 1 - (1 - confidence) / :func:`most_judged`, and evidence about one configuration is valid at each look
(docs/method.md, sequential evidence).  The conclusion therefore holds at the required confidence."""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from fastenough import words
from fastenough.analysis.differences import all_differences, run_values
from fastenough.analysis.keys import RUN_KEYS
from fastenough.analysis.machine import is_emulated
from fastenough.analysis.merged import judged_series
from fastenough.board import Board
from fastenough.board.configuration import Ask, ConfigurationChange
from fastenough.campaign import Plan, Progress, StopRequest, run_campaign
from fastenough.campaign.runner import with_configurations
from fastenough.farm.criteria import Criterion, CriterionResult, Rating
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.store import Store

Measure = Callable[[str, int], Sequence[Recording]]
"""Measures a configuration (its name) for a time in ns and returns the recordings; raises FastenoughError if the bench
fails.  A configuration that does not boot gives recordings with the reason."""

_STEPPED_ROUND = 3
"""Maximum number of undecided configurations that are replaced by a neighbour."""


@dataclass(frozen=True)
class BisectSetup:
    """``first_ns``: duration of the first measurement of a configuration under all loads; ``most_ns``: maximum of all
    its measurements.  Raises BadInput."""

    criterion: Criterion
    first_ns: int
    most_ns: int

    def __post_init__(self) -> None:
        if self.most_ns < self.first_ns:
            raise BadInput(
                f"--duration {words.duration(self.first_ns)} is longer than --longest "
                f"{words.duration(self.most_ns)}; use a shorter --duration or a longer --longest"
            )


@dataclass(frozen=True)
class BisectStep:
    """The rating of a configuration.  ``measurements``: number of its measurements; ``measured_ns``: their duration."""

    configuration: str
    rating: Rating
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...]
    measurements: int
    measured_ns: int
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Bisection:
    """``conclusion``: one sentence.  ``decided``: no other configuration is between last good and first bad one.

    ``undecided``, ``skipped``: configurations between these two.  ``differences``: those between them, the most
    relevant to latency first; ``confidence``: of all steps together.  ``emulated``: the result holds in emulation only
    and says nothing about speed.
    """

    conclusion: str
    decided: bool
    last_good: str | None
    first_bad: str | None
    undecided: tuple[str, ...]
    skipped: tuple[str, ...]
    steps: tuple[BisectStep, ...]
    differences: tuple[str, ...]
    confidence: float
    emulated: bool

    @property
    def measurements(self) -> int:
        return sum(step.measurements for step in self.steps)


def most_judged(configurations: int) -> int:
    """Maximum number of configurations that a search rates, out of this number."""
    return min(configurations, 2 + math.ceil(math.log2(max(1, configurations - 1))) + _STEPPED_ROUND)


@dataclass
class _Search:
    configurations: Sequence[str]
    measure: Measure
    question: BisectSetup
    tell: Callable[[BisectStep], None]

    def __post_init__(self) -> None:
        self._most = most_judged(len(self.configurations))
        self._confidence = 1 - (1 - self.question.criterion.confidence) / self._most
        self._last: dict[int, Recording] = {}
        self._first: Sequence[Recording] = ()
        self.steps: dict[int, BisectStep] = {}

    def rate(self, place: int) -> Rating:
        """Measure and rate the configuration at a place."""
        step, recordings = self._measured_step(self.configurations[place])
        self.steps[place] = step
        self._first = self._first or recordings
        measured = list(filter(judged_series, recordings))
        if measured:
            self._last[place] = measured[-1]
        self.tell(step)
        return step.rating

    def next_between(self, good: int, bad: int) -> int | None:
        """The unrated configuration nearest the middle; None if there is none or the maximum number was rated."""
        left = [place for place in range(good + 1, bad) if place not in self.steps]
        if sum(step.rating is not Rating.SKIPPED for step in self.steps.values()) >= self._most:
            return None
        return min(left, key=lambda place: abs(2 * place - good - bad), default=None)

    def result(self, good: int | None, bad: int | None, conclusion: str) -> Bisection:
        decided = good is not None and bad is not None and bad - good == 1
        ends = [self._last[place] for place in (good, bad) if place is not None and place in self._last]
        between = range(0 if good is None else good, len(self.configurations) if bad is None else bad)
        return Bisection(
            conclusion,
            decided,
            None if good is None else self.configurations[good],
            None if bad is None else self.configurations[bad],
            self._rated(between, Rating.UNDECIDED),
            self._rated(between, Rating.SKIPPED),
            tuple(self.steps.values()),
            all_differences(RUN_KEYS, *map(run_values, ends)) if len(ends) == 2 else (),
            self.question.criterion.confidence,
            any(map(is_emulated, self._last.values())),
        )

    def _rated(self, places: Iterable[int], rating: Rating) -> tuple[str, ...]:
        return tuple(
            self.configurations[place] for place in places if place in self.steps and self.steps[place].rating is rating
        )

    def _measured_step(self, configuration: str) -> tuple[BisectStep, list[Recording]]:
        """Measure and rate a configuration until it is decided; each look doubles the time, up to the limit."""
        question, recordings = self.question, list[Recording]()
        planned_ns = question.most_ns if question.criterion.against_first and not self._first else question.first_ns
        measured_ns = looks = 0
        while True:
            recordings += self.measure(configuration, planned_ns)
            measured_ns += planned_ns
            look = _skipped(recordings) or question.criterion.look(recordings, self._first, self._confidence, looks)
            looks += 1
            left_ns = question.most_ns - measured_ns
            if look.closed or left_ns <= 0:
                break
            planned_ns = min(left_ns, max(measured_ns, look.more_ns))
        runs = tuple(recording.run_id for recording in recordings)
        step = BisectStep(configuration, look.rating, look.reasons, look.next_steps, looks, measured_ns, runs)
        return step, recordings


def _skipped(recordings: Sequence[Recording]) -> CriterionResult | None:
    """The result for a configuration of which no run has data, with the reasons; None for any other."""
    if any(map(judged_series, recordings)):
        return None
    reasons = tuple(dict.fromkeys("; ".join(run.reasons) or f"run {run.run_id} contains no data" for run in recordings))
    return CriterionResult(Rating.SKIPPED, reasons or ("no run was made",))


def bisect(
    configurations: Sequence[str],
    measure: Measure,
    question: BisectSetup,
    tell: Callable[[BisectStep], None] = lambda step: None,
) -> Bisection:
    """Find the last good and the first bad configuration.  The first configuration must be good and the last bad; both
    are measured first to confirm it.  If good turns to bad more than once, one such place is found.

    ``tell`` is called with each step.  Raises BadInput for fewer than two configurations, or one named twice.
    """
    if len(configurations) < 2 or len(set(configurations)) < len(configurations):
        raise BadInput("give at least two different configurations, from the good one to the bad one")
    search = _Search(configurations, measure, question, tell)
    good, bad = 0, len(configurations) - 1
    for end, expected in ((good, Rating.GOOD), (bad, Rating.BAD)):
        rating = search.rate(end)
        if rating is not expected:
            return search.result(
                None if end == good else good, None, _end_conclusion(configurations[end], expected, rating)
            )
    while (middle := search.next_between(good, bad)) is not None:
        match search.rate(middle):
            case Rating.GOOD:
                good = middle
            case Rating.BAD:
                bad = middle
    return search.result(good, bad, _conclusion(configurations, good, bad))


def _end_conclusion(configuration: str, expected: Rating, rating: Rating) -> str:
    end = "first" if expected is Rating.GOOD else "last"
    return (
        f"the {end} configuration, {configuration}, is {rating}, but must be {expected}; choose another {end} "
        "configuration or another limit"
    )


def _conclusion(configurations: Sequence[str], good: int, bad: int) -> str:
    if bad - good == 1:
        return f"{configurations[bad]} is the first bad configuration; {configurations[good]} before it is good"
    return (
        f"first bad configuration not found: it lies after {configurations[good]} (good) and no later than "
        f"{configurations[bad]} (bad); {words.counted(bad - good - 1, 'configuration')} in between are undecided or "
        "skipped"
    )


class BisectInterrupted(Exception):
    """A signal ended the search; ``signal``: its number."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"interrupted by signal {signal}")
        self.signal = signal


def with_install_command(plan: Plan, configurations: Sequence[str], install: Sequence[str], kernel: str = "") -> Plan:
    """The plan with these configurations, each installed on the board by a command in which ``{}`` stands for its name.

    Without a command, the board or a person boots them.  The command runs without a shell, so a name is one word.
    ``kernel``: pattern of the kernel release after installation, with ``{}`` for the name; empty: the release must
    change.  Raises BadInput for a command without ``{}``.
    """
    if install and "{}" not in install:
        raise BadInput(
            "--install does not contain {}, the placeholder of the configuration; write it as a word, such as "
            "--install 'install-kernel {}'"
        )
    if kernel and not install:
        raise BadInput("--kernel requires --install; remove --kernel or add --install")
    changes = {
        name: ConfigurationChange(
            tuple(name if word == "{}" else word for word in install), kernel.replace("{}", glob.escape(name))
        )
        for name in configurations
    }
    return replace(plan, configurations=tuple(configurations), changes=changes if install else {})


def measure_function(
    plan: Plan,
    store: Store,
    on_progress: Callable[[Progress], None],
    *,
    opened: Callable[[str], Board],
    ask: Ask,
    stopping: StopRequest,
    tell: Callable[[str], None],
) -> Measure:
    """A function that measures a configuration of the plan for a time, divided among the loads of all entries.

    It raises BisectInterrupted after a signal.
    """
    brought = with_configurations(plan, opened, ask, {}, stopping.sleep)

    def measure(configuration: str, duration_ns: int) -> list[Recording]:
        loads = sum(len(entry.loads) for entry in plan.entries)
        entries = tuple(replace(entry, duration_s=duration_ns / loads / 1e9) for entry in plan.entries)
        done = run_campaign(
            replace(plan, configurations=(configuration,), entries=entries),
            store,
            on_progress,
            opened=brought,
            stopping=stopping,
            tell=tell,
        )
        if done.stopped:
            raise BisectInterrupted(done.signal)
        return [store.load(run) for run in done.runs]

    return measure
