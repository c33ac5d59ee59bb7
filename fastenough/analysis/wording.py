# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences of an assessment: headline, reasons, next steps, caveats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fastenough import words
from fastenough.analysis import sequential
from fastenough.analysis.assessment import CheckFinding, Judgment, StatedMaximum, limit_names
from fastenough.analysis.cpu_evidence import CpuEvidence
from fastenough.analysis.declared_bursts import declared_bursts, declared_rate, if_declared, rate_upper, reliance
from fastenough.analysis.machine import INSTRUCTIONS, counter_total, counts_instructions, steal_text
from fastenough.analysis.merged import load_name
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.wakeups import STATIONS, SUMS, is_monitor

_REASON_ORDER = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE)
"""Order in which findings are listed."""

_NAMES_MISSING_CPUS = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.NO_LIMIT)
"""Verdicts whose headline names the CPUs that were not measured."""
_LISTS_MEASURED = (Verdict.PASS, Verdict.NO_LIMIT, Verdict.BROKEN)
"""Verdicts whose reasons list the runs without a requirement."""
_EMULATED = "Emulated: no verdict. The function works; timing must be measured on the real board"


@dataclass(frozen=True)
class Failure:
    """Activations above the limit, on the CPUs of one kind of runs that fail; ``maximum_ns``: of these CPUs.

    ``n_is_least``: whether an imported source left out an unknown number of values.
    """

    probe: str
    requirement: Requirement
    exceeded: int
    n: int
    maximum_ns: float
    n_is_least: bool = False


@dataclass(frozen=True)
class NearLimit:
    """Number of values within the measurement uncertainty of the limit, as far as its contributions are known; how far
    above or below a value printed at the limit the true one may be, in ns, and whether unknown contributions may make
    it higher or lower still."""

    requirement: Requirement
    count: int
    above_ns: float
    below_ns: float
    unknown_higher: bool
    unknown_lower: bool


def _confidence(evidence: CpuEvidence) -> str:
    return f"{words.percent(evidence.confidence)} confidence"


def statement(evidence: CpuEvidence) -> str:
    """The rate of disturbances: "at most 1 disturbance above 150 us per 3.3 h (95 % confidence)"."""
    limit, disturbances = words.exact_time(evidence.requirement.limit_ns), evidence.disturbances
    if not disturbances.n:
        return "no activation was measured"
    if not disturbances.time_ns:
        counted = words.counted(disturbances.most, "disturbance") if disturbances.most else "no disturbance"
        return f"{counted} above {limit} in {words.counted(disturbances.n, 'activation')}, measured time not stated"
    counted = ""
    if disturbances.most:
        counted = f"{words.counted(disturbances.most, 'disturbance')} in {words.duration(disturbances.time_ns)}"
        counted += f"{_in_clusters(evidence)}: "
    if not disturbances.clusters.supported:
        return f"{counted}too few clusters to bound their rate"
    if disturbances.long_memory:
        return f"{counted}their rate varies too slowly to be bounded"
    event = "cluster of disturbances" if disturbances.clusters.scale else "disturbance"
    return f"{counted}at most 1 {event} above {limit} per {words.at_least(evidence.every_ns)} ({_confidence(evidence)})"


def _in_clusters(evidence: CpuEvidence) -> str:
    """Suffix where disturbances depend on each other: the number of clusters, and their scale."""
    disturbances = evidence.disturbances
    return (
        ""
        if not disturbances.clusters.scale
        else (
            f", in {words.counted(disturbances.clusters.most, 'cluster')} (disturbances up to "
            f"{words.duration(words.round_up(disturbances.scale_ns))} apart depend on each other)"
        )
    )


def rate_text(evidence: CpuEvidence) -> str:
    """The bound on the rate per activation, and the number of independent disturbances it rests on."""
    disturbances = evidence.disturbances
    return (
        f"{words.number(disturbances.possibly)} of {words.counted(disturbances.n, 'activation')} exceeded "
        f"{words.exact_time(evidence.requirement.limit_ns)}, in bursts that count as {int(disturbances.independent):,} "
        f"independent disturbances: at most {words.rate_at_most(evidence.upper or 1.0)} ({_confidence(evidence)})"
    )


