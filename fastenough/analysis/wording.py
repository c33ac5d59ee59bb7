# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences of an assessment: headline, reasons, what would settle it, cautions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fastenough import words
from fastenough.analysis.assessment import Finding, Judgment
from fastenough.analysis.clusters import poisson_upper
from fastenough.analysis.machine import counter_total, steal_text
from fastenough.analysis.merged import load_name
from fastenough.analysis.shown import Shown
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.wakeups import STATIONS, SUMS, is_monitor

_TELLING = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE)
"""Findings in the order in which they are told."""

_REACHES = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.NO_LIMIT)
"""Verdicts whose headline says which CPUs it does not reach."""
_EMULATED = "Emulated: no verdict. Function was shown; speed can only be measured on the real board"


def _requirement_text(requirement: Requirement) -> str:
    limit = words.latency(requirement.limit_ns)
    if requirement.miss_rate == 0:
        return f"never later than {limit}"  # the reasons say how long "never" is
    return f"later than {limit} in no more than {words.rate_of(requirement.miss_rate, 'activations')}"


def _confidence(shown: Shown) -> str:
    return words.percent(shown.confidence)


def statement(shown: Shown) -> str:
    """What is known of disturbances: "no more than one disturbance above 150 us in 3.3 h (95 %)"."""
    limit, seen = words.latency(shown.requirement.limit_ns), shown.seen
    if not seen.n:
        return "nothing was measured"
    if not seen.time_ns:
        said = words.counted(seen.most, "disturbance") if seen.most else "none"
        return f"{said} above {limit} in {words.counted(seen.n, 'activation')}, in {words.measured_time(seen.time_ns)}"
    counted = (
        ""
        if not seen.most
        else f"{words.counted(seen.most, 'disturbance')} in {words.duration(seen.time_ns)}{_in_clusters(shown)}: "
    )
    if not seen.clusters.supported:
        return f"{counted}too few clusters to say how often they come"
    event = "cluster of disturbances" if seen.clusters.scale else "disturbance"
    return f"{counted}no more than one {event} above {limit} in {words.at_least(shown.every_ns)} ({_confidence(shown)})"


def _in_clusters(shown: Shown) -> str:
    """To be added where disturbances depend on each other: how many clusters they are, and on which scale."""
    seen = shown.seen
    return (
        ""
        if not seen.clusters.scale
        else (
            f", in {words.counted(seen.clusters.most, 'cluster')} (disturbances up to "
            f"{words.duration(words.round_up(seen.scale_ns))} apart depend on each other)"
        )
    )


def rate_text(shown: Shown) -> str:
    """What is known of the rate per activation, where there is one: as many independent disturbances as it counts."""
    seen = shown.seen
    return (
        f"{words.number(seen.possibly)} of {words.counted(seen.n, 'activation')} took longer than "
        f"{words.latency(shown.requirement.limit_ns)}, in bursts that count as {int(seen.independent):,} "
        f"independent disturbances: no more than {words.rate_at_most(shown.upper or 1.0)} ({_confidence(shown)})"
    )


def _required(judgments: Sequence[Judgment], verdict: Verdict) -> str:
    """What was required where this was found; the probe is named where there are several."""
    judged = [judgment for judgment in judgments if judgment.requirement is not None]
    telling = [judgment for judgment in judged if judgment.verdict is verdict] or judged
    several = len({judgment.probe for judgment in judgments}) > 1
    said = [
        (f"{judgment.probe} " if several else "") + _requirement_text(judgment.requirement)
        for judgment in telling
        if judgment.requirement is not None
    ]
    return "; ".join(dict.fromkeys(said))


def _watched(recordings: Sequence[Recording]) -> str:
    """What the monitor saw of tasks that are not ours, by the longest way that it followed each wake-up."""
    for name in (*SUMS, *STATIONS):
        totals = [(recording.totals[series.id], series) for recording in recordings for series in recording.named(name)]
        n = sum(total.total for total, _ in totals)
        if n:
            worst_ns = max((total.maximum or 0) * series.unit_ns for total, series in totals)
            return (
                f"{words.about(n)} wake-ups watched, none longer than {words.latency(words.round_up(worst_ns, 3))} "
                f"({name.replace('-', ' ')}); nothing is judged"
            )
    return "No wake-up of a task that was watched was seen"


