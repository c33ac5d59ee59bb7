# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether runs keep what they may be slower by than a baseline: each limit by itself, from blocks of time.

Slower by more than is allowed is shown by the lower end (Holm over all limits), no more than that by the upper end of
an interval; between them nothing is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastenough import words
from fastenough.analysis.assessment import Judgment
from fastenough.analysis.checks import findings_of
from fastenough.analysis.clusters import holm
from fastenough.analysis.compare import Comparison, Sides
from fastenough.analysis.differences import all_differences, differing_keys, run_values
from fastenough.analysis.drawn import difference_of
from fastenough.analysis.machine import is_emulated
from fastenough.analysis.merged import grouped, load_name
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.recording import Recording

Group = Sequence[Recording]

MOST_CONFIDENCE = 0.9999
"""That a limit on growth may ask for.  The tail of the draws is taken to be Student's t, which was not tried much
farther out; where several limits or windows share an error, it is read at their share."""


@dataclass(frozen=True)
class Growth:
    """By how much a quantile may be greater than the baseline's: a time, or a share of the baseline's."""

    quantile: float
    more_ns: float = 0.0
    more_share: float = 0.0
    confidence: float = 0.95

    def require_resolved(self) -> None:
        """Raises BadInput for a confidence that draws of blocks cannot show."""
        if self.confidence > MOST_CONFIDENCE:
            raise BadInput(
                f"a confidence of {words.percent(self.confidence)} cannot be shown from blocks of time; "
                f"state at most {words.percent(MOST_CONFIDENCE)}"
            )

    @property
    def allowed(self) -> str:
        return words.percent(self.more_share) if self.more_share else words.latency(self.more_ns)

    @property
    def text(self) -> str:
        return f"at {words.percent(self.quantile)} slower than the baseline by no more than {self.allowed}"


@dataclass(frozen=True)
class Limit:
    """What is asked of the runs it is for: of a board, a probe and a load; None: of every one.  ``place``: in its
    file."""

    place: str
    asked: Growth | Requirement
    board: str | None = None
    probe: str | None = None
    load: str | None = None

    def is_for(self, recording: Recording) -> bool:
        found = (recording.head.board, recording.head.probe, load_name(recording))
        return all(
            wanted in (None, one) for wanted, one in zip((self.board, self.probe, self.load), found, strict=True)
        )

    @property
    def subject(self) -> str:
        named = [
            self.probe or "every probe",
            f"load {self.load}" if self.load else "every load",
            *([f"on {self.board}"] if self.board else []),
        ]
        return ", ".join(named)

    @property
    def text(self) -> str:
        if isinstance(self.asked, Growth):
            return self.asked.text
        rate = f" in no more than {words.rate_of(self.asked.miss_rate, 'activations')}" if self.asked.miss_rate else ""
        return f"{'later than' if rate else 'never later than'} {words.latency(self.asked.limit_ns)}{rate}"


ENVIRONMENT = (
    "board",
    "configuration",
    "kernel",
    "kernel configuration",
    "command line",
    "device tree",
    "processor",
    "hypervisor",
)
"""Keys of a run that must be those of the baseline, unless the file of limits allows that they differ."""


@dataclass(frozen=True)
class Allowed:
    """What may differ from the baseline: ``differs``: keys of the environment; ``missing``: loads that need not be
    measured any more."""

    differs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Departure:
    """In what the runs of a subject depart from the baseline though nothing allows it."""

    subject: str
    what: str
    reason: str


@dataclass(frozen=True)
class Held:
    """What came of one limit for runs of one key, or of one that no run is for."""

    limit: Limit
    verdict: Verdict
    reason: str
    subject: str
    run_ids: tuple[str, ...] = ()
    duration_ns: int = 0