def _watched(recordings: Sequence[Recording]) -> str:
    """The maximum over the tasks that a monitor observed, of the longest section of each wake-up that it measured."""
    for name in (*SUMS, *STATIONS):
        totals = [(recording.totals[series.id], series) for recording in recordings for series in recording.named(name)]
        n = sum(total.total for total, _ in totals)
        if n:
            maximum_ns = max((total.maximum or 0) * series.unit_ns for total, series in totals)
            return (
                f"Maximum {name.replace('-', ' ')} latency {words.latency_up(maximum_ns)} in {words.about(n)} "
                "monitored wake-ups (monitoring gives no verdict)"
            )
    return "No wake-up of a monitored task was recorded"


_ACTIVATIONS = {"timer": "wake-up", "response": "response"}
"""The noun for one value of a probe; "activation" otherwise."""
_MOST_PROBES = 4
"""Number of probes that a headline lists."""


def _activations(n: int, probe: str) -> str:
    noun = _ACTIVATIONS.get(probe, "activation")
    return f"{words.about(n)} {noun}{'' if n == 1 else 's'}"


def at_least_if(n_is_least: bool) -> str:
    """Words before a number of activations that may be greater than stated."""
    return "at least " if n_is_least else ""


def _by_probe(judgments: Sequence[Judgment]) -> dict[str, list[Judgment]]:
    probes: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        probes.setdefault(judgment.probe, []).append(judgment)
    return probes


def _maxima(judgments: Sequence[Judgment]) -> str:
    """The maximum of each probe, where no limit is given."""
    probes = _by_probe([judgment for judgment in judgments if judgment.maximum_ns is not None])
    if not probes:
        return "No latency was measured"
    if len(probes) > _MOST_PROBES:
        return f"Maximum latencies of {len(probes)} probes, listed below (no limit given, so no verdict)"
    maxima = [
        f"{f'{probe} ' if len(probes) > 1 else ''}{_maximum_of(group)} in "
        f"{at_least_if(any(judgment.n_is_least for judgment in group))}"
        f"{_activations(sum(judgment.n - judgment.uncharged for judgment in group), probe)}"
        + _missed(sum(judgment.uncharged for judgment in group))
        for probe, group in probes.items()
    ]
    return f"Maximum latency {'; '.join(maxima)} (no limit given, so no verdict)"


def _invalid(judgments: Sequence[Judgment]) -> str:
    """How many kinds of runs are invalid, and the maximum of the others, where no limit is given."""
    measured = [judgment for judgment in judgments if judgment.verdict is Verdict.NO_LIMIT]
    broken = [judgment for judgment in judgments if judgment.verdict is Verdict.BROKEN]
    if measured:
        maxima, verb = _maxima(measured), "is" if len(broken) == 1 else "are"
        return (
            f"{len(broken)} of {len(judgments)} kinds of runs {verb} invalid; of the others, "
            f"{maxima[0].lower()}{maxima[1:]}"
        )
    if any(len(judgment.run_ids) > 1 for judgment in broken):
        return "Measurement invalid: not all runs are valid"
    return "No valid data was recorded"


def _maximum_of(judgments: Sequence[Judgment]) -> str:
    return words.latency_up(max(judgment.maximum_ns or 0.0 for judgment in judgments))


def _missed(n: int) -> str:
    return f", and {words.counted(n, 'missed period')} of unknown latency" if n else ""


def _required(judgments: Sequence[Judgment], verdict: Verdict) -> dict[tuple[str, Requirement], list[Judgment]]:
    """The judgments of this verdict (all that have a requirement, if none has it), by probe and requirement."""
    judged = [judgment for judgment in judgments if judgment.requirement is not None]
    by_requirement: dict[tuple[str, Requirement], list[Judgment]] = {}
    for judgment in [judgment for judgment in judged if judgment.verdict is verdict] or judged:
        if judgment.requirement is not None:
            by_requirement.setdefault((judgment.probe, judgment.requirement), []).append(judgment)
    return by_requirement


def _per_requirement(
    judgments: Sequence[Judgment],
    verdict: Verdict,
    sentence: Callable[[str, Requirement, Sequence[Judgment]], str],
) -> str:
    """``sentence`` of each probe and requirement; the probe is named where there are several."""
    several = len({judgment.probe for judgment in judgments}) > 1
    sentences = [
        (f"{probe}: " if several else "") + sentence(probe, requirement, group)
        for (probe, requirement), group in _required(judgments, verdict).items()
    ]
    return "; ".join(dict.fromkeys(sentences))


