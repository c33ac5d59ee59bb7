# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of one run: whether its data can be trusted.  One function per check, and the list of all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fastenough import words
from fastenough.analysis.assessment import CheckFinding
from fastenough.analysis.edge_agreement import agreement
from fastenough.analysis.load_checks import load_ran
from fastenough.analysis.machine import (
    COUNTERS,
    counter_total,
    events_of,
    is_emulated,
    may_be_virtual,
    may_have_quota,
    pinned,
    went_backwards,
)
from fastenough.analysis.merged import judged_series
from fastenough.analysis.periods import (
    EDGE_PERIODS,
    absent_before_the_end,
    accounted,
    acts_not_corrected,
    caught_up,
    lacks_late_act,
    time_of_periods_ns,
    unseen_at_start_ns,
)
from fastenough.analysis.series_checks import series_as_measured, series_complete
from fastenough.model import IMPORTED, Outcome, Series, Verdict
from fastenough.recording import Recording
from fastenough.recording.head import NOT_APPLICABLE, RecordedSetting, SettingChange

UNACCOUNTED_SHARE = 0.05
"""Share of missing or surplus periods above which a corrected series is BROKEN."""
HOLE_SHARE = 0.1
"""Share of a run in which a series may have no value; of an instrument's run, for the error of its clock and the end of
the board's task."""


def _undamaged(recording: Recording) -> Iterator[CheckFinding]:
    if recording.damage is not None:
        yield CheckFinding(
            Verdict.BROKEN,
            f"integrity check failed: {recording.damage}",
            f"restore run {recording.run_id} from a copy, or remove it and measure it again",
        )


def _whole(recording: Recording) -> Iterator[CheckFinding]:
    if recording.end is None:
        yield CheckFinding(Verdict.BROKEN, recording.cut_off or "the recording was cut off", "run it again to its end")


def _ended_well(recording: Recording) -> Iterator[CheckFinding]:
    why = "; ".join(recording.reasons)
    if recording.outcome is Outcome.FAILED:
        yield CheckFinding(
            Verdict.BROKEN, f"the run failed: {why or 'no reason is recorded'}", "fix the cause, then rerun"
        )
    if recording.outcome is Outcome.ABORTED:
        yield CheckFinding(
            Verdict.INCONCLUSIVE, f"the run was aborted: {why or 'no reason is recorded'}", "run it again to its end"
        )


def _nothing_lost(recording: Recording) -> Iterator[CheckFinding]:
    lost = sum(recording.lost(series.id) for series in recording.series)
    if lost:
        yield CheckFinding(
            Verdict.BROKEN,
            f"{words.counted(lost, 'value')} lost; the maximum may be among the lost values",
            "run it again on a quieter machine or with a longer interval",
        )
    yield from _edges_agree(recording, lost)


def _edges_agree(recording: Recording, lost: int) -> Iterator[CheckFinding]:
    """Instrument and board count the same edges, where both counted, and no edges but responses.

    ``lost``: values that the recording counts as lost; among them are samples that the instrument cut.
    """
    if recording.head.instrument is None or recording.end is None or recording.outcome is not Outcome.COMPLETED:
        return
    if spurious := recording.end.counters.get("spurious"):
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"the instrument saw {words.counted(spurious, 'edge')} without a stimulus; such an edge after a stimulus "
            "is taken for the response, so latencies may be too small",
            "check the wires for noise; if an output bounces, set the shortest wait (--min) longer than that",
        )
    counts = agreement(recording)
    if counts is None:
        return
    if counts.lost_uncounted and counts.lost_uncounted > lost - counts.timeouts:
        yield CheckFinding(
            Verdict.BROKEN,
            f"the instrument did not see {words.counted(counts.lost_uncounted, 'edge')} of the board; {counts.text}",
            "check the wires between the instrument and the board, then rerun",
        )
    if counts.not_made:
        yield CheckFinding(
            Verdict.BROKEN,
            f"the instrument counted {words.counted(counts.not_made, 'edge')} that the board did not make, so "
            f"latencies may be too small; {counts.text}",
            "check the wires between the instrument and the board for noise and bounces, then rerun",
        )