_ACTS = {"timer": "wake-up", "response": "response"}
"""What one value of a probe is, where it is not called an activation."""
_FEW_PROBES = 4
"""More are no headline: the reasons below it say the same of each."""


def _seen(judgments: Sequence[Judgment]) -> str:
    """What was seen of each probe, and judged by nothing."""
    probes: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.maximum_ns is not None:
            probes.setdefault(judgment.probe, []).append(judgment)
    said = []
    for probe, group in probes.items():
        worst = words.latency(words.round_up(max(judgment.maximum_ns or 0.0 for judgment in group)))
        n = sum(judgment.n - judgment.uncharged for judgment in group)
        missed = sum(judgment.uncharged for judgment in group)
        said.append(
            f"{f'{probe}: ' if len(probes) > 1 else ''}none above {worst} seen in {words.about(n)} "
            f"{_ACTS.get(probe, 'activation')}s"
            + (f", and {words.counted(missed, 'period')} missed by an unknown time" if missed else "")
        )
    if len(said) > _FEW_PROBES:
        return f"{len(said)} probes were measured; the greatest latency seen of each stands below"
    text = "; ".join(said) or "no latency was measured"
    return text[0].upper() + text[1:]


def _statement(verdict: Verdict, judgments: Sequence[Judgment]) -> str:
    what = _required(judgments, verdict)
    if not what:
        return {Verdict.NO_LIMIT: _seen(judgments), Verdict.BROKEN: "The measurement is broken: it shows nothing"}.get(
            verdict, "There is nothing to judge"
        )
    return {
        Verdict.PASS: f"Fast enough{_if_declared(judgments)}: {what}, as far as these samples reach",
        Verdict.FAIL: f"Not fast enough for: {what}",
        Verdict.INCONCLUSIVE: f"Not decided: {what}",
        Verdict.BROKEN: f"The measurement is broken; it cannot say whether: {what}",
    }[verdict]


def _declared_bursts(judgments: Sequence[Judgment]) -> list[int]:
    """The longest bursts declared, not measured, without which something here would not have passed."""
    return sorted(
        {one.declared_burst for judgment in judgments for one in judgment.shown if one.declared_burst is not None}
    )


def _if_declared(judgments: Sequence[Judgment]) -> str:
    """To be added to "fast enough" where that rests on a declaration."""
    bursts = _declared_bursts(judgments)
    return (
        f" if, as declared, no disturbance makes more than {words.counted(bursts[-1], 'activation')} late"
        if bursts
        else ""
    )


def declared(judgments: Sequence[Judgment], verdict: Verdict) -> Iterator[str]:
    """That a PASS rests on a declared longest burst, and on what was seen of it."""
    bursts = _declared_bursts(judgments)
    if bursts and verdict is Verdict.PASS:
        seen = max(one.longest for judgment in judgments for one in judgment.shown if one.declared_burst is not None)
        yield (
            "This PASS rests on a declaration: no disturbance makes more than "
            f"{words.counted(bursts[-1], 'activation')} late, including those that one cause makes late seconds "
            "apart. "
            + (
                f"The longest seen had {seen:,}, and fewer than ten disturbances do not test it"
                if seen
                else "Nothing late was seen, so these runs do not test it"
            )
        )


_USUAL_PROBE = "timer"


def _labelled(judgments: Sequence[Judgment]) -> list[tuple[str, Judgment]]:
    """With each, which runs it is of: the probe where it is not the usual one, and of board, configuration and
    implementation, and of the parameters of one probe, what differs among them."""
    differs = [len(set(names)) > 1 for names in zip(*(judgment.setup for judgment in judgments), strict=True)]
    return [
        (
            _label(
                judgment,
                [name for name, other in zip(judgment.setup, differs, strict=True) if other and name]
                + _telling_parameters(judgment, judgments),
            ),
            judgment,
        )
        for judgment in judgments
    ]