def _met(probe: str, requirement: Requirement, judgments: Sequence[Judgment]) -> str:
    limit = words.exact_time(requirement.limit_ns)
    confidence = words.percent(
        min((result.confidence for group in judgments for result in group.evidence), default=requirement.confidence)
    )
    if requirement.miss_rate == 0:
        return (
            f"none of {_activations(sum(judgment.n for judgment in judgments), probe)} above {limit}, at most "
            f"1 disturbance per {words.duration(requirement.return_time_ns)} ({confidence} confidence)"
        )
    return f"at most {_misses(requirement)} above {limit} ({confidence} confidence)"


def _misses(requirement: Requirement) -> str:
    """The allowed miss rate: "1 miss in 10,000 activations", "5 % of the activations"."""
    rate = words.rate_of(requirement.miss_rate, "activations")
    return rate.replace("1 in", "1 miss in", 1) if rate.startswith("1 in") else rate


def _questioned(_probe: str, requirement: Requirement, _judgments: Sequence[Judgment]) -> str:
    limit = words.exact_time(requirement.limit_ns)
    return (
        f"latency never exceeds {limit}"
        if requirement.miss_rate == 0
        else f"latency exceeds {limit} in at most {words.rate_of(requirement.miss_rate, 'activations')}"
    )


def _failed(failures: Sequence[Failure], several: bool) -> str:
    """Counts and maximum over all CPUs and loads that fail one requirement."""
    by_requirement: dict[tuple[str, Requirement], list[Failure]] = {}
    for failure in failures:
        by_requirement.setdefault((failure.probe, failure.requirement), []).append(failure)
    sentences = []
    for (probe, requirement), group in by_requirement.items():
        maximum_ns, limit = max(failure.maximum_ns for failure in group), words.exact_time(requirement.limit_ns)
        allowed = f" ({words.rate(requirement.miss_rate)} allowed)" if requirement.miss_rate else ""
        exceeded, n = sum(failure.exceeded for failure in group), sum(failure.n for failure in group)
        at_least = at_least_if(any(failure.n_is_least for failure in group))
        sentences.append(
            f"{f'{probe}: ' if several else ''}{at_least}{words.number(exceeded)} of {at_least}{words.number(n)} "
            f"{_ACTIVATIONS.get(probe, 'activation')}s above {limit}"
            f"{allowed}, {_greatest(maximum_ns, requirement.limit_ns)}"
        )
    return "; ".join(sentences)


def _greatest(maximum_ns: float, limit_ns: float) -> str:
    """The maximum of what fails; nothing measured fails if all that does are periods without a value."""
    if maximum_ns <= limit_ns:
        return f"all of them missed periods; maximum of the others {words.latency_up(maximum_ns)}"
    return f"maximum {words.latency_up(maximum_ns)} ({words.times_up(maximum_ns / limit_ns)} the limit)"


def _measure_longer(judgments: Sequence[Judgment]) -> str:
    """How much longer to measure, where more time is all that is missing of each kind of runs."""
    open_findings = [
        finding for judgment in judgments for finding in judgment.findings if finding.verdict is Verdict.INCONCLUSIVE
    ]
    longer_ns = [finding.more_ns for finding in open_findings if finding.more_ns is not None]
    if not longer_ns or len(longer_ns) < len(open_findings):
        return ""
    return f"; measure {words.duration(words.round_up(max(longer_ns)))} longer"


def _statement(verdict: Verdict, judgments: Sequence[Judgment], failures: Sequence[Failure], complete: bool) -> str:
    questions = _per_requirement(judgments, verdict, _questioned)
    if not questions:
        return {Verdict.NO_LIMIT: _maxima(judgments), Verdict.BROKEN: _invalid(judgments)}.get(
            verdict, "These runs contain no latency data"
        )
    if verdict is Verdict.PASS:
        return f"Fast enough{if_declared(judgments)}: {_per_requirement(judgments, verdict, _met)}"
    if verdict is Verdict.FAIL:
        return f"Too slow: {_failed(failures, len({judgment.probe for judgment in judgments}) > 1)}"
    if verdict is Verdict.INCONCLUSIVE:
        return f"Not enough evidence that {questions}{_measure_longer(judgments) if complete else ''}"
    return f"Measurement invalid; no conclusion whether {questions}"


_USUAL_PROBE = "timer"