def _samples_taken(recording: Recording) -> Iterator[CheckFinding]:
    if recording.outcome is Outcome.COMPLETED and not any(
        recording.totals[series.id].total for series in judged_series(recording)
    ):
        yield CheckFinding(Verdict.BROKEN, "the run completed but holds no latency", "run it again")


_REAL_TIME = {"policy", "priority", "memory_lock"}
"""Settings that make a thread a real-time thread."""


def without_real_time(recording: Recording) -> bool:
    """Whether real-time scheduling was refused: the run allows no conclusion about real-time threads."""
    return "not-real-time" in recording.head.marks and any(
        setting.name in _REAL_TIME and setting.differs for setting in recording.head.settings
    )


def _whose(setting: RecordedSetting | SettingChange) -> str:
    thread = "" if setting.thread is None else f" of thread {setting.thread}"
    return thread + ("" if setting.cpu is None else f" of cpu {setting.cpu}")


def _settings_in_effect(recording: Recording) -> Iterator[CheckFinding]:
    less = without_real_time(recording)
    if less:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            "scheduling in effect was not real-time; no conclusion about real-time threads",
            "grant real-time scheduling (see fastenough doctor), then rerun",
        )
    for setting in recording.head.settings:
        if not setting.differs or (less and setting.name in _REAL_TIME):
            continue
        requested = f"{setting.name}{_whose(setting)} was requested as {setting.requested}"
        why = "" if setting.reason is None else f" ({setting.reason})"
        if (setting.reason or "").startswith(NOT_APPLICABLE):
            yield CheckFinding(
                Verdict.INCONCLUSIVE,
                f"{requested}, which is {setting.reason}",
                f"do not request {setting.name} where it is not applicable",
            )
        elif setting.in_effect is None:
            yield CheckFinding(
                Verdict.INCONCLUSIVE,
                f"{requested} and could not be read back{why}",
                f"make {setting.name} readable, or do not request it",
            )
        else:
            yield CheckFinding(
                Verdict.BROKEN,
                f"{requested} but is {setting.in_effect}{why}",
                "fix the cause (see fastenough doctor), then rerun",
            )


_SCHEDULING = ("policy", "priority", "affinity", "memory_lock")
"""Settings that the probe requests for its threads, and reads back before and after the run."""


def _tells_of_its_board(recording: Recording) -> bool:
    """Whether this recording holds settings and counters; of a run with an instrument, the board's own one does."""
    return (
        recording.head.instrument is None
        and recording.outcome is Outcome.COMPLETED
        and bool(recording.series)
        and not is_emulated(recording)
    )


def _policy_known(recording: Recording) -> Iterator[CheckFinding]:
    """Except for tasks in the kernel: an interrupt handler has no policy."""
    if recording.head.implementation.endswith("-kernel"):
        return
    requested = [
        setting.requested
        for setting in recording.head.settings
        if setting.name == "policy" and setting.requested is not None
    ]
    stated = recording.head.parameters.get("policy")
    if not requested:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            "no scheduling policy was requested and read back; the scheduling of the measured threads is unknown",
            "measure with the probe of this version, which reads it back",
        )
    elif stated is not None and stated not in requested:
        yield CheckFinding(
            Verdict.BROKEN, f"the recording states policy {stated}, but no thread requested it", "run it again"
        )


def _settings_known(recording: Recording) -> Iterator[CheckFinding]:
    if not _tells_of_its_board(recording):
        return
    yield from _policy_known(recording)
    after = (
        {setting.place for setting in recording.end.settings or () if setting.in_effect is not None}
        if recording.end
        else set()
    )
    unread = [
        setting
        for setting in recording.head.settings
        if setting.requested is not None and setting.name in _SCHEDULING and setting.place not in after
    ]
    if unread:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{unread[0].name}{_whose(unread[0])} was not read back after the run; it may have changed",
            "measure with the probe of this version, which reads it again",
        )