@dataclass(frozen=True)
class Beside:
    """Runs of one key, and those of the baseline that stand beside them; ``sides`` are the series judged.

    ``differs``: in what the environment differs.  ``comparisons``: of all judged series.
    """

    runs: Group
    baseline: Group
    differs: tuple[str, ...]
    sides: tuple[Sides, ...]
    comparisons: tuple[Comparison, ...]


def subject_of(recording: Recording) -> str:
    """Which runs these are, in words."""
    head, load = recording.head, load_name(recording) or "not stated"
    return f"{head.probe}, load {load}, on {head.board or 'a board that is not named'}"


def _act(recording: Recording) -> tuple[object, ...]:
    """What must be the same of runs that stand beside each other; what else may differ is told."""
    values = run_values(recording)
    return (recording.head.probe, load_name(recording), recording.head.implementation, repr(values["act"]))


def beside(runs: Group, baselines: Group) -> list[tuple[Group, Group]]:
    """The runs in groups of one key, each with the runs of the baseline that are most like it, if any."""
    found: list[tuple[Group, Group]] = []
    for group in grouped(runs):
        alike = [one for one in grouped(baselines) if _act(one[0]) == _act(group[0])]
        values = run_values(group[0])
        nearest = min(alike, key=lambda one: len(differing_keys(run_values(one[0]), values)), default=[])
        found.append((group, nearest))
    return found


def departures(runs: Group, baselines: Group, allowed: Allowed) -> list[Departure]:
    """Loads and acts of the baseline that are no longer measured, and environments that are others."""
    pairs = beside(runs, baselines)
    found = [
        Departure(
            subject_of(base),
            "what the baseline measured is measured",
            f"no run is like that of the baseline ({base.run_id})",
        )
        for base in _no_longer_measured(runs, baselines, pairs, "board" not in allowed.differs)
        if load_name(base) not in allowed.missing
    ]
    for group, nearest in pairs:
        if nearest:
            found += _other_environment(group[0], nearest[0], allowed)
    return found


def _no_longer_measured(
    runs: Group, baselines: Group, pairs: Sequence[tuple[Group, Group]], each_board: bool
) -> Iterator[Recording]:
    """The first run of each group of the baseline that no run is like: none of its act or, with ``each_board``, none
    of its act on its board.  What stands beside a run is measured, though its environment may differ."""

    def measured_as(run: Recording) -> tuple[object, ...]:
        return (run.head.board if each_board else None, *_act(run))

    measured = set(map(measured_as, runs))
    beside_ids = {nearest[0].run_id for _, nearest in pairs if nearest}
    for base, *_ in grouped(baselines):
        if base.run_id not in beside_ids and measured_as(base) not in measured:
            yield base


def _other_environment(run: Recording, base: Recording, allowed: Allowed) -> Iterator[Departure]:
    values, others = run_values(base), run_values(run)
    for key in differing_keys(values, others):
        if key.name in ENVIRONMENT and key.name not in allowed.differs:
            said = all_differences([key], values, others)
            yield Departure(subject_of(run), f"the {key.name} is that of the baseline", "; ".join(said))


def is_same_question(one: Recording, other: Recording) -> bool:
    """Whether both are of one act under one load, whatever the environment."""
    return _act(one) == _act(other)


def against_a_pass(recordings: Group) -> tuple[Verdict, str] | None:
    """The weightiest of what the runs themselves say against a PASS."""
    found = [
        (finding.verdict, f"run {recording.run_id}: {finding.text}")
        for recording in recordings
        for finding in findings_of(recording)
    ]
    return min(found, key=lambda one: one[0] is not Verdict.BROKEN, default=None)


@dataclass(frozen=True)
class _Grown:
    """One limit on how much slower one series of one group may be; ``chance``: of being wrong in saying it is."""

    limit: Limit
    growth: Growth
    beside: Beside
    sides: Sides
    chance: float | None = None
    within: bool = False