def _labelled(judgments: Sequence[Judgment]) -> list[tuple[str, Judgment]]:
    """Each judgment with a label: the load; the probe if it is not the usual one; and those of requirement, board,
    configuration, implementation and parameters that differ among the judgments."""
    limits = limit_names(judgments)
    differs = [len(set(names)) > 1 for names in zip(*(judgment.setup for judgment in judgments), strict=True)]
    return [
        (
            _label(
                judgment,
                ([limits[judgment.requirement]] if judgment.requirement in limits else [])
                + [name for name, other in zip(judgment.setup, differs, strict=True) if other and name]
                + _distinguishing_parameters(judgment, judgments),
            ),
            judgment,
        )
        for judgment in judgments
    ]


def _distinguishing_parameters(judgment: Judgment, judgments: Sequence[Judgment]) -> list[str]:
    alike = [other.parameters for other in judgments if other.probe == judgment.probe]
    return [
        text
        for name, text in judgment.parameters.items()
        if all(name in parameters for parameters in alike) and any(parameters[name] != text for parameters in alike)
    ]


def _label(judgment: Judgment, setup: Sequence[str]) -> str:
    load = ", ".join(["load not stated" if judgment.load is None else f"load {judgment.load}", *setup])
    return load if judgment.probe == _USUAL_PROBE else f"{judgment.probe} ({load})"


def observed(judgment: Judgment) -> str:
    """The number of activations and the maximum."""
    n = f"{at_least_if(judgment.n_is_least)}{words.counted(judgment.n, 'activation')}"
    return f"{n}, maximum {words.latency(judgment.maximum_ns)}"


def _measured_reason(label: str, judgment: Judgment, missing: str) -> str:
    """Of runs without a requirement; ``missing``: suffix that names the CPUs that were not measured."""
    return f"{label}: {observed(judgment)}{missing}"


def _pass_reason(label: str, judgment: Judgment, missing: str) -> str:
    """The weakest bound of all CPUs, and the CPUs that rely on a declared longest burst."""
    weakest = max(judgment.evidence, key=lambda result: (rate_upper(result), -result.every_ns), default=None)
    if weakest is None:
        return f"{label}: no series was judged"
    scope, overall, n = "", "", words.counted(weakest.n, "activation")
    if len(judgment.evidence) > 1 and any(result.exceeded for result in judgment.evidence):
        scope, overall = f"weakest evidence: {_place(weakest, judgment.evidence)}, ", "overall "
        n = words.counted(judgment.n, "activation")
    elif len(judgment.evidence) > 1:
        scope = f"on each CPU{' measured' if judgment.not_measured else ''}, "
        counts = {result.n for result in judgment.evidence}
        n = f"{'at least ' if len(counts) > 1 else ''}{words.counted(min(counts), 'activation')} each"
    return (
        f"{label}: {scope}{weakest.text}{declared_rate(weakest)}{reliance(judgment)}; {overall}maximum "
        f"{words.latency(judgment.maximum_ns)} in {n}{missing}"
    )


def _place(result: StatedMaximum, all_results: Sequence[StatedMaximum]) -> str:
    """The CPU, with the kind of series or the run where these distinguish the results."""
    alike = [other for other in all_results if (other.series, other.cpus) == (result.series, result.cpus)]
    several_kinds = len({other.series for other in all_results}) > 1
    return ", ".join(
        (
            *([result.series] if several_kinds or not result.cpus else []),
            *([words.cpus(result.cpus)] if result.cpus else []),
            *([f"run {result.run_ids[0]}"] if len(alike) > 1 else []),
        )
    )


def _not_measured_text(cpus: Sequence[int]) -> str:
    """Suffix of a sentence; empty where every CPU was measured."""
    return f"; {words.cpus(cpus)} {'was' if len(cpus) == 1 else 'were'} not measured" if cpus else ""


def _measured_nowhere(judgments: Sequence[Judgment]) -> list[int]:
    """CPUs of a board that none of its runs measured."""
    boards: dict[tuple[str, ...], set[int]] = {}
    for judgment in judgments:
        missing = set(judgment.not_measured)
        boards[judgment.setup[:1]] = boards.get(judgment.setup[:1], missing) & missing
    return sorted(set().union(*boards.values()))


def _idle_text(judgments: Sequence[Judgment], measured: Sequence[Recording]) -> str:
    """Suffix for runs without a load, with the load average before them."""
    if {judgment.load for judgment in judgments} != {"none"}:
        return ""
    averages = [str((recording.head.profile or {}).get("load_average") or "").split(" ")[0] for recording in measured]
    averages_known = [float(text) for text in averages if _NUMBER.fullmatch(text)]
    return "; no load was applied" + (f" (load average {max(averages_known):g} before)" if averages_known else "")