def _settings_kept(recording: Recording) -> Iterator[CheckFinding]:
    """Except of failed runs, which another check reports."""
    if recording.outcome is Outcome.FAILED:
        return
    changes = [
        f"{change.name}{_whose(change)} from {change.before} to {change.after}"
        for change in (recording.end.changes if recording.end else ())
    ]
    if changes:
        yield CheckFinding(
            Verdict.BROKEN,
            f"settings changed since they were made: {'; '.join(changes)}",
            "stop whatever changes them (chrt, taskset, cpusets, hotplug, irqbalance, tuned, a governor daemon), then "
            "rerun",
        )


_TAKES_TIME = ("steal_ns", "suspended_ns", "throttled", "cgroup_throttled", "thermal_throttled", "frequency_limited")
"""Counters of lost CPU time or speed."""


def _counters_readable(recording: Recording) -> Iterator[CheckFinding]:
    """Lost CPU time must have been counted; of a run with an instrument, in the board's own recording."""
    names = [name for name in _TAKES_TIME if went_backwards(recording, name)]
    if _tells_of_its_board(recording):
        names += ["throttled", "suspended_ns"] + ["steal_ns"] * may_be_virtual(recording)
        names += ["cgroup_throttled"] * may_have_quota(recording)
        names += ["clock_step_ns"] * _on_wall_clock(recording)
        names += ["frequency_limited"] * (_scales_frequencies(recording) and not _counts_heat(recording))
    unknown = [COUNTERS[name] for name in dict.fromkeys(names) if counter_total(recording, name) is None]
    if unknown:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"a counter could not be read: {'; '.join(unknown)}",
            "measure where it can be read (see fastenough doctor), or with the probe of this version",
        )


def _scales_frequencies(recording: Recording) -> bool:
    return bool(((recording.head.profile or {}).get("frequency") or {}).get("cpus"))


def _counts_heat(recording: Recording) -> bool:
    return counter_total(recording, "thermal_throttled") is not None


def _on_wall_clock(recording: Recording) -> bool:
    return any("realtime" in series.clock.lower() for series in recording.series)


def _clock_steady(recording: Recording) -> Iterator[CheckFinding]:
    stepped = any(counter_total(recording, name) for name in ("clock_step_ns", "clock_sets")) or events_of(
        recording, "clock-step"
    )
    if _on_wall_clock(recording) and stepped:
        yield CheckFinding(
            Verdict.BROKEN,
            "the wall clock, which timed this run, was set during the run",
            "stop the service that sets the clock and rerun, or use the monotonic clock",
        )


def _not_suspended(recording: Recording) -> Iterator[CheckFinding]:
    """The monotonic clock stands still during suspend; real time does not."""
    ns = counter_total(recording, "suspended_ns")
    if ns:
        yield CheckFinding(
            Verdict.BROKEN,
            f"the machine was suspended for {words.duration(ns)} during the measurement",
            "inhibit suspend (systemd-inhibit), then rerun",
        )


def _not_throttled(recording: Recording) -> Iterator[CheckFinding]:
    if counter_total(recording, "throttled") or events_of(recording, "throttled"):
        yield CheckFinding(
            Verdict.BROKEN,
            "RT throttling stopped the real-time tasks during the measurement",
            "disable it (sysctl kernel.sched_rt_runtime_us=-1), raise the control group's budget "
            "(cpu.rt_runtime_us), or reduce the load",
        )


def _quota_kept(recording: Recording) -> Iterator[CheckFinding]:
    periods = counter_total(recording, "cgroup_throttled")
    if periods:
        yield CheckFinding(
            Verdict.BROKEN,
            f"a control group used up its CPU quota in {words.counted(periods, 'period')}; the probe or the load was "
            "throttled",
            "remove the quota (cpu.max, cpu.cfs_quota_us; --cpus of a container), then rerun",
        )


