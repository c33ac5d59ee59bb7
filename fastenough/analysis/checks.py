# SPDX-License-Identifier: GPL-2.0-or-later
"""Can the data of a run be trusted?  One function per check, and one list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastenough import words
from fastenough.analysis.assessment import Finding
from fastenough.analysis.machine import counter_total, events_of, is_emulated, pinned
from fastenough.analysis.merged import judged_series, load_name, variant
from fastenough.model import Outcome, Series, Verdict
from fastenough.recording import Recording
from fastenough.recording.head import Change, Setting

UNACCOUNTED_SHARE = 0.05
"""Share of the due periods that may be absent from the corrected series, or too many (start and end of the threads)."""


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
        yield Finding(Verdict.BROKEN, f"the run failed: {why or 'no reason is recorded'}", "fix that and run it again")
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
        yield Finding(Verdict.BROKEN, f"the load {name} did not run: {why}", "fix that and run it again")
    elif proof.stated:
        yield Finding(Verdict.INCONCLUSIVE, f"that the load {name} ran was stated by a person and not proven",
                      "measure with a plan (fastenough run --plan), which runs and proves the load")


_REAL_TIME = {"policy", "priority", "memory_lock"}
"""Settings that make a real-time thread of a thread."""


def without_real_time(recording: Recording) -> bool:
    """Measured although real-time scheduling was refused: says nothing about real-time threads, good or bad."""
    return "not-real-time" in recording.head.marks and any(
        setting.name in _REAL_TIME and setting.differs for setting in recording.head.settings)


def _whose(setting: Setting | Change) -> str:
    thread = "" if setting.thread is None else f" of thread {setting.thread}"
    return thread + ("" if setting.cpu is None else f" of cpu {setting.cpu}")


def _settings_in_effect(recording: Recording) -> Iterator[Finding]:
    less = without_real_time(recording)
    if less:
        yield Finding(Verdict.INCONCLUSIVE, "the scheduling in effect was not real-time; this says nothing about "
                      "real-time threads", "allow it (fastenough doctor says how) and run it again")
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
                          "fix what prevents it (fastenough doctor says how) and run it again")


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


def _lateness_ns(recording: Recording, act: Series) -> float:
    """How long periods that count from the last act were drawn out by it: each begins when the last act came."""
    return sum(recording.totals[series.id].sum * series.unit_ns for series in recording.series
               if series.relative and not series.corrected and variant(series) == variant(act))


def _periods_accounted(recording: Recording) -> Iterator[Finding]:
    """A corrected series has one value for each period that was due, and no more."""
    for series in judged_series(recording):
        if not series.corrected or series.period_ns is None:
            continue
        most = recording.duration_ns / series.period_ns
        least = most - max(0.0, _lateness_ns(recording, series)) / series.period_ns
        held = recording.totals[series.id].total + recording.lost(series.id)
        if held < (1 - UNACCOUNTED_SHARE) * least - 1:
            yield Finding(Verdict.BROKEN, f"CPU {series.cpu} accounts for {words.number(held)} of about "
                          f"{words.number(round(least))} due periods: the rest is neither stored nor counted as lost",
                          "run it again; if it stays, the probe is at fault")
            return
        if held > (1 + UNACCOUNTED_SHARE) * most + 1:
            yield Finding(Verdict.BROKEN, f"CPU {series.cpu} has {words.number(held)} values for about "
                          f"{words.number(round(most))} due periods: more than there can be",
                          "run it again; if it stays, the probe is at fault")
            return


def _not_emulated(recording: Recording) -> Iterator[Finding]:
    if is_emulated(recording):
        yield Finding(Verdict.INCONCLUSIVE, "emulated: no verdict; emulation proves function, never speed",
                      "measure on the real board")


RUN_CHECKS: tuple[Callable[[Recording], Iterator[Finding]], ...] = (
    _whole, _ended_well, _nothing_lost, _samples_taken, _load_ran, _settings_in_effect, _settings_kept, _clock_steady,
    _not_throttled, _quota_kept, _stayed_on_cpu, _periods_accounted, _not_emulated,
)


def findings_of(recording: Recording) -> list[Finding]:
    """What every check of the list finds; a recording that is not believed is not looked into."""
    checks = RUN_CHECKS if recording.damage is None else (_believed,)
    return [finding for check in checks for finding in check(recording)]