_NUMBER = re.compile(r"\d{1,6}(\.\d{1,3})?")


def headline(
    verdict: Verdict,
    judgments: Sequence[Judgment],
    measured: Sequence[Recording],
    failures: Sequence[Failure],
    *,
    emulated: bool,
    complete: bool,
) -> str:
    """One sentence with the verdict and its numbers.  Unless it is a failure, it names the CPUs not measured.

    ``failures``: of each kind of runs that fails.  ``complete``: all runs that were required are there.
    """
    if emulated and verdict is Verdict.INCONCLUSIVE:
        return _EMULATED
    if verdict is Verdict.NO_LIMIT and measured and all(is_monitor(recording.head) for recording in measured):
        return _watched(measured)
    missing = _measured_nowhere(judgments)
    idle = _idle_text(judgments, measured) if verdict in (Verdict.PASS, Verdict.NO_LIMIT) else ""
    unmeasured = _not_measured_text(missing) if verdict in _NAMES_MISSING_CPUS else ""
    return _statement(verdict, judgments, failures, complete) + idle + unmeasured


_MOST_LABELS = 6
"""Number of labels that a sentence lists.  Beyond it they are counted, or the others are listed."""


def _grouped_by_text(texts: Sequence[tuple[str, str]], all_labels: Sequence[str]) -> tuple[str, ...]:
    """Each text once, with the labels of the runs that it is about; ``all_labels``: the labels of all runs."""
    by_text: dict[str, list[str]] = {}
    for label, text in texts:
        labels = by_text.setdefault(text, [])
        if label not in labels:
            labels.append(label)
    return tuple(f"{_subject(labels, all_labels)}: {text}" for text, labels in by_text.items())


def _subject(labels: Sequence[str], all_labels: Sequence[str]) -> str:
    others = [label for label in dict.fromkeys(all_labels) if label not in labels]
    if len(labels) <= _MOST_LABELS:
        return _listed(labels)
    if len(others) > _MOST_LABELS:
        return f"{labels[0]}, and {len(labels) - 1} of the {len(labels) + len(others) - 1} other kinds of runs"
    return f"all kinds of runs except {_listed(others)}" if others else f"all {len(labels)} kinds of runs"


def _listed(labels: Sequence[str]) -> str:
    return ("; " if any("," in label for label in labels) else ", ").join(labels)


def _undecided(judgments: Sequence[Judgment], verdict: Verdict) -> Sequence[Judgment]:
    """The judgments for which missing evidence matters: after a failure, those of requirements that no run fails."""
    if verdict is not Verdict.FAIL:
        return judgments
    failed = {(judgment.probe, judgment.requirement) for judgment in judgments if judgment.verdict is Verdict.FAIL}
    return [
        judgment
        for judgment in judgments
        if judgment.requirement is not None and (judgment.probe, judgment.requirement) not in failed
    ]


def reasons(judgments: Sequence[Judgment], verdict: Verdict) -> tuple[str, ...]:
    """The reasons of the verdict.  Missing evidence does not matter for a requirement that is not met.

    CPUs that none of the runs measured are named in the headline, if it names any, and not repeated.
    """
    labelled = _labelled(judgments)
    undecided = list(map(id, _undecided(judgments, verdict)))
    ordered = [
        (label, finding.text)
        for weight in _REASON_ORDER
        for label, judgment in labelled
        for finding in judgment.findings
        if finding.verdict is weight and (weight is not Verdict.INCONCLUSIVE or id(judgment) in undecided)
    ]
    in_headline = verdict in _NAMES_MISSING_CPUS and len({judgment.not_measured for judgment in judgments}) == 1
    missing = {id(judgment): "" if in_headline else _not_measured_text(judgment.not_measured) for judgment in judgments}
    passed = tuple(
        _pass_reason(label, judgment, missing[id(judgment)])
        for label, judgment in labelled
        if judgment.verdict is Verdict.PASS
    )
    measured = tuple(
        _measured_reason(label, judgment, missing[id(judgment)])
        for label, judgment in labelled
        if judgment.verdict is Verdict.NO_LIMIT
    )
    all_labels = [label for label, _ in labelled]
    return _grouped_by_text(ordered, all_labels) + passed + (measured if verdict in _LISTS_MEASURED else ())