def _not_slowed(recording: Recording) -> Iterator[CheckFinding]:
    """Latencies at changing CPU speed are those of neither speed."""
    times, looks = counter_total(recording, "thermal_throttled"), counter_total(recording, "frequency_limited")
    if times or looks:
        how = (
            f"thermal throttling slowed the CPUs {words.counted(times, 'time')}"
            if times
            else f"a CPU's frequency limit was lower than at the start in {words.counted(looks or 0, 'interval')}"
        )
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{how}: CPU speed changed during the run",
            "cool the machine or limit its frequency to a sustainable one, then rerun",
        )


def _stayed_on_cpu(recording: Recording) -> Iterator[CheckFinding]:
    moves = counter_total(recording, "migrations")
    if moves and pinned(recording):
        yield CheckFinding(
            Verdict.BROKEN,
            f"pinned threads were moved to another CPU ({words.counted(moves, 'time')}), so their values are "
            "attributed to the wrong CPU",
            "do not unplug CPUs or change affinities or cpusets during the run, then rerun",
        )


_PERIODIC = ("timer", "periodic", "jitter")
"""Probes with an activation due at every interval."""


def _periods_accounted(recording: Recording) -> Iterator[CheckFinding]:
    """A periodic series accounts for each due period exactly once: by a value, as missed or as lost.

    An instrument does not begin with the board, so periods at the edges are allowed.  Imported series are left to
    :func:`_measured_by_us`.
    """
    for series in judged_series(recording):
        if not series.corrected and IMPORTED in recording.head.marks:
            continue
        if series.period_ns is None:
            if series.corrected or recording.head.probe in _PERIODIC:
                yield CheckFinding(
                    Verdict.INCONCLUSIVE,
                    f"{series.name} does not state its period, so missing values cannot be detected",
                    "judge a probe with a fixed period, such as timer",
                )
                return
            continue
        held = accounted(recording, series)
        most = recording.duration_ns / series.period_ns
        due_ns = time_of_periods_ns(recording, series)
        absent = max(due_ns / series.period_ns - held - EDGE_PERIODS, absent_before_the_end(recording, series, due_ns))
        allowed = 0 if recording.head.instrument is None else HOLE_SHARE * most
        if absent > allowed and _emulated_and_counted(recording):
            yield CheckFinding(
                Verdict.INCONCLUSIVE,
                f"{series.name}{_of_cpu(series)}: the emulated board ran {words.number(held)} of about "
                f"{words.number(round(most))} due periods; the instrument counted every edge of them",
                "measure on the real board",
            )
            return
        if absent > allowed:
            severe = absent > UNACCOUNTED_SHARE * most
            yield CheckFinding(
                Verdict.BROKEN if severe else Verdict.INCONCLUSIVE,
                f"{series.name}{_of_cpu(series)} accounts for {words.number(held)} of about "
                f"{words.number(round(most))} due periods; the rest is neither stored nor counted as lost, "
                "and may have exceeded the limit",
                "run it again; if it recurs, report a defect of the probe",
            )
            return
        if held - caught_up(recording, series) > (1 + UNACCOUNTED_SHARE) * most + 1:
            yield CheckFinding(
                Verdict.BROKEN,
                f"{series.name}{_of_cpu(series)} has {words.number(held)} values for about "
                f"{words.number(round(most))} due periods, which is impossible",
                "run it again; if it recurs, report a defect of the probe",
            )
            return


def _seen_from_the_begin(recording: Recording) -> Iterator[CheckFinding]:
    """An instrument sees the first edge of a periodic board at once, or as soon as the board's task has started.

    An emulated board may start as late as it likes.
    """
    if recording.head.instrument is None or is_emulated(recording):
        return
    for series in judged_series(recording):
        unseen_ns = unseen_at_start_ns(recording, series) if series.two_sided and series.period_ns else 0.0
        if unseen_ns:
            yield CheckFinding(
                Verdict.INCONCLUSIVE,
                f"{series.name}: the instrument saw no edge in the first {words.duration(unseen_ns)}; periods before "
                "the first edge are neither stored nor counted as lost, and may have exceeded the limit",
                "start the board's program before the instrument, then rerun",
            )
            return


def _emulated_and_counted(recording: Recording) -> bool:
    """Whether a slow guest explains missing periods: it is emulated, and counted as many edges as the instrument."""
    counts = agreement(recording)
    return is_emulated(recording) and counts is not None and counts.complete


