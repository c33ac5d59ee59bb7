# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict: what the evidence says about a requirement, and why.

A verdict of PASS is what is left when no check has anything to say.  Each check is one function in one of the
two lists below; each yields findings, and the weightiest finding is the verdict:

* BROKEN: the data of a run cannot be trusted (of which kind of damage, the finding says);
* FAIL: more activations than allowed were beyond the limit;
* INCONCLUSIVE: too little is known; the finding says what would settle it.

Runs of one key (machine, configuration, load, …) are pooled; each CPU is judged by itself, since a task runs on
one, and a good CPU must not hide a bad one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fastenough.analysis import bounds, words
from fastenough.analysis.machine import counter_total, cpus_not_measured, events_of, pinned
from fastenough.analysis.measures import CONFIDENCE, Bound, bound_above_maximum
from fastenough.analysis.pool import Pool, grouped, judged_series, load_name, pool
from fastenough.model import Outcome, Requirement, Series, Verdict
from fastenough.recording import Recording
from fastenough.recording.head import Change, Setting

NEVER_MEANS_RATE = 1e-4
"""With a miss rate of 0, a PASS needs so many samples that a rate of one in 10,000 activations would have shown
itself: with fewer (29,956 at 95 %), "nothing was seen" says next to nothing.  What stays possible is printed."""

MINIMUM_DURATION_NS = 10 * 10**9
"""Shortest measurement a PASS can rest on: what the system does once a second has then happened ten times."""

UNACCOUNTED_SHARE = 0.05
"""Share of the due periods that may be absent from the owed view (start and end of the threads)."""

LIFE_SAFETY = ("This is no statement about life safety. No measurement can show that a deadline is never missed; "
               "fastenough gives no verdict where a missed deadline may injure or kill. Use hardware or a system "
               "certified for that purpose.")

SUPPORTED_MISS_RATES = (0.0, 0.001, 0.05)
"""Miss rates for which the hardest supported requirement is stated: never, one in a thousand, 95 %-hard."""


@dataclass(frozen=True)
class Finding:
    """One thing that stands against a PASS, in plain words, and what would settle it."""

    verdict: Verdict
    text: str
    settle: str | None = None
    more_samples: int | None = None
    more_ns: float | None = None


@dataclass(frozen=True)
class Minimum:
    """What a PASS needs at least, whatever was seen."""

    duration_ns: int
    rate: float


@dataclass(frozen=True)
class Supported:
    """The hardest requirement the data supports at one miss rate: nothing (or rarely enough) above ``limit_ns``."""

    miss_rate: float
    limit_ns: int
    confidence: float
    bound: Bound


@dataclass(frozen=True)
class Judgment:
    """What was found for runs of one key."""

    run_ids: tuple[str, ...]
    probe: str
    load: str | None
    verdict: Verdict
    findings: tuple[Finding, ...]
    maximum_ns: float | None
    worst_cpu: int | None
    n: int
    exceeded: int
    bound: Bound
    supported: tuple[Supported, ...]
    not_measured: tuple[int, ...] = ()
    """CPUs of the machine about which these runs say nothing."""


@dataclass(frozen=True)
class Assessment:
    """The verdict with all that stands behind it.

    ``requirement_derived``: no requirement was stated, so the hardest one the data could support was judged.
    ``all_not_applicable``: nothing could be measured here; the verdict is then INCONCLUSIVE and the command
    line ends with its own status.
    """

    verdict: Verdict
    headline: str
    reasons: tuple[str, ...]
    settle: tuple[str, ...]
    cautions: tuple[str, ...]
    requirement: Requirement | None
    requirement_derived: bool
    judgments: tuple[Judgment, ...]
    supported: tuple[Supported, ...]
    not_applicable: tuple[tuple[str, str], ...]
    all_not_applicable: bool
    emulated: bool
    life_safety: str = field(default=LIFE_SAFETY)


# --- checks of one run: can its data be trusted?


def _believed(recording: Recording) -> Iterator[Finding]:
    if recording.damage is not None:
        yield Finding(Verdict.BROKEN, f"it is not believed: {recording.damage}",
                      f"restore run {recording.run_id} from a copy, or remove it and measure it again")