def _telling_parameters(judgment: Judgment, judgments: Sequence[Judgment]) -> list[str]:
    alike = [other.parameters for other in judgments if other.probe == judgment.probe]
    return [
        said
        for name, said in judgment.parameters.items()
        if all(name in one for one in alike) and any(one[name] != said for one in alike)
    ]


def _label(judgment: Judgment, setup: Sequence[str]) -> str:
    load = ", ".join(["no load stated" if judgment.load is None else f"load {judgment.load}", *setup])
    return load if judgment.probe == _USUAL_PROBE else f"{judgment.probe} ({load})"


def _seen_reason(label: str, judgment: Judgment, missing: str) -> str:
    """Of runs of which nothing is required; ``missing``: which CPUs they did not reach, where that is to be said."""
    return f"{label}: {words.counted(judgment.n, 'activation')}, worst {words.latency(judgment.maximum_ns)}{missing}"


def _pass_reason(label: str, judgment: Judgment, missing: str) -> str:
    """One n and one bound, of the CPU of which least is known."""
    weakest = max(judgment.shown, key=lambda one: (one.upper or 0.0, -one.every_ns), default=None)
    if weakest is None:
        return f"{label}: nothing was judged"
    several = len(judgment.shown) > 1
    scope = f"on each CPU{' measured' if judgment.not_measured else ''}, " if several else ""
    rests = f"; rests on the declared longest burst of {burst:,}" if (burst := weakest.declared_burst) else ""
    return (
        f"{label}: {scope}{weakest.text}{rests}; worst {words.latency(judgment.maximum_ns)} in "
        f"{words.counted(weakest.n, 'activation')}{' each' if several else ''}{missing}"
    )


def _not_measured_text(cpus: Sequence[int]) -> str:
    """To be added to a sentence; nothing where every CPU was measured."""
    return f"; {words.cpus(cpus)} {'was' if len(cpus) == 1 else 'were'} not measured" if cpus else ""


def _measured_nowhere(judgments: Sequence[Judgment]) -> list[int]:
    """CPUs of a board on which none of its runs measured: another probe may have used fewer."""
    boards: dict[tuple[str, ...], set[int]] = {}
    for judgment in judgments:
        missing = set(judgment.not_measured)
        boards[judgment.setup[:1]] = boards.get(judgment.setup[:1], missing) & missing
    return sorted(set().union(*boards.values()))


def _idle_text(judgments: Sequence[Judgment], measured: Sequence[Recording]) -> str:
    """To be added to a sentence about runs none of which had a load; what else ran there, the load average tells."""
    if {judgment.load for judgment in judgments} != {"none"}:
        return ""
    averages = [str((recording.head.profile or {}).get("load_average") or "").split(" ")[0] for recording in measured]
    known = [float(text) for text in averages if _NUMBER.fullmatch(text)]
    return "; no load was applied" + (f" (load average {max(known):g} before)" if known else "")


_NUMBER = re.compile(r"\d{1,6}(\.\d{1,3})?")


def headline(verdict: Verdict, judgments: Sequence[Judgment], measured: Sequence[Recording], *, emulated: bool) -> str:
    """One sentence.  It names the CPUs it does not reach; a failure on one of the others needs no more."""
    if emulated and verdict is Verdict.INCONCLUSIVE:
        return _EMULATED
    if verdict is Verdict.NO_LIMIT and measured and all(is_monitor(recording.head) for recording in measured):
        return _watched(measured)
    missing = _measured_nowhere(judgments)
    idle = _idle_text(judgments, measured) if verdict in (Verdict.PASS, Verdict.NO_LIMIT) else ""
    return _statement(verdict, judgments) + idle + (_not_measured_text(missing) if verdict in _REACHES else "")


_MOST_LABELS = 6
"""More are not read: they are counted, or those are named that are not among them."""


