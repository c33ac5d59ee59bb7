# SPDX-License-Identifier: GPL-2.0-or-later
"""The cause of the latency that a hunt found, from one more run with the monitor, and the report of a hunt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough import report, words
from fastenough.analysis import Assessment, judge
from fastenough.analysis.stations import WORST, worst_wakeups
from fastenough.board import Board, is_deterministic
from fastenough.campaign import Plan, Progress, run_campaign
from fastenough.hunt.recipes import as_file
from fastenough.hunt.trials import FinishedTrial, Phase
from fastenough.jobs.hunt import HuntResult
from fastenough.jobs.job_store import store_conclusion
from fastenough.link import MONITOR
from fastenough.loads import Load
from fastenough.model import Outcome
from fastenough.recording.culprits import UNKNOWN
from fastenough.recording.wakeups import is_monitor
from fastenough.report.conclusions import hunt_section
from fastenough.report.document import Section
from fastenough.store import Store

_WATCHED_S, _WATCHED_GUEST_S = 20.0, 1.0
"""Duration in s of the run with the monitor: on other boards, and on a deterministic board."""
_REPORT_INTERVAL = ("1s",)
"""Long intervals: at the end of each one the monitor reads its counters, which may delay a task."""
_MONITOR_TASK = f"task {MONITOR[:15]}"
"""Task name of the monitor, truncated as the kernel does."""


@dataclass(frozen=True)
class MonitoredRun:
    """The run under the load found by a hunt, with the monitor.

    ``cause``: the cause of the worst wake-ups, as a sentence; ``load``: the load, with the cause in its source.
    ``signal``: number of the signal that stopped the run, or 0; the cause is then not known.
    """

    load: Load
    runs: tuple[str, ...]
    cause: str
    signal: int = 0


def monitor_load(
    plan: Plan,
    load: Load,
    store: Store,
    on_progress: Callable[[Progress], None],
    *,
    opened: Callable[[str], Board],
    tell: Callable[[str], None] | None = None,
) -> MonitoredRun:
    """Make one more run with the monitor under the load found by a hunt.

    It does not count as a trial, because the monitor delays tasks a little.
    """
    first = plan.entries[0]
    entry = replace(
        first,
        loads=(load.name,),
        duration_s=_WATCHED_GUEST_S if all(map(is_deterministic, plan.boards)) else _WATCHED_S,
        parameters={**first.parameters, "report": _REPORT_INTERVAL},
    )
    watched = replace(plan, entries=(entry,), loads={load.name: load}, monitor=True)
    campaign = run_campaign(watched, store, on_progress, opened=opened, tell=tell)
    if campaign.stopped:
        return MonitoredRun(load, (), "not searched: the run with the monitor was interrupted", campaign.signal)
    cause = _cause_of(store, campaign.runs)
    return MonitoredRun(replace(load, source=f"{load.source}; {cause}"), campaign.runs, cause)


def _cause_of(store: Store, runs: tuple[str, ...]) -> str:
    """The cause of the worst wake-ups, as a sentence."""
    monitors = [recording for run in runs if is_monitor((recording := store.load(run)).head)]
    unfit = [reason for monitor in monitors if monitor.outcome is not Outcome.COMPLETED for reason in monitor.reasons]
    wakeups = worst_wakeups(monitors)
    worst = [wakeup for wakeup in wakeups if wakeup.cause != _MONITOR_TASK][:WORST]
    sentence = cause_sentence([(wakeup.cause, int(wakeup.delay_ns)) for wakeup in worst])
    return sentence or f"no cause identified: {'; '.join(unfit) or 'none recorded by the monitor'}"


def cause_sentence(wakeups: Sequence[tuple[str, int]]) -> str:
    """The task that delayed most of these wake-ups, and its share of the time; empty if no cause is known.

    ``wakeups``: blamed task and delay in ns of each.  The task with the largest share of the time is added if it is
    another one: a single long delay is no pattern.
    """
    count, time_ns = Counter[str](), Counter[str]()
    for task, delay_ns in wakeups:
        count[task] += 1
        time_ns[task] += delay_ns
    known = sorted((task for task in count if task != UNKNOWN), key=lambda task: (-count[task], -time_ns[task]))
    if not known:
        return ""
    most, longest = known[0], max(known, key=lambda task: time_ns[task])

    def share(task: str) -> str:
        return f"{time_ns[task] * 100 / max(1, time_ns.total()):.0f} % of their time"

    sentence = (
        f"{most} is blamed for {count[most]} of the {len(wakeups)} worst wake-ups recorded by the monitor, "
        f"and {share(most)}"
    )
    if longest == most:
        return sentence
    return (
        f"{sentence}; the largest share of the time is due to {longest}: {count[longest]} of them, and {share(longest)}"
    )


def conclude_hunt(hunted: HuntResult, culprit: MonitoredRun | None, conclusion: str, store: Store) -> Section:
    """The result of a hunt as a section, which is also stored."""
    load = culprit.load if culprit else hunted.load
    section = hunt_section(
        hunted.search,
        hunted.made,
        conclusion,
        as_file(load) if load else "",
        culprit.cause if culprit else "not searched",
        cautions=hunted.cautions,
    )
    store_conclusion(store, (*hunted.runs, *(culprit.runs if culprit else ())), section)
    return section


def report_hunt(hunted: HuntResult, culprit: MonitoredRun | None, section: Section, store: Store, out: Path) -> None:
    """Report on the runs of the fixed loads, of the confirmation, and of the monitor."""
    runs = [store.load(run) for run in (*_confirming(hunted), *(culprit.runs if culprit else ()))]
    report.write_report(runs, with_all_trials(judge(runs), hunted.made), out, answers=(section,))


def with_all_trials(assessment: Assessment, made: Sequence[FinishedTrial]) -> Assessment:
    """Add the maximum of all trials to the headline if it exceeds that of the judged runs."""
    greatest_ns = max((max(trial.block_maxima_ns) for trial in made if trial.block_maxima_ns), default=0)
    if greatest_ns <= max((judgment.maximum_ns or 0.0 for judgment in assessment.judgments), default=0.0):
        return assessment
    return replace(
        assessment,
        headline=f"Maximum latency of all trials: {words.latency(greatest_ns)}. Of the runs "
        f"that confirm the result: {assessment.headline}",
    )


def _confirming(hunted: HuntResult) -> list[str]:
    candidate = hunted.search.result
    subjects = (
        []
        if candidate is None
        else [
            subject if isinstance(subject, str) else (subject,) for subject in (candidate.recipe, candidate.reference)
        ]
    )
    return [
        made.run
        for made in hunted.made
        if made.ask.phase is Phase.FIXED or (made.ask.phase is Phase.CONFIRMING and made.ask.subject in subjects)
    ]