def _whole(recording: Recording) -> Iterator[Finding]:
    if recording.end is None:
        yield Finding(Verdict.BROKEN, recording.cut_off or "the recording was cut off", "run it again to its end")


def _ended_well(recording: Recording) -> Iterator[Finding]:
    why = "; ".join(recording.reasons)
    if recording.outcome is Outcome.FAILED:
        yield Finding(Verdict.BROKEN, f"the run failed: {why or 'no reason is recorded'}", "mend that and run it again")
    if recording.outcome is Outcome.ABORTED:
        yield Finding(Verdict.INCONCLUSIVE, f"the run was aborted: {why or 'no reason is recorded'}",
                      "run it again to its end")


def _nothing_lost(recording: Recording) -> Iterator[Finding]:
    lost = sum(recording.lost(series.id) for series in recording.series)
    if lost:
        yield Finding(Verdict.BROKEN, f"{words.counted(lost, 'value')} lost, and the worst may be among them",
                      "run it again on a quieter machine or with a longer interval")


def _samples_taken(recording: Recording) -> Iterator[Finding]:
    if recording.outcome is Outcome.COMPLETED and not any(
            recording.totals[series.id].total for series in judged_series(recording)):
        yield Finding(Verdict.BROKEN, "the run ended as completed but holds no sample to judge", "run it again")


def _load_ran(recording: Recording) -> Iterator[Finding]:
    name = load_name(recording)
    proof = recording.end.load if recording.end else None
    if name is None:
        yield Finding(Verdict.INCONCLUSIVE, "the recording does not state under which load it was taken",
                      "measure with fastenough run or assess, which state and prove the load")
    elif name == "none":
        if proof is not None and proof.ran is False:
            yield Finding(Verdict.BROKEN, "what was to be an idle machine was not", "run it again")
    elif proof is None or proof.name != name:
        yield Finding(Verdict.BROKEN, f"there is no proof that the load {name} ran", "run it again")
    elif proof.ran is not True:
        why = "; ".join(proof.reasons) or "no reason is recorded"
        yield Finding(Verdict.BROKEN, f"the load {name} did not run: {why}", "mend that and run it again")
    elif proof.stated:
        yield Finding(Verdict.INCONCLUSIVE, f"that the load {name} ran was stated by a person and not proven",
                      "measure with a plan (fastenough run --plan), which runs and proves the load")


_REAL_TIME = {"policy", "priority", "memory_lock"}
"""Settings that make a real-time thread of a thread."""


def as_granted(recording: Recording) -> bool:
    """Measured although real-time scheduling was refused: says nothing about real-time threads, good or bad."""
    return "not-real-time" in recording.head.marks and any(
        setting.name in _REAL_TIME and setting.differs for setting in recording.head.settings)


def _whose(setting: Setting | Change) -> str:
    thread = "" if setting.thread is None else f" of thread {setting.thread}"
    return thread + ("" if setting.cpu is None else f" of cpu {setting.cpu}")


def _settings_as_asked(recording: Recording) -> Iterator[Finding]:
    less = as_granted(recording)
    if less:
        yield Finding(Verdict.INCONCLUSIVE, "measured with what was granted, which is no real-time scheduling; this "
                      "says nothing about real-time threads", "grant it (fastenough doctor says how) and run it again")
    for setting in recording.head.settings:
        if not setting.differs or (less and setting.name in _REAL_TIME):
            continue
        what = f"{setting.name}{_whose(setting)} was requested to be {setting.requested}"
        why = "" if setting.reason is None else f" ({setting.reason})"
        if setting.in_effect is None:
            yield Finding(Verdict.INCONCLUSIVE, f"{what} and could not be read back{why}",
                          f"make {setting.name} readable, or do not request it")
        else:
            yield Finding(Verdict.BROKEN, f"{what} but is {setting.in_effect}{why}",
                          "grant what is asked (fastenough doctor says how) and run it again")