def next_steps(judgments: Sequence[Judgment], verdict: Verdict) -> tuple[str, ...]:
    """Next steps that lead to a verdict; none for a requirement that is not met."""
    labelled = _labelled(judgments)
    undecided = list(map(id, _undecided(judgments, verdict)))
    return _grouped_by_text(
        [
            (label, settling)
            for label, judgment in labelled
            if id(judgment) in undecided
            for settling in _settling(judgment.findings)
        ],
        [label for label, _ in labelled],
    )


def _settling(findings: Sequence[CheckFinding]) -> Iterator[str]:
    """Next steps of findings; of those that ask for more time, only the longest."""
    longest_ns = max((finding.more_ns or 0.0 for finding in findings), default=0.0)
    return (
        finding.next_step
        for finding in findings
        if finding.next_step and (finding.more_ns is None or finding.more_ns == longest_ns)
    )


def next_steps_of_gaps(gaps: Sequence[str], uncovered: Sequence[str], missing: Sequence[str]) -> tuple[str, ...]:
    """Next steps for gaps.  ``uncovered``: those of setups; ``missing``: runs that were planned and not made."""
    steps = {
        "Measure the missing runs or exclude them": len(gaps) > len(uncovered),
        "Measure one setup under all of these loads": bool(uncovered),
        "Resume the campaign: repeat its command with --resume (an experiment must be measured anew)": bool(missing),
    }
    return tuple(step for step, applies in steps.items() if applies)


def load_elsewhere(load: str | None, recording: Recording, other: Recording, difference: str) -> str:
    """The gap that the setup of one run was not measured under a load, although that of another run was."""
    return (
        f"the setup of run {recording.run_id} was not measured under load {load or 'unknown'}, only that of run "
        f"{other.run_id} was ({difference})"
    )


_ORDINARY = ("other", "batch", "idle")
"""Policies that are not real-time."""


def _ordinary(recording: Recording) -> bool:
    """Whether measured threads had a policy that is not real-time."""
    policies = [setting for setting in recording.head.settings if setting.name == "policy"]
    ordinary = [setting for setting in policies if setting.in_effect in _ORDINARY]
    return bool(ordinary) and (ordinary == policies or any(setting.differs for setting in ordinary))


def cautions(recordings: Sequence[Recording], verdict: Verdict) -> Iterator[str]:
    """The caveats that follow from how the runs were measured."""
    marks = {mark for recording in recordings for mark in recording.head.marks}
    stolen = steal_text(recordings)
    if stolen is not None and "emulated" not in marks:
        if verdict is Verdict.FAIL:
            yield f"The host may have caused the failure: {stolen}"
        else:
            yield f"Results apply only to this host at that time: {stolen}"
    if any(map(counts_instructions, recordings)):
        yield INSTRUCTIONS
    if "self-measured" in marks:
        yield "Self-measured: the board timed itself; no external instrument confirmed the latencies"
    if "not-real-time" in marks or any(map(_ordinary, recordings)):
        yield "The measured threads did not run under a real-time policy"
    smi = sum(counter_total(recording, "smi") or 0 for recording in recordings)
    if smi:
        yield f"{words.number(smi)} system management interrupts stopped all CPUs during the measurement"
    if recordings:
        yield "A maximum is a lower bound of the worst case: longer measurements find greater maxima"


def uncertain(near: Sequence[NearLimit], verdict: Verdict) -> Iterator[str]:
    """The caveat that values lie, or may lie, within the measurement uncertainty of the limit."""
    if verdict is Verdict.BROKEN:
        return
    for values in near:
        limit = words.exact_time(values.requirement.limit_ns)
        unknown = values.unknown_higher or values.unknown_lower
        if values.count:
            yield (
                f"{'At least ' if unknown else ''}{words.counted(values.count, 'value')} within the measurement "
                f"uncertainty of the limit {limit}: true latencies there are {_distances(values)} than printed"
                f"{'; some contributions are unknown' if unknown else ''}"
            )
        elif values.unknown_higher and verdict is not Verdict.FAIL:
            yield (
                "True latencies may be higher than printed by an unknown amount, so values up to the limit "
                f"{limit} may exceed it: some contributions to the measurement uncertainty are unknown"
            )


