# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough check``: the gate for CI: runs compared with a baseline and limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fastenough.analysis.compare import comparison_text
from fastenough.analysis.excluded_runs import Selection, selection_note
from fastenough.analysis.gate import LimitResult, subject_of
from fastenough.analysis.instructions import MaximaComparison, PathComparison, instructions_conclusion
from fastenough.analysis.machine import INSTRUCTIONS
from fastenough.cli.commands import Command
from fastenough.cli.options import existing_store, json_option, only_these_option, store_option
from fastenough.cli.output import print_json, print_table, replace_file, say
from fastenough.cli.progress import Work
from fastenough.cli.report import choose_runs
from fastenough.exchange.junit import Case, SuiteContext, suite
from fastenough.jobs.assess import read_runs
from fastenough.jobs.check import CheckResult, check, read_baseline
from fastenough.jobs.limits import Limits, read_limits
from fastenough.jobs.nights import LAST_CHANGE, change_of
from fastenough.model import VERDICT_EXIT_STATUS, BadInput, ExitStatus, Verdict
from fastenough.report.gate_summary import markdown
from fastenough.store import Store
from fastenough.store.campaign import StoredCampaign

_FILE = click.Path(path_type=Path, dir_okay=False)


def conclusion(checked: CheckResult, selection: Selection) -> str:
    """Differences of the runs from the baseline, in one sentence, which also states whether --only-these was given."""
    phrases = [
        f"{subject_of(pair.runs[0])}: {comparison_text(comparison, 'new')}"
        for pair in checked.pairs
        for comparison in pair.comparisons
    ]
    phrases += [
        f"{subject_of(pair.runs[0])}: {instructions_conclusion(pair.instructions)}"
        for pair in checked.pairs
        if pair.instructions
    ]
    text = f"compared with the baseline, {'; '.join(phrases)}" if phrases else "no run to compare with the baseline"
    stated = selection is Selection.ONLY_THESE and checked.excluded
    return f"{text} ({selection_note(checked.excluded)})" if stated else text


def _print(checked: CheckResult, sentence: str) -> None:
    say(sentence)
    if checked.instructions:
        say(f"caveat: {INSTRUCTIONS}")
    for pair in checked.pairs:
        if pair.differences:
            say(
                f"warning: the environment of {subject_of(pair.runs[0])} differs from the baseline's; each difference "
                "is a possible cause:"
            )
        for text in pair.differences:
            say(text, "  ")
    if checked.limits:
        print_table(
            "",
            ("verdict", "subject", "limit"),
            [(result.verdict.value, result.subject, result.limit.text) for result in checked.limits],
            texts=3,
        )
    several = len({result.subject for result in checked.limits}) > 1
    for result in checked.limits:
        subject = f"{result.subject}: " if several else ""
        say(f"{result.verdict}: {subject}{result.limit.text}: {result.reason}")
    for text in _departures(checked):
        say(text)
    for gap in checked.gaps:
        say(gap)
    say(
        f"{checked.verdict}: {_met_text(checked.limits)}"
        if checked.limits
        else f"{checked.verdict}: no limits given (--limits, docs/check.md)"
        if checked.verdict is Verdict.NO_LIMIT
        else f"{checked.verdict}"
    )


def _departures(checked: CheckResult) -> list[str]:
    """Differences from the baseline that are a FAIL if there are limits."""
    label = "warning" if checked.verdict is Verdict.NO_LIMIT else "FAIL"
    return [
        f"{label}: {departure.subject}: {departure.requirement}: {departure.reason}" for departure in checked.departures
    ]


def _met_text(held: Sequence[LimitResult]) -> str:
    passed = sum(result.verdict is Verdict.PASS for result in held)
    return f"{passed} of {len(held)} {'limit' if len(held) == 1 else 'limits'} met"


def _cases(checked: CheckResult, sentence: str) -> list[Case]:
    """JUnit test cases: each limit, each difference or gap that forbids a PASS, or the comparison without limits."""
    cases = [
        Case(
            "check",
            f"{result.subject}: {result.limit.text}",
            result.verdict,
            [result.reason],
            sentence,
            result.duration_ns / 1e9,
        )
        for result in checked.limits
    ]
    departed = Verdict.NO_LIMIT if checked.verdict is Verdict.NO_LIMIT else Verdict.FAIL
    cases += [
        Case("check", f"{one.subject}: {one.requirement}", departed, [one.reason], sentence)
        for one in checked.departures
    ]
    if checked.gaps or not cases:
        verdict = checked.verdict if checked.verdict in (Verdict.BROKEN, Verdict.NO_LIMIT) else Verdict.INCONCLUSIVE
        cases.append(Case("check", "everything was measured and compared", verdict, list(checked.gaps), sentence))
    return cases