def _settings_kept(recording: Recording) -> Iterator[Finding]:
    """A run that failed says so itself; one that was aborted is looked into."""
    if recording.outcome is Outcome.FAILED:
        return
    changes = [f"{change.name}{_whose(change)} from {change.before} to {change.after}"
               for change in (recording.end.changes if recording.end else ())]
    if changes:
        yield Finding(Verdict.BROKEN, f"settings changed while the run lasted: {'; '.join(changes)}",
                      "leave the probe's threads and the CPUs alone (chrt, taskset, cpusets, CPUs switched off) and "
                      "run it again")


def _clock_steady(recording: Recording) -> Iterator[Finding]:
    on_wall_clock = any("realtime" in series.clock.lower() for series in recording.series)
    stepped = (counter_total(recording, "clock_step_ns") or counter_total(recording, "clock_sets")
               or events_of(recording, "clock-step"))
    if on_wall_clock and stepped:
        yield Finding(Verdict.BROKEN, "the wall clock, by which this run was timed, was set while it ran",
                      "stop what sets the clock and run it again, or use the monotonic clock")


def _not_throttled(recording: Recording) -> Iterator[Finding]:
    if counter_total(recording, "throttled") or events_of(recording, "throttled"):
        yield Finding(Verdict.BROKEN, "RT throttling stopped the real-time tasks while they were measured",
                      "switch it off (sysctl kernel.sched_rt_runtime_us=-1), grant the control group more "
                      "(cpu.rt_runtime_us), or load the CPU less")


def _quota_kept(recording: Recording) -> Iterator[Finding]:
    periods = counter_total(recording, "cgroup_throttled")
    if periods:
        yield Finding(Verdict.BROKEN, f"a control group's CPU quota was used up in {words.counted(periods, 'period')}: "
                      "the probe or the load was held back, so the machine was not loaded as it should have been",
                      "take the quota away (cpu.max, cpu.cfs_quota_us; --cpus of a container) and run it again")


def _stayed_on_cpu(recording: Recording) -> Iterator[Finding]:
    moves = counter_total(recording, "migrations")
    if moves and pinned(recording):
        yield Finding(Verdict.BROKEN, f"threads pinned to a CPU each were moved to another "
                      f"({words.counted(moves, 'time')}), so their values are counted for the wrong CPU",
                      "let no CPU be unplugged and no affinity or cpuset be changed meanwhile, and run it again")


def _periods_accounted(recording: Recording) -> Iterator[Finding]:
    for series in judged_series(recording):
        if not series.corrected or series.period_ns is None:
            continue
        due = recording.duration_ns / series.period_ns
        held = recording.totals[series.id].total + recording.lost(series.id)
        if held < (1 - UNACCOUNTED_SHARE) * due - 1:
            yield Finding(Verdict.BROKEN, f"CPU {series.cpu} accounts for {words.number(held)} of about "
                          f"{words.number(round(due))} due periods: the rest is neither stored nor counted as lost",
                          "run it again; if it stays, the probe is at fault")
            return


def _not_emulated(recording: Recording) -> Iterator[Finding]:
    if is_emulated(recording):
        yield Finding(Verdict.INCONCLUSIVE, "emulated: no verdict; emulation proves function, never speed",
                      "measure on the real board")


RUN_CHECKS: tuple[Callable[[Recording], Iterator[Finding]], ...] = (
    _whole, _ended_well, _nothing_lost, _samples_taken, _load_ran, _settings_as_asked, _settings_kept, _clock_steady,
    _not_throttled, _quota_kept, _stayed_on_cpu, _periods_accounted, _not_emulated,
)


def _checks(recording: Recording) -> tuple[Callable[[Recording], Iterator[Finding]], ...]:
    """Of a recording that is not believed, no more is asked."""
    return RUN_CHECKS if recording.damage is None else (_believed,)


# --- checks of the runs of one key together: is the requirement met, and is that enough?