def _grown(limit: Limit, growth: Growth, pair: Beside) -> Iterator[_Grown]:
    for sides in pair.sides:
        drawn = difference_of(
            sides.base.edges(growth.quantile), sides.other.edges(growth.quantile), growth.more_ns, growth.more_share
        )
        yield (
            _Grown(limit, growth, pair, sides)
            if drawn is None
            else _Grown(limit, growth, pair, sides, drawn.chance_of_no_more(), drawn.is_no_more(growth.confidence))
        )


def _seen(one: _Grown) -> str:
    base, other = (side.value_ns(one.growth.quantile) for side in (one.sides.base, one.sides.other))
    drawn = difference_of(one.sides.base.edges(one.growth.quantile), one.sides.other.edges(one.growth.quantile))
    if base is None or other is None or drawn is None:
        return f"{one.sides.name}: too few samples for an interval at {words.percent(one.growth.quantile)}"
    lower, upper = drawn.interval(one.growth.confidence)
    return (
        f"{one.sides.name} at {words.percent(one.growth.quantile)}: {words.latency(base)} before, "
        f"{words.latency(other)} now; difference {words.microseconds_interval(lower, upper)} µs "
        f"({words.percent(one.growth.confidence)})"
    )


def _held(one: _Grown, slower: bool) -> Held:
    against = against_a_pass((*one.beside.runs, *one.beside.baseline))
    verdict, reason = Verdict.PASS if one.within else Verdict.INCONCLUSIVE, _seen(one)
    if slower:
        verdict = Verdict.FAIL
    elif not one.within and one.chance is not None:
        reason += f": not decided whether it is more than {one.growth.allowed}; measure longer"
    runs = one.beside.runs
    if against is not None and (against[0] is Verdict.BROKEN or verdict is Verdict.PASS or is_emulated(runs[0])):
        verdict, reason = against
    return Held(
        one.limit,
        verdict,
        reason,
        subject_of(runs[0]),
        tuple(run.run_id for run in runs),
        sum(run.duration_ns for run in runs),
    )


def held_growth(limits: Sequence[Limit], pairs: Sequence[Beside]) -> list[Held]:
    """What came of the limits on growth, all of them judged together, each at its own confidence.

    Holm's method over the shares that the chances are of the errors allowed: with one confidence it is the usual one.
    """
    found = [
        grown
        for limit in limits
        if isinstance(limit.asked, Growth)
        for pair in pairs
        if limit.is_for(pair.runs[0])
        for grown in _grown(limit, limit.asked, pair)
    ]
    tested = [one for one in found if one.chance is not None]
    shares = [(one.chance or 0.0) / (1 - one.growth.confidence) for one in tested]
    slower = dict(zip(map(id, tested), holm(shares, 1.0), strict=True))
    return [_held(one, slower.get(id(one), False)) for one in found]


def checked_before(again: int, others: int, confidence: float) -> str:
    """What is to be known where a gate's limit was not kept before: ``again``: by some of these runs, ``others``: by
    other runs alone."""
    said = (
        [
            f"of these runs some were judged {words.counted(again, 'time')} before and did not pass, so this look is "
            "judged more strictly"
        ]
        if again
        else []
    )
    said += (
        [
            f"judged by these runs alone, as were {words.counted(others, 'check')} before, which did not pass: "
            f"confidence {words.percent(confidence)} is that of each check by itself"
        ]
        if others
        else []
    )
    return "; ".join(said)


def held_requirement(limit: Limit, judgment: Judgment, runs: Group, reasons: Sequence[str], said: str = "") -> Held:
    """What came of a limit that stands by itself.  ``said``: what is to be known of it besides."""
    reason = "; ".join(finding.text for finding in judgment.findings) or "; ".join(reasons)
    seen = f"{words.counted(judgment.n, 'activation')}, greatest {words.latency(judgment.maximum_ns)}"
    return Held(
        limit,
        judgment.verdict,
        "; ".join(filter(None, (reason or seen, said))),
        subject_of(runs[0]),
        judgment.run_ids,
        sum(run.duration_ns for run in runs),
    )