def _said_once(texts: Sequence[tuple[str, str]], known: Sequence[str]) -> tuple[str, ...]:
    """Findings said of several kinds of runs in the same words are printed once; ``known``: the labels of all."""
    by_text: dict[str, list[str]] = {}
    for label, text in texts:
        labels = by_text.setdefault(text, [])
        if label not in labels:
            labels.append(label)
    return tuple(f"{_of(labels, known)}: {text}" for text, labels in by_text.items())


def _of(labels: Sequence[str], known: Sequence[str]) -> str:
    others = [label for label in dict.fromkeys(known) if label not in labels]
    if len(labels) <= _MOST_LABELS:
        return _listed(labels)
    if len(others) > _MOST_LABELS:
        return f"{labels[0]}, and {len(labels) - 1} of the {len(labels) + len(others) - 1} other kinds of runs"
    return f"all kinds of runs but {_listed(others)}" if others else f"all {len(labels)} kinds of runs"


def _listed(labels: Sequence[str]) -> str:
    return ("; " if any("," in label for label in labels) else ", ").join(labels)


def reasons(judgments: Sequence[Judgment], verdict: Verdict) -> tuple[str, ...]:
    """What led to the verdict.  Where a limit was broken, what else is too little known does not matter.

    CPUs that none of the runs reached are named by the headline, where it names any, and not here again.
    """
    telling = _TELLING[:2] if verdict is Verdict.FAIL else _TELLING
    labelled = _labelled(judgments)
    ordered = [
        (label, finding.text)
        for weight in telling
        for label, judgment in labelled
        for finding in judgment.findings
        if finding.verdict is weight
    ]
    told = verdict in _REACHES and len({judgment.not_measured for judgment in judgments}) == 1
    missing = {id(judgment): "" if told else _not_measured_text(judgment.not_measured) for judgment in judgments}
    passed = tuple(
        _pass_reason(label, judgment, missing[id(judgment)])
        for label, judgment in labelled
        if judgment.verdict is Verdict.PASS
    )
    seen = tuple(
        _seen_reason(label, judgment, missing[id(judgment)])
        for label, judgment in labelled
        if judgment.verdict is Verdict.NO_LIMIT
    )
    known = [label for label, _ in labelled]
    return _said_once(ordered, known) + passed + (seen if verdict in (Verdict.PASS, Verdict.NO_LIMIT) else ())


def settle(judgments: Sequence[Judgment], verdict: Verdict) -> tuple[str, ...]:
    """What would settle it; a failure is settled."""
    if verdict is Verdict.FAIL:
        return ()
    labelled = _labelled(judgments)
    return _said_once(
        [(label, settling) for label, judgment in labelled for settling in _settling(judgment.findings)],
        [label for label, _ in labelled],
    )


def _settling(findings: Sequence[Finding]) -> Iterator[str]:
    """Who measures as long as the longest asks has measured as long as each of them asks."""
    longest_ns = max((finding.more_ns or 0.0 for finding in findings), default=0.0)
    return (
        finding.settle
        for finding in findings
        if finding.settle and (finding.more_ns is None or finding.more_ns == longest_ns)
    )


def settle_gaps(gaps: Sequence[str], missing: Sequence[str]) -> tuple[str, ...]:
    """What would settle that something is not there; ``missing``: what was planned and never made."""
    return ("measure what is missing, or leave it out of the question",) * bool(gaps) + (
        "go on with the campaign: the command that began it, with --resume (an experiment: measure it anew)",
    ) * bool(missing)


_ORDINARY = ("other", "batch", "idle")
"""Policies that are not real-time."""


def _ordinary(recording: Recording) -> bool:
    """Whether measured threads were ordinary ones, as those that watch or disturb real-time ones are meant to be."""
    policies = [setting for setting in recording.head.settings if setting.name == "policy"]
    ordinary = [setting for setting in policies if setting.in_effect in _ORDINARY]
    return bool(ordinary) and (ordinary == policies or any(setting.differs for setting in ordinary))