@dataclass(frozen=True)
class _Evidence:
    """Runs of one key whose data can be trusted, pooled per CPU and kind of series."""

    recordings: list[Recording]
    pools: list[Pool]
    requirement: Requirement
    minimum: Minimum


    def where(self, some: Sequence[Pool]) -> str:
        """Names the first of these, and how many there are beside it."""
        several_kinds = len({values.name for values in self.pools}) > 1
        parts = [some[0].name] if several_kinds or not some[0].cpus else []
        parts += [f"CPU {cpu}" for cpu in some[0].cpus]
        more = f" (and {len(some) - 1} more)" if len(some) > 1 else ""
        return f"on {', '.join(parts)}{more}"


def _within_limit(evidence: _Evidence) -> Iterator[Finding]:
    requirement = evidence.requirement
    counted = [(values, *values.exceeded(requirement.limit_ns)) for values in evidence.pools if values.judged]
    counted.sort(key=lambda entry: entry[1] / entry[0].judged, reverse=True)
    failed = [values for values, surely, _ in counted if surely > requirement.miss_rate * values.judged]
    if failed:
        yield _too_late(evidence, failed)
    astride = [values for values, surely, possibly in counted
               if surely <= requirement.miss_rate * values.judged < possibly]
    if astride:
        yield Finding(Verdict.INCONCLUSIVE, "the limit lies within a bucket of the histogram, so it cannot be told "
                      f"how many activations {evidence.where(astride)} took longer",
                      "choose a limit at the edge of a bucket, or record with a greater k")


def _too_late(evidence: _Evidence, failed: Sequence[Pool]) -> Finding:
    requirement, first = evidence.requirement, failed[0]
    allowed = "none is" if requirement.miss_rate == 0 else f"{words.rate(requirement.miss_rate)} is"
    late = words.number(first.exceeded(requirement.limit_ns)[0])
    worst_ns = max(values.maximum_ns or 0.0 for values in failed)
    return Finding(Verdict.FAIL, f"{late} of {words.counted(first.judged, 'activation')} {evidence.where(failed)} took "
                   f"longer than {words.latency(requirement.limit_ns)}; {allowed} allowed "
                   f"(worst {words.latency(worst_ns)})")


def _rate_shown(evidence: _Evidence) -> Iterator[Finding]:
    """The upper confidence bound of the rate must lie within what is allowed (or, for never, within the minimum)."""
    requirement = evidence.requirement
    required = requirement.miss_rate or evidence.minimum.rate
    lacking: list[tuple[float, Pool]] = []
    for values in evidence.pools:
        surely, possibly = values.exceeded(requirement.limit_ns)
        if surely > requirement.miss_rate * values.judged or (requirement.miss_rate == 0 and possibly):
            continue
        upper = bounds.rate_upper(possibly, values.judged, requirement.confidence)
        if upper > required:
            lacking.append((upper, values))
    if lacking:
        lacking.sort(key=lambda entry: entry[0], reverse=True)
        yield _too_few(evidence, lacking[0][0], required, [values for _, values in lacking])


def _too_few(evidence: _Evidence, upper: float, required: float, lacking: Sequence[Pool]) -> Finding:
    """``lacking``: the pools whose bound is too wide, the widest first."""
    requirement, weakest = evidence.requirement, lacking[0]
    every = len(lacking) == len(evidence.pools) > 1 and not cpus_not_measured(evidence.recordings)
    where = "on each CPU" if every else evidence.where(lacking)
    text = (f"{words.counted(weakest.judged, 'activation')} {where} do not exclude a rate of "
            f"{words.rate(upper)} at {words.percent(requirement.confidence)} confidence; "
            f"{words.rate(required)} must be shown")
    seen = weakest.exceeded(requirement.limit_ns)[1] / weakest.judged if weakest.judged else 0.0
    needed = bounds.samples_for_rate(required, seen, requirement.confidence)
    if needed is None:
        return Finding(Verdict.INCONCLUSIVE, text, "the rate seen is the rate allowed: no number of samples shows "
                       "that it is lower; choose a longer limit or a higher miss rate")
    more = max(1, needed - weakest.judged)
    more_ns = None if weakest.period_ns is None else float(more * weakest.period_ns)
    how_long = "" if more_ns is None else f" ({words.duration(words.round_up(more_ns))} more)"
    settle = f"{words.counted(words.round_up(more), 'more sample')} on each CPU{how_long}"
    return Finding(Verdict.INCONCLUSIVE, text, settle, more, more_ns)


