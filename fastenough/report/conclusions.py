# SPDX-License-Identifier: GPL-2.0-or-later
"""Sections of commands that make runs: a hunt, measured effects of changes, a composed bound, a task set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from fastenough.analysis import words
from fastenough.analysis.blocking_trace import TracedCpu
from fastenough.analysis.change_effects import ChangeEffect
from fastenough.analysis.compare import finding
from fastenough.analysis.composed_bound import Composed
from fastenough.analysis.task_set import CpuSchedulability, TaskAnswer
from fastenough.hunt.recipes import description_of
from fastenough.hunt.search import Search
from fastenough.hunt.space import Space
from fastenough.hunt.trials import FinishedTrial, Phase, Subject, tail_of, typical_ns
from fastenough.report.document import Column, Folded, Part, Preformatted, ReportTable, Section, Text

_NS = words.microseconds
_MOST_LOOKS = 12
_STEPS = (
    ("hunt-fixed", "Fixed loads", (Phase.FIXED,)),
    ("hunt-halving", "Successive halving: half of the recipes remain after each round", (Phase.HALVING,)),
    ("hunt-confirming", "Confirmation by new trials in turns", (Phase.CONFIRMING,)),
    ("hunt-smaller", "Simplification: fewer stressors, then lower levels", (Phase.FEWER, Phase.PLAINER)),
)
_TRIALS_NOTE = (
    "The value of a trial is the geometric mean of the maxima of its blocks of 250 ms. For several trials the table "
    "has the least value, the geometric mean and the greatest value."
)


def _subject_name(space: Space, subject: Subject) -> str:
    if isinstance(subject, str):
        return f"load {subject}"
    return description_of(space, subject[0]) if len(subject) == 1 else f"{len(subject)} recipes in turns"


def _trials_row(name: str, trials: Sequence[FinishedTrial]) -> tuple[object, ...]:
    tails = [tail_of(trial.block_maxima_ns) for trial in trials if trial.block_maxima_ns]
    summary = (typical_ns(min(tails)), typical_ns(fmean(tails)), typical_ns(max(tails))) if tails else (None,) * 3
    return (name, len(trials), len(trials) - len(tails), *summary)


def _trials_columns(first: str) -> tuple[Column, ...]:
    return (
        Column(first, numeric=False),
        Column("trials"),
        Column("failed"),
        Column("least [µs]", _NS),
        Column("mean [µs]", _NS),
        Column("greatest [µs]", _NS),
    )


def _phases(trials: Sequence[FinishedTrial]) -> ReportTable:
    by_phase = {phase: [trial for trial in trials if trial.ask.phase is phase] for phase in Phase}
    rows = [_trials_row(phase, members) for phase, members in by_phase.items() if members]
    return ReportTable("hunt-phases", "Trials by phase", _trials_columns("phase"), rows, note=_TRIALS_NOTE)


def _groups(search: Search) -> ReportTable | None:
    """The worst first trials of groups, from which recipes were chosen."""
    if not search.looks:
        return None
    worst = sorted(search.looks, key=lambda look: -look.tail)[:_MOST_LOOKS]
    return ReportTable(
        "hunt-groups",
        f"Worst of {words.counted(len(search.looks), 'group')} tried",
        (Column("recipe", numeric=False), Column("typical maximum [µs]", _NS)),
        [(description_of(search.space, look.recipe) or "no stressor", typical_ns(look.tail)) for look in worst],
    )


def _steps(search: Search, trials: Sequence[FinishedTrial]) -> Iterator[ReportTable]:
    for name, caption, phases in _STEPS:
        by_subject: dict[Subject, list[FinishedTrial]] = {}
        for trial in trials:
            if trial.ask.phase in phases:
                by_subject.setdefault(trial.ask.subject, []).append(trial)
        if by_subject:
            yield ReportTable(
                name,
                caption,
                _trials_columns("load"),
                [_trials_row(_subject_name(search.space, subject), members) for subject, members in by_subject.items()],
            )


def _caveats(cautions: Sequence[str]) -> list[Text]:
    return [Text("Caveats", cautions)] if cautions else []


def hunt_section(
    search: Search,
    trials: Sequence[FinishedTrial],
    conclusion: str,
    recipe: str,
    culprit: str,
    *,
    cautions: Sequence[str] = (),
) -> Section:
    """``recipe``: the load file of the worst recipe; ``culprit``: the cause under it; empty if none was confirmed."""
    tables = [table for table in (_groups(search), *_steps(search, trials)) if table is not None]
    parts: list[Part] = [
        *_caveats(cautions),
        _phases(trials),
        *(Folded(table.caption, [table], printed=False) for table in tables),
    ]
    if recipe:
        parts += [Text(f"Cause under the worst recipe: {culprit}. Its load file:"), Preformatted(recipe)]
    return Section("hunt", "Hunt", f"{conclusion[0].upper()}{conclusion[1:]}.", parts)


_EFFECT_NS = words.nearest_microseconds
_NOTHING = "–"


def _percent(value: float | None) -> str:
    return _NOTHING if value is None else words.percent(value)


def _rate(value: float | None) -> str:
    return _NOTHING if value is None else words.rate(value)


_EFFECT_COLUMNS = (
    Column("change", numeric=False),
    Column("load", numeric=False),
    Column("pairs"),
    Column("at", _percent),
    Column("without [µs]", _EFFECT_NS),
    Column("effect [µs]", _EFFECT_NS),
    Column("from [µs]", _EFFECT_NS),
    Column("to [µs]", _EFFECT_NS),
    Column("quantile", numeric=False),
    Column("rate above limit without", _rate),
    Column("rate above limit with", _rate),
    Column("rate", numeric=False),
)
_EFFECTS_NOTE = (
    "From pairs of runs without and with the change in random order. The interval (95 %) is the wider of the "
    "interval of the pairs (Student's t) and of a block bootstrap over time. Significance is corrected for all "
    "changes and loads of a table (Holm). A missing difference does not prove equality."
)


def _effect_row(trial: ChangeEffect) -> tuple[object, ...]:
    effect, tail = trial.effect, trial.tail
    if tail is None:
        return (trial.name, trial.load, trial.pairs, *(None,) * 8, "; ".join(trial.reasons) or "no conclusion")
    of_quantile: tuple[object, ...] = (
        (*(None,) * 5, "; ".join(trial.reasons))
        if effect is None
        else (
            effect.quantile,
            effect.without_ns,
            effect.effect_ns,
            effect.lower_ns,
            effect.upper_ns,
            finding(effect),
        )
    )
    return (
        trial.name,
        trial.load,
        trial.pairs,
        *of_quantile,
        tail.without,
        tail.with_change,
        finding(tail),
    )


def effects_section(
    conclusions: Sequence[str],
    tables: Sequence[tuple[str, Sequence[ChangeEffect]]],
    refused: Sequence[tuple[str, str]],
    cautions: Sequence[str] = (),
) -> Section:
    """``tables``: captions and changes; ``refused``: changes without a result, and why."""
    parts: list[Part] = [
        *_caveats(cautions),
        *(
            ReportTable(
                f"tried-{number}",
                caption,
                _EFFECT_COLUMNS,
                [_effect_row(effect) for effect in effects],
                note=_EFFECTS_NOTE,
            )
            for number, (caption, effects) in enumerate(tables, start=1)
            if effects
        ),
    ]
    if refused:
        parts.append(Text("No result", [f"{name}: {reason}" for name, reason in refused]))
    return Section(
        "tried",
        "Measured effects of changes",
        ". ".join(f"{sentence[0].upper()}{sentence[1:]}" for sentence in conclusions) + ".",
        parts,
    )


_OBSERVED_COLUMN = "longest measured"


def _bound_text(latency_ns: int | None) -> str:
    return "no bound" if latency_ns is None else words.microseconds(latency_ns)


def bound_section(traced: Sequence[tuple[TracedCpu, Sequence[Composed]]], meaning: str) -> Section:
    """``meaning``: what the bounds mean, and their limits."""
    terms = ReportTable(
        "bound-terms",
        "Longest measured value of each term, without interrupts",
        (
            Column("CPU"),
            Column("preemption or interrupts off (POID) [µs]", _NS),
            Column("scheduler requested, not yet called (PAIE) [µs]", _NS),
            Column("preemption off to schedule (PSD) [µs]", _NS),
            Column("wake-ups not considered (DST) [µs]", _NS),
            Column("sections"),
            Column("switches"),
        ),
        [
            (
                cpu.cpu,
                cpu.blocking.poid_ns,
                cpu.blocking.paie_ns,
                cpu.blocking.psd_ns,
                cpu.blocking.dst_ns,
                cpu.sections,
                cpu.switches,
            )
            for cpu, _ in traced
        ],
    )
    ways = [bound.interrupts for bound in traced[0][1]]
    bounds = ReportTable(
        "bound",
        "Bound by interrupt model, and the longest latency in the same trace",
        (
            Column("CPU"),
            *(Column(f"{way} [µs]", _bound_text) for way in ways),
            Column(f"{_OBSERVED_COLUMN} [µs]", _NS),
            Column("wake-ups"),
        ),
        [(cpu.cpu, *(bound.latency_ns for bound in bounds), cpu.observed_ns, cpu.wakeups) for cpu, bounds in traced],
    )
    return Section("bound", "Bound on scheduling latency from kernel blocking", meaning, [bounds, terms])


_MICROSECONDS_DOWN = words.microseconds_down


def _responses(answer: TaskAnswer) -> ReportTable:
    rows = [
        (
            response.task.name,
            cpu_answer.measured.cpu,
            response.task.priority,
            response.task.period_ns,
            response.task.compute_ns,
            response.task.deadline_ns,
            response.response_ns,
            response.slack_ns,
            str(response.deadline_result),
        )
        for cpu_answer in answer.cpus
        for response in cpu_answer.responses
    ]
    columns = (
        Column("task", numeric=False),
        Column("CPU"),
        Column("priority"),
        Column("period [µs]", _NS),
        Column("compute [µs]", _NS),
        Column("deadline [µs]", _NS),
        Column("longest response [µs]", _NS),
        Column("slack [µs]", _MICROSECONDS_DOWN),
        Column("deadline", numeric=False),
    )
    assigned = (
        "; priorities assigned by Audsley's algorithm, highest number first"
        if answer.task_set.assign_priorities
        else ""
    )
    return ReportTable(
        "task-responses",
        f"Longest response of each task with all terms at their maximum{assigned}",
        columns,
        rows,
        note="If a deadline is missed, the response is the first one found that is too long.",
    )


def _margins(answer: TaskAnswer) -> ReportTable:
    rows = [(f"CPU {cpu.measured.cpu}", cpu.margin.factor, cpu.margin.added_ns) for cpu in answer.cpus]
    columns = (
        Column("CPU", numeric=False),
        Column("factor on all compute times", lambda factor: f"{factor:.4f}"),
        Column("added wake-up latency [µs]", _MICROSECONDS_DOWN),
    )
    return ReportTable("task-margins", "Margins of each CPU until the first deadline miss", columns, rows)


def _terms(answer: TaskAnswer) -> ReportTable:
    rows = [row for cpu in answer.cpus for row in _terms_of(cpu)]
    columns = (
        Column("term", numeric=False),
        Column("CPU"),
        Column("samples"),
        Column("cost per event [µs]", _NS),
        Column("most in a row"),
    )
    return ReportTable("task-terms", "Measured terms: the maximum over all loads", columns, rows)


def _terms_of(cpu: CpuSchedulability) -> list[tuple[object, ...]]:
    measured, terms = cpu.measured, cpu.measured.terms
    return [
        ("longest wake-up (delay of each release)", measured.cpu, measured.wakeups, terms.release_ns, None),
        (
            "median wake-up (cost of each job besides its compute time)",
            measured.cpu,
            measured.wakeups,
            terms.dispatch_ns,
            None,
        ),
        *(
            (
                f"taken from a busy loop: {interference.name}",
                measured.cpu,
                None,
                interference.cost_ns,
                interference.most_together,
            )
            for interference in terms.interference
        ),
    ]


def tasks_section(answer: TaskAnswer) -> Section | None:
    """None without measured CPUs."""
    if not answer.cpus:
        return None
    return Section(
        "tasks",
        "Task set",
        f"{answer.conclusion[0].upper()}{answer.conclusion[1:]}. Response-time analysis of fixed priorities with "
        "measured terms. Measured terms are no bounds, so this is never a PASS.",
        [_responses(answer), _margins(answer), _terms(answer)],
    )