def _require_earlier(campaign: StoredCampaign, newest: str) -> None:
    """Raises BadInput if ``newest``, the run of --baseline last, is of the campaign that is checked."""
    if newest in campaign.runs:
        raise BadInput(
            f"--baseline last is run {newest} of the campaign that is checked; give a run of an earlier campaign, "
            "or name the RUNS to check"
        )


def _choose_runs(
    store: Store, names: tuple[str, ...], baselines: Sequence[str], baseline_ids: Sequence[str]
) -> tuple[list[str], Sequence[str]]:
    """The runs to check, without the baseline, and the missing runs of the campaign.

    A campaign may contain its baseline, if that is given by its id.
    """
    campaign = choose_runs(store, names)
    if not names and "last" in baselines:
        _require_earlier(campaign, baseline_ids[baselines.index("last")])
    chosen = [run for run in campaign.runs if names or run not in baseline_ids]
    if not chosen:
        raise BadInput("the newest campaign is the baseline; measure again, or name the RUNS to check")
    same = next((run for run in chosen if run in baseline_ids), None)
    if same is not None:
        raise BadInput(f"run {same} is the baseline; name another run")
    return chosen, campaign.missing


@click.command(cls=Command, example="fastenough check --baseline baseline.jsonl.zst --limits limits.toml")
@click.argument("runs", nargs=-1)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    required=True,
    metavar="RUN|FILE",
    help="Run in the store, or file of a recording, to compare with; repeat it for several loads.",
)
@click.option("--limits", "limits_path", type=_FILE, help="File of limits (docs/check.md).")
@click.option("--junit", "junit_path", type=_FILE, help="File for the result as JUnit XML.")
@click.option("--markdown", "markdown_path", type=_FILE, help="File for the result as Markdown.")
@click.option(
    "--since",
    metavar="CHANGE",
    is_flag=False,
    flag_value=LAST_CHANGE,
    help="Judge limits on growth by all nights since CHANGE: a date (2026-11-20, UTC), the first run after the change, "
    "or 'last': the last change of kernel, configuration or baseline. Without a value, CHANGE is 'last'.",
)
@only_these_option
@store_option
@json_option
def command(
    *,
    runs: tuple[str, ...],
    baselines: tuple[str, ...],
    limits_path: Path | None,
    junit_path: Path | None,
    markdown_path: Path | None,
    since: str | None,
    only_these: bool,
    store_path: Path,
    as_json: bool,
) -> ExitStatus:
    """Check runs against a baseline and limits.

    The gate for CI: compares RUNS, by default the newest campaign, with a baseline and a file of limits, and exits
    with 1 if a limit is exceeded.  Other runs of the store that answer the same question as RUNS are listed; a PASS
    without them requires --only-these.

    For a nightly job, --since judges by the evidence of all nights since a change; it is valid after every night.
    """
    selection = Selection.of(chosen=bool(runs), only_these=only_these)
    limits = Limits() if limits_path is None else read_limits(limits_path)
    if since is not None and not limits.has_growth:
        raise BadInput("--since requires --limits with a limit on growth (slower-by)")
    store = existing_store(store_path)
    change = None if since is None else change_of(store, since)
    base = read_baseline(store, baselines)
    chosen, missing = _choose_runs(store, runs, baselines, [recording.run_id for recording in base])
    with Work("reading the runs") as work:
        runs_checked = read_runs(store, chosen, work.step)
        checked = check(
            runs_checked, base, limits, store, missing=missing, selection=selection, since=change, on_step=work.step
        )
    sentence = conclusion(checked, selection)
    if junit_path is not None:
        replace_file(junit_path, suite(_cases(checked, sentence), SuiteContext.of(runs_checked)))
    if markdown_path is not None:
        page = markdown(
            sentence, checked.verdict, checked.pairs, checked.limits, [*_departures(checked), *checked.gaps]
        )
        replace_file(markdown_path, page.encode())
    if as_json:
        print_json(
            {
                "conclusion": sentence,
                "verdict": checked.verdict,
                "limits": checked.limits,
                "gaps": checked.gaps,
                "departures": checked.departures,
                "comparisons": checked.comparisons,
                "paths": [comparison for comparison in checked.instructions if isinstance(comparison, PathComparison)],
                "maxima": [
                    comparison for comparison in checked.instructions if isinstance(comparison, MaximaComparison)
                ],
                "not_applicable": checked.not_applicable,
                "excluded": checked.excluded,
            }
        )
    else:
        _print(checked, sentence)
    if checked.not_applicable and not checked.pairs and not checked.unmatched:
        return ExitStatus.NOT_APPLICABLE
    return VERDICT_EXIT_STATUS[checked.verdict]