def _long_enough(evidence: _Evidence) -> Iterator[Finding]:
    duration_ns = sum(recording.duration_ns for recording in evidence.recordings)
    wanted_ns = evidence.minimum.duration_ns
    if duration_ns < wanted_ns:
        more_ns = wanted_ns - duration_ns
        yield Finding(Verdict.INCONCLUSIVE, f"{words.duration(duration_ns)} were measured, at least "
                      f"{words.duration(wanted_ns)} are needed", f"measure {words.duration(more_ns)} longer",
                      more_ns=float(more_ns))


def _own_machine(evidence: _Evidence) -> Iterator[Finding]:
    """On a machine whose time a hypervisor takes, the maxima seen are the hypervisor's, and not the worst."""
    if evidence.requirement.miss_rate == 0 and steal_text(evidence.recordings) is not None:
        yield Finding(Verdict.INCONCLUSIVE, "no worst-case verdict on this machine: its hypervisor takes time from it "
                      "(steal), or may, unseen",
                      "measure on the bare machine, or on a host that takes no time from the guest")


EVIDENCE_CHECKS: tuple[Callable[[_Evidence], Iterator[Finding]], ...] = (
    _within_limit, _rate_shown, _long_enough, _own_machine,
)


def is_emulated(recording: Recording) -> bool:
    return "emulated" in recording.head.marks


def steal_text(recordings: Sequence[Recording]) -> str | None:
    """In words, that a hypervisor took time or may have; None where it did not."""
    steals = [counter_total(recording, "steal_ns") for recording in recordings]
    known = sum(steal for steal in steals if steal is not None)
    if known:
        return f"its hypervisor took {words.duration(known)} of its time (steal) while it was measured"
    virtual = any("virtual-machine" in recording.head.marks for recording in recordings)
    if virtual and any(steal is None for steal in steals):
        return "it is a virtual machine, and how much time its hypervisor took (steal) cannot be read"
    before = max((_stolen_before(recording) for recording in recordings), default=0)
    if before:
        return (f"its hypervisor took {words.duration(before)} of its time (steal) since it was booted, though none "
                "that was counted while it was measured")
    return None


def _stolen_before(recording: Recording) -> int:
    """Stolen time since boot, in ns: a machine from which time is taken stays one when a short run sees none of it."""
    profile = recording.head.profile or {}
    return int(profile.get("steal_so_far_ns") or 0)


# --- judgment

_WEIGHT_IN_GROUP = (Verdict.BROKEN, Verdict.FAIL, Verdict.INCONCLUSIVE)
_WEIGHT_OVERALL = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE)
"""Within one key, damaged data says nothing; over all keys, a failure shown by sound data stands."""


def _weightiest(verdicts: Sequence[Verdict], order: Sequence[Verdict]) -> Verdict:
    return next((verdict for verdict in order if verdict in verdicts), Verdict.PASS)


def _pools(recordings: Sequence[Recording]) -> list[Pool]:
    """The judged series of runs of one key, pooled per kind and CPU."""
    groups: dict[str, list[tuple[Recording, Series]]] = {}
    for recording in recordings:
        for series in judged_series(recording):
            label = repr((series.name, series.cpu, sorted(series.labels.items())))
            groups.setdefault(label, []).append((recording, series))
    return [pool(parts) for parts in groups.values()]


def _supported(pools: Sequence[Pool], miss_rate: float, confidence: float) -> Supported | None:
    """The smallest limit, of two digits, that every CPU keeps at this miss rate; None: too few samples."""
    limits = []
    for values in pools:
        if miss_rate == 0:
            limits.append(values.maximum_ns)
            continue
        rank = bounds.quantile_upper_rank(1 - miss_rate, values.judged, confidence)
        if rank is None or rank > values.n:
            return None
        _, highest, count = values.magnitudes()
        limits.append(float(highest[count.cumsum().searchsorted(rank)]))
    known = [limit for limit in limits if limit is not None]
    if not known:
        return None
    weakest = min(pools, key=lambda values: values.judged)
    return Supported(miss_rate, words.round_up(max(known)), confidence, bound_above_maximum(weakest, confidence))