def _distances(values: NearLimit) -> str:
    """How far a true latency may be from a value printed at the limit; a side with unknown contributions has no end."""
    if values.unknown_lower and values.unknown_higher:
        return "lower or higher by an unknown amount"
    lower = (
        "lower by an unknown amount" if values.unknown_lower else f"up to {words.round_up(values.below_ns):,} ns lower"
    )
    higher = (
        "higher by an unknown amount"
        if values.unknown_higher
        else f"up to {words.round_up(values.above_ns):,} ns higher"
    )
    return f"{lower} or {higher}"


def declared(judgments: Sequence[Judgment], verdict: Verdict) -> Iterator[str]:
    """The caveat that a PASS rests on a declared longest burst, and the longest that was measured."""
    bursts = declared_bursts(judgments)
    if bursts and verdict is Verdict.PASS:
        yield (
            "This PASS rests on a declaration: no disturbance delays more than "
            f"{words.counted(bursts[-1], 'activation')}, including activations seconds apart that have one cause. "
            + _longest_measured([result for judgment in judgments for result in judgment.evidence])
        )


def _longest_measured(results: Sequence[StatedMaximum]) -> str:
    """How long the disturbances were whose rate rests on a declared longest burst."""
    relying = [result for result in results if result.declared_burst is not None]
    few = [result.longest for result in relying if result.upper is None]
    if not few:
        longest = max(math.ceil(result.longest_run) for result in relying)
        return (
            f"The longest measured run of late activations has {longest:,}; without the declaration, the data do not "
            "exclude longer ones"
        )
    if not max(few):
        return "No activation exceeded the limit, so these runs do not test the declaration"
    return f"The longest disturbance delayed {max(few):,}; fewer than ten disturbances do not test the declaration"


def longer_disturbances(judgments: Sequence[Judgment], verdict: Verdict) -> Iterator[str]:
    """The caveat that a rate applies only to disturbances no longer than those measured, or than declared."""
    rates = [
        result
        for judgment in judgments
        for result in judgment.evidence
        if result.upper is not None
        and judgment.requirement is not None
        and (judgment.requirement.longest_burst or 0) < result.longest_run
    ]
    if rates and verdict is Verdict.PASS:
        weakest = min(rates, key=lambda result: result.n)
        every = words.number(int(words.round_down(weakest.n / sequential.unseen_upper(weakest.confidence))))
        confidence = words.percent(weakest.confidence)
        yield (
            "The rate applies to disturbances no longer than those measured. A longer one, which delays more "
            f"activations in a row, may still begin at 1 in {every} activations ({confidence} confidence). If the "
            "system's design bounds the length of a disturbance, declare it before measuring (--longest-burst)"
        )


def _planned(recording: Recording, unfit: Sequence[Recording]) -> str:
    """Probe, implementation, load, parameters and configuration of a run that was not applicable."""
    head = recording.head
    alike = [other.head.parameters for other in unfit if other.head.probe == head.probe]
    parameters = [
        words.part(name, value)
        for name, value in head.parameters.items()
        if any(name in other and other[name] != value for other in alike)
    ]
    under = (
        f"load {load_name(recording) or 'unknown'}",
        *parameters,
        *([head.configuration.name] if head.configuration else []),
    )
    return f"{head.probe} by {head.implementation} ({', '.join(under)}; run {recording.run_id})"


_MOST_UNFIT = 3
"""Number of runs listed per reason.  Beyond it the first is named and the others are counted."""


def _not_applicable(runs: Sequence[Recording], unfit: Mapping[str, str]) -> Iterator[str]:
    """Each reason once."""
    for reason in dict.fromkeys(unfit[run.run_id] for run in runs):
        named = [_planned(run, runs) for run in runs if unfit[run.run_id] == reason]
        runs_text = (
            "; ".join(named)
            if len(named) <= _MOST_UNFIT
            else f"{named[0]} and {words.counted(len(named) - 1, 'more run')}"
        )
        yield f"{runs_text} {'was' if len(named) == 1 else 'were'} not applicable here: {reason}"


def gaps(
    recordings: Sequence[Recording], unfit: Mapping[str, str], loads: Sequence[str], missing: Sequence[str]
) -> list[str]:
    """Runs that are not applicable, requested loads that no run has, and planned runs that were not made."""
    return [
        *_not_applicable([run for run in recordings if run.run_id in unfit], unfit),
        *(f"no run has load {load}, which was requested" for load in loads),
        *(f"{run} was planned but not measured" for run in missing),
        *([] if recordings else ["there are no runs"]),
    ]