def _of_cpu(series: Series) -> str:
    return "" if series.cpu is None else f" on CPU {series.cpu}"


def _acts_corrected(recording: Recording) -> Iterator[CheckFinding]:
    """A corrected series must hold each activation of the plain one, and if periods were missed, one that began a
    period late."""
    for series in judged_series(recording):
        if not series.corrected or recording.end is None:
            continue
        absent = acts_not_corrected(recording, series)
        if absent or lacks_late_act(recording, series):
            missed = words.counted(recording.missed(series.id), "missed period")
            what = (
                f"lacks {words.counted(absent, 'value')} of the series that it corrects"
                if absent
                else f"has {missed}, and no value as long as a period"
            )
            yield CheckFinding(
                Verdict.BROKEN,
                f"{series.name}{_of_cpu(series)} {what}; one above the limit may be among them",
                "run it again; if it recurs, report a defect of the probe",
            )
            return


def _without_holes(recording: Recording) -> Iterator[CheckFinding]:
    """A series that is not corrected must have values throughout the run."""
    for series in judged_series(recording):
        if series.corrected:
            continue
        hole_ns = recording.duration_ns - recording.covered_ns(series.id)
        if hole_ns > HOLE_SHARE * recording.duration_ns and recording.totals[series.id].total:
            whose = series.name if series.cpu is None else f"{series.name} on CPU {series.cpu}"
            yield CheckFinding(
                Verdict.INCONCLUSIVE,
                f"{whose} has no value in {words.duration(hole_ns)} of the "
                f"{words.duration(recording.duration_ns)} measured",
                "run it again without interruption",
            )
            return


def _not_emulated(recording: Recording) -> Iterator[CheckFinding]:
    if is_emulated(recording):
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            "emulated: no verdict; timing under emulation is not meaningful",
            "measure on the real board",
        )


def _measured_by_us(recording: Recording) -> Iterator[CheckFinding]:
    """The output of another tool lacks the evidence that a verdict requires."""
    if IMPORTED in recording.head.marks:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"imported from {recording.head.tool.name}, which records no missed activations (coordinated "
            "omission), no settings read back, no lost CPU time and no proof of the load",
            "measure it with fastenough run or assess",
        )


RUN_CHECKS: tuple[Callable[[Recording], Iterator[CheckFinding]], ...] = (
    _whole,
    _ended_well,
    _nothing_lost,
    _samples_taken,
    load_ran,
    _settings_in_effect,
    _settings_known,
    _settings_kept,
    _counters_readable,
    _clock_steady,
    _not_throttled,
    _quota_kept,
    _not_slowed,
    _stayed_on_cpu,
    series_complete,
    series_as_measured,
    _periods_accounted,
    _seen_from_the_begin,
    _acts_corrected,
    _without_holes,
    _not_suspended,
    _not_emulated,
    _measured_by_us,
)


def check_title(check: Callable[..., Iterator[CheckFinding]]) -> str:
    """The title of a check, from the name of its function."""
    title = check.__name__.strip("_").replace("_", " ")
    return title[0].upper() + title[1:]


def is_broken(findings: Iterable[CheckFinding]) -> bool:
    """Whether the data of these findings are BROKEN."""
    return any(finding.verdict is Verdict.BROKEN for finding in findings)


def findings_of(recording: Recording) -> list[CheckFinding]:
    """The findings of every check; of a damaged recording, only the damage."""
    return _findings(recording, RUN_CHECKS)


def findings_between(recording: Recording) -> list[CheckFinding]:
    """The findings of all checks except that for emulation, which forbids a verdict but not a comparison of runs of
    one board."""
    return _findings(recording, [check for check in RUN_CHECKS if check is not _not_emulated])


def _findings(
    recording: Recording, checks: Sequence[Callable[[Recording], Iterator[CheckFinding]]]
) -> list[CheckFinding]:
    applicable = checks if recording.damage is None else (_undamaged,)
    return [finding for check in applicable for finding in check(recording)]