def _all_supported(pools: Sequence[Pool], confidence: float) -> tuple[Supported, ...]:
    filled = [values for values in pools if values.n]
    found = (_supported(filled, miss_rate, confidence) for miss_rate in SUPPORTED_MISS_RATES)
    return tuple(supported for supported in found if supported is not None)


def _judge_group(recordings: list[Recording], requirement: Requirement, minimum: Minimum) -> Judgment:
    checked = [(recording, [finding for check in _checks(recording) for finding in check(recording)])
               for recording in recordings]
    named = len(recordings) > 1 or recordings[0].damage is not None
    findings = [replace(finding, text=f"run {recording.run_id}: {finding.text}") if named else finding
                for recording, found in checked for finding in found]
    pools = _pools(recordings)
    if not any(is_emulated(recording) for recording in recordings):
        sound = [r for r, found in checked
                 if not as_granted(r) and all(f.verdict is not Verdict.BROKEN for f in found)]
        if sound:
            evidence = _Evidence(sound, _pools(sound), requirement, minimum)
            findings += [finding for check in EVIDENCE_CHECKS for finding in check(evidence)]
    worst = max(pools, key=lambda values: values.maximum_ns or 0.0, default=None)
    weakest = min(pools, key=lambda values: values.judged, default=None)
    return Judgment(
        run_ids=tuple(recording.run_id for recording in recordings),
        probe=str(recordings[0].head.probe),
        load=load_name(recordings[0]),
        verdict=_weightiest([finding.verdict for finding in findings], _WEIGHT_IN_GROUP),
        findings=tuple(findings),
        maximum_ns=None if worst is None else worst.maximum_ns,
        worst_cpu=None if worst is None or not worst.cpus else worst.cpus[0],
        n=sum(values.judged for values in pools),
        exceeded=sum(values.exceeded(requirement.limit_ns)[0] for values in pools),
        bound=(Bound(0, requirement.confidence, 1.0, None) if weakest is None
               else bound_above_maximum(weakest, requirement.confidence)),
        supported=_all_supported(pools, requirement.confidence),
        not_measured=tuple(cpus_not_measured(recordings)),
    )


def _derived(recordings: Sequence[Recording], confidence: float) -> Requirement | None:
    """The hardest requirement the data could support: nothing above the greatest value seen, rounded up.

    The bound that belongs to a limit chosen after the fact is the same as for one chosen before: the chance
    that n values all stay below a point exceeded at rate p is (1 - p)^n for the sample's own maximum too.
    """
    maxima = [values.maximum_ns for group in grouped(recordings) for values in _pools(group) if values.n]
    known = [maximum for maximum in maxima if maximum is not None]
    return Requirement(words.round_up(max(known)), confidence=confidence) if known else None


def _requirement_text(requirement: Requirement) -> str:
    limit = words.latency(requirement.limit_ns)
    if requirement.miss_rate == 0:
        return f"never later than {limit}"
    return f"later than {limit} in no more than {words.rate(requirement.miss_rate)} activations"


_EMULATED = "Emulated: no verdict. Function was shown; speed can only be measured on the real board"


def _headline(verdict: Verdict, requirement: Requirement | None, derived: bool) -> str:
    if requirement is None:
        return "There is nothing to judge"
    what = _requirement_text(requirement)
    if derived:
        said = f"No limit was stated. Hardest requirement these data reach: {what}"
        return {Verdict.PASS: f"{said}",
                Verdict.BROKEN: "The measurement is broken: no requirement can be judged by it",
                Verdict.INCONCLUSIVE: f"{said}; but they do not prove it"}[verdict]
    return {
        Verdict.PASS: f"Fast enough: {what}, as far as these samples reach",
        Verdict.FAIL: f"Not fast enough for: {what}",
        Verdict.INCONCLUSIVE: f"Not decided: {what}",
        Verdict.BROKEN: f"The measurement is broken; it cannot say whether: {what}",
    }[verdict]