def cautions(recordings: Sequence[Recording], verdict: Verdict) -> Iterator[str]:
    marks = {mark for recording in recordings for mark in recording.head.marks}
    stolen = steal_text(recordings)
    if stolen is not None and "emulated" not in marks:
        if verdict is Verdict.FAIL:
            yield f"This machine as it is has failed; yet {stolen}, and that may be the cause"
        else:
            yield f"What was seen holds for this host at that time only: {stolen}"
    if "self-measured" in marks:
        yield "Self-measured: the board timed itself, no external instrument confirms it"
    if "not-real-time" in marks or any(map(_ordinary, recordings)):
        yield "The measured threads did not run under a real-time policy"
    smi = sum(counter_total(recording, "smi") or 0 for recording in recordings)
    if smi:
        yield f"{words.number(smi)} system management interrupts stopped the whole machine while it was measured"
    if recordings:
        yield "A maximum is a lower bound of the worst case: longer measurement finds greater ones"


def longer_ones(judgments: Sequence[Judgment], verdict: Verdict) -> Iterator[str]:
    """What a rate does not hold for, where one passed and nobody declared how long a disturbance can be."""
    rates = [
        one
        for judgment in judgments
        for one in judgment.shown
        if one.upper is not None
        and judgment.requirement is not None
        and (judgment.requirement.longest_burst or 0) < one.longest_run
    ]
    if rates and verdict is Verdict.PASS:
        weakest = min(rates, key=lambda one: one.n)
        every = words.number(int(words.round_down(weakest.n / float(poisson_upper(0, weakest.confidence)))))
        sure = words.percent(weakest.confidence)
        yield (
            "A rate holds for disturbances no longer than those seen. One that makes more activations late in a row "
            f"may still begin at one in {every} activations ({sure}): if the system's design bounds its length, "
            "state that before measuring (--longest-burst)"
        )


def looked_before(look: int, required: float, confidence: float) -> Iterator[str]:
    """What follows where the requirement was judged before, at the confidence ``required``."""
    if look:
        times = float(poisson_upper(0, confidence) / poisson_upper(0, required))
        yield (
            f"This requirement, or another one of the same system, was judged here {words.counted(look, 'time')} "
            f"before and did not pass. This look is therefore judged at {words.percent(confidence)} confidence, "
            f"which takes {times:.1f} times as long if nothing is late: retesting until it passes inflates false "
            "passes. Judge all runs of this system together (fastenough report RUN...)"
        )


def _planned(recording: Recording, unfit: Sequence[Recording]) -> str:
    """What a run that measured nothing was to measure; the board need not have been booted for it to be told."""
    head = recording.head
    alike = [other.head.parameters for other in unfit if other.head.probe == head.probe]
    telling = [
        words.part(name, value)
        for name, value in head.parameters.items()
        if any(name in other and other[name] != value for other in alike)
    ]
    under = (
        f"load {load_name(recording) or 'unknown'}",
        *telling,
        *([head.configuration.name] if head.configuration else []),
    )
    return f"{head.probe} by {head.implementation} ({', '.join(under)}; run {recording.run_id})"


_MOST_UNFIT = 3
"""With one reason; of more the first is named, and the others are counted."""


def _not_applicable(runs: Sequence[Recording], unfit: Mapping[str, str]) -> Iterator[str]:
    """Each reason once."""
    for reason in dict.fromkeys(unfit[run.run_id] for run in runs):
        named = [_planned(run, runs) for run in runs if unfit[run.run_id] == reason]
        what = (
            "; ".join(named)
            if len(named) <= _MOST_UNFIT
            else f"{named[0]} and {words.counted(len(named) - 1, 'more run')}"
        )
        yield f"{what} {'was' if len(named) == 1 else 'were'} not applicable here: {reason}"


def gaps(
    recordings: Sequence[Recording], unfit: Mapping[str, str], loads: Sequence[str], missing: Sequence[str]
) -> list[str]:
    """What was to be measured and is not there: runs not applicable, loads that no run has, runs never made."""
    return [
        *_not_applicable([run for run in recordings if run.run_id in unfit], unfit),
        *(f"load {load} was to be measured and is not among the runs" for load in loads),
        *(f"{run} was planned and is missing" for run in missing),
        *([] if recordings else ["there is no run to judge"]),
    ]