_USUAL_PROBE = "timer"


def _label(judgment: Judgment) -> str:
    """Which runs; the probe is named where it is not the usual one."""
    load = "no load stated" if judgment.load is None else f"load {judgment.load}"
    return load if judgment.probe == _USUAL_PROBE else f"{judgment.probe} ({load})"


def _pass_reason(judgment: Judgment, requirement: Requirement) -> str:
    seen = ("nothing above the limit" if judgment.exceeded == 0
            else f"{words.number(judgment.exceeded)} above the limit")
    missing = _not_measured_text(judgment.not_measured)
    return (f"{_label(judgment)}: {words.counted(judgment.n, 'activation')}, {seen}, worst "
            f"{words.latency(judgment.maximum_ns)}; above that, {judgment.bound.text} "
            f"({words.percent(requirement.confidence)} confidence, each CPU{' measured' if missing else ''}){missing}")


def _not_measured_text(cpus: Sequence[int]) -> str:
    """To be added to a sentence; nothing where every CPU was measured."""
    return f"; {words.cpus(cpus)} {'was' if len(cpus) == 1 else 'were'} not measured" if cpus else ""


def _with_not_measured(headline: str, verdict: Verdict, judgments: Sequence[Judgment]) -> str:
    """A statement about the machine names the CPUs it does not reach; a failure on one of them needs no more."""
    missing = sorted({cpu for judgment in judgments for cpu in judgment.not_measured})
    reaches = verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    return headline + _not_measured_text(missing) if reaches else headline


def _merged(texts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Findings said of several loads in the same words are printed once."""
    by_text: dict[str, list[str]] = {}
    for label, text in texts:
        labels = by_text.setdefault(text, [])
        if label not in labels:
            labels.append(label)
    return tuple(f"{', '.join(labels)}: {text}" for text, labels in by_text.items())


def _reasons(judgments: Sequence[Judgment], requirement: Requirement, verdict: Verdict) -> tuple[str, ...]:
    """What led to the verdict.  Where a limit was broken, what else is too little known does not matter."""
    telling = _WEIGHT_OVERALL[:2] if verdict is Verdict.FAIL else _WEIGHT_OVERALL
    ordered = [(_label(judgment), finding.text) for weight in telling for judgment in judgments
               for finding in judgment.findings if finding.verdict is weight]
    passed = tuple(_pass_reason(judgment, requirement) for judgment in judgments if judgment.verdict is Verdict.PASS)
    return _merged(ordered) + passed


def _settle(judgments: Sequence[Judgment], verdict: Verdict) -> tuple[str, ...]:
    """What would settle it; a failure is settled."""
    if verdict is Verdict.FAIL:
        return ()
    return _merged([(_label(judgment), finding.settle) for judgment in judgments
                    for finding in judgment.findings if finding.settle])


def _cautions(recordings: Sequence[Recording], verdict: Verdict) -> Iterator[str]:
    marks = {mark for recording in recordings for mark in recording.head.marks}
    stolen = steal_text(recordings)
    if stolen is not None and "emulated" not in marks:
        if verdict is Verdict.FAIL:
            yield f"This machine as it is has failed; yet {stolen}, and that may be the cause"
        else:
            yield f"What was seen holds for this host at that time only: {stolen}"
    if "self-measured" in marks:
        yield "Self-measured: the board timed itself, no external instrument confirms it"
    if "not-real-time" in marks:
        yield "The measured threads did not run under a real-time policy"
    smi = sum(counter_total(recording, "smi") or 0 for recording in recordings)
    if smi:
        yield f"{words.number(smi)} system management interrupts stopped the whole machine while it was measured"
    if recordings:
        yield "A maximum is a lower bound of the worst case: longer measurement finds greater ones"


def _measures_speed_only(recording: Recording) -> bool:
    """Whether a run that went well holds throughput and nothing else: a limit on latency says nothing about it."""
    return recording.outcome is Outcome.COMPLETED and bool(recording.series) and not judged_series(recording)


def _missing_loads(recordings: Sequence[Recording], loads: Sequence[str] | None) -> list[str]:
    present = {load_name(recording) for recording in recordings}
    return [load for load in loads or () if load not in present]


def judge(recordings: Sequence[Recording], requirement: Requirement | None = None, *,
          confidence: float = CONFIDENCE, loads: Sequence[str] | None = None, missing: Sequence[str] = (),
          minimum_duration_ns: int = MINIMUM_DURATION_NS, minimum_rate: float = NEVER_MEANS_RATE) -> Assessment:
    """Judge a requirement by recordings; without one, judge the hardest the data could support.

    ``confidence`` is used where no requirement states one.  ``loads``: names of the loads that were to be
    measured; one that is missing forbids a PASS, and so does each run in ``missing``, which were planned and are not
    among the recordings.  ``minimum_duration_ns``: measured time a PASS needs under each load.  ``minimum_rate``:
    what must be excluded for a miss rate of 0 (see NEVER_MEANS_RATE).  Never raises for what recordings hold: that is
    a finding.
    """
    unfit = tuple((recording.run_id, "; ".join(recording.reasons) or "no reason is recorded")
                  for recording in recordings if recording.outcome is Outcome.NOT_APPLICABLE)
    measured = [recording for recording in recordings if recording.outcome is not Outcome.NOT_APPLICABLE]
    judgeable = [recording for recording in measured if not _measures_speed_only(recording)]
    minimum = Minimum(minimum_duration_ns, minimum_rate)
    derived = requirement is None
    judged = _derived(judgeable, confidence) if requirement is None else requirement
    standing = judged or Requirement(1)
    judgments = tuple(_judge_group(group, standing, minimum) for group in grouped(judgeable))
    gaps = _gaps(recordings, unfit, _missing_loads(recordings, loads), missing)
    if measured and not judgeable:
        gaps.append("what was measured is throughput: there is no latency to judge")
    verdicts = [judgment.verdict for judgment in judgments] + [Verdict.INCONCLUSIVE] * bool(gaps or not measured)
    verdict = _weightiest(verdicts, _WEIGHT_OVERALL)
    emulated = any(is_emulated(recording) for recording in measured)
    return Assessment(
        verdict=verdict,
        headline=(_EMULATED if emulated and verdict is Verdict.INCONCLUSIVE
                  else _with_not_measured(_headline(verdict, judged, derived), verdict, judgments)),
        reasons=_reasons(judgments, standing, verdict) + tuple(gaps),
        settle=_settle(judgments, verdict) + ("measure what is missing, or leave it out of the question",) * bool(gaps)
        + ("go on with the campaign: the command that began it, with --resume (an experiment: measure it anew)",)
        * bool(missing),
        cautions=tuple(_cautions(measured, verdict)),
        requirement=judged,
        requirement_derived=derived,
        judgments=judgments,
        supported=_overall_supported(judgments),
        not_applicable=unfit,
        all_not_applicable=bool(recordings) and not measured and not missing,
        emulated=emulated,
    )


def _gaps(recordings: Sequence[Recording], unfit: Sequence[tuple[str, str]], loads: Sequence[str],
          missing: Sequence[str]) -> list[str]:
    """What was to be measured and is not there: runs not applicable, loads that no run has, runs never made."""
    return [
        *(f"run {run_id} was not applicable here: {reason}" for run_id, reason in unfit),
        *(f"load {load} was asked for and is not among the runs" for load in loads),
        *(f"{run} was planned and is missing" for run in missing),
        *([] if recordings else ["there is no run to judge"]),
    ]


def _overall_supported(judgments: Sequence[Judgment]) -> tuple[Supported, ...]:
    """Per miss rate, what every load supports: the longest of their limits."""
    overall = []
    for miss_rate in SUPPORTED_MISS_RATES:
        found = [s for judgment in judgments for s in judgment.supported if s.miss_rate == miss_rate]
        if judgments and len(found) == len(judgments):
            weakest = min(found, key=lambda s: s.bound.n)
            longest = max(found, key=lambda s: s.limit_ns)
            overall.append(Supported(miss_rate, longest.limit_ns, longest.confidence, weakest.bound))
    return tuple(overall)
