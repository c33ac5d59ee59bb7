# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough plan-test``: the expected misses it takes, what it refuses, and what it prints on narrow terminals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.cli.plan_test import _names_run, _notes
from fastenough.jobs.plan_test import plan_assumed
from fastenough.model import BadInput, Requirement
from fastenough.store import Store
from tests.process.cli.test_cli_variants import keep
from tests.support.cli_calls import command_line
from tests.support.recordings import latencies
from tests.support.terminal import Terminal, screen

pytestmark = pytest.mark.untimed

LATE_NS = 200_000
ASKED = ("--limit", "100us", "--miss-rate", "1e-3")


def late_values(*, burst: int = 1, every: int = 2000) -> list[list[np.ndarray[Any, np.dtype[np.int64]]]]:
    """30 intervals of 2,000 values on two CPUs; on CPU 1 a burst of late ones in each ``every`` values."""
    values = [[np.minimum(row, 50_000) for row in rows] for rows in latencies(1)]
    together = np.concatenate(values[1])
    for begin in range(every // 2, together.size, every):
        together[begin : begin + burst] = LATE_NS
    return [values[0], np.split(together, len(values[1]))]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, oldest first: 3 single misses in 10,000 on CPU 1; bursts of 4; none; none of another probe; truncated."""
    home = tmp_path_factory.mktemp("planned")
    store = Store(home / "fastenough-data")
    single, bursts = late_values(every=4000), late_values(burst=4, every=8000)
    quiet = late_values(every=10**6)
    runs = [keep(store, home / "scratch", values=values) for values in (single, bursts, quiet)]
    runs.append(keep(store, home / "scratch", values=quiet, head={"probe": "response"}))
    runs.append(keep(store, home / "scratch", values=quiet, outcome=None))
    (home / "runs").write_text(" ".join(runs))
    return home


def planned(*arguments: str, home: Path = Path()) -> Any:
    done = command_line("plan-test", *arguments, "--json", cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def run(home: Path, number: int) -> str:
    return (home / "runs").read_text().split()[number]


def test_digits_that_begin_the_id_of_a_run_are_not_taken_for_a_number(home: Path, tmp_path: Path) -> None:
    """The date of a run is no number of misses; its year may be one, so it is refused."""
    date, store_path = run(home, 0)[:8], home / "fastenough-data"
    assert [_names_run(text, store_path) for text in (date, "last", "3", "2e3", f"{date[:4]}.0", "9999")] == [
        True,
        True,
        *[False] * 4,
    ]
    assert not _names_run(date, tmp_path / "none")
    with pytest.raises(BadInput, match=f"{date[:4]}.0 for the number"):
        _names_run(date[:4], store_path)


def test_misses_per_hour_are_a_rate_at_the_interval(tmp_path: Path) -> None:
    (one,) = planned(*ASKED, "--expect", "3600", "--interval", "2ms", home=tmp_path)["verdicts"]
    assert (one["misses"]["rate"], one["misses_per_hour"], one["verdict"]) == (pytest.approx(0.002), 3600, "FAIL")


def test_without_expectation_a_quiet_system_and_one_at_half_the_rate_are_planned(tmp_path: Path) -> None:
    plan = planned(*ASKED, "--longest-burst", "5", home=tmp_path)
    expected = [(one["misses"]["rate"], one["misses"]["burst"]) for one in plan["verdicts"]]
    assert expected == [(0.0, 1), (0.0005, 1), (0.0005, 5)]
    shortest = [[each["duration_ns"] for each in one["durations"]] for one in plan["verdicts"]]
    assert shortest[0][0] == shortest[0][1] <= shortest[1][0] < shortest[2][0]
    assert (plan["period_ns"], plan["boards"], plan["basis"]) == (500_000, 1, None)


@pytest.mark.parametrize(("number", "misses", "per_cause"), [(0, 15, [1]), (1, 28, [1, 4])])
def test_a_run_gives_rate_and_bursts_of_its_worst_cpu(
    home: Path, number: int, misses: int, per_cause: list[int]
) -> None:
    plan = planned(*ASKED, "--expect", run(home, number), home=home)
    assert (plan["basis"]["cpu"], plan["basis"]["misses"], plan["basis"]["n"]) == (1, misses, 60_000)
    assert [one["misses"]["burst"] * one["misses"]["cluster_size"] for one in plan["verdicts"]] == per_cause
    assert {one["misses"]["rate"] for one in plan["verdicts"]} == {misses / 60_000}
    assert plan["period_ns"] == 1_000_000


def test_a_run_without_misses_or_of_another_probe_is_named_with_what_it_excludes(home: Path) -> None:
    for number, probe in ((2, "timer"), (3, "response")):
        plan = planned(*ASKED, "--expect", run(home, number), "--longest-burst", "1", home=home)
        assert (plan["basis"]["probe"], plan["basis"]["misses"], len(plan["basis"]["cautions"])) == (probe, 0, 1)
        assert [one["misses"]["rate"] for one in plan["verdicts"]] == [0.0]


def test_a_burst_longer_than_declared_is_a_caution(home: Path) -> None:
    plan = planned(*ASKED, "--expect", run(home, 1), "--longest-burst", "2", home=home)
    assert any("declared" in text for text in plan["basis"]["cautions"])


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--limit", "100us", "--miss-rate", "1"),
        ("--limit", "100us", "--confidence", "100%"),
        ("--limit", "100us", "--boards", "0"),
        ("--limit", "100us", "--expect", "nan"),
        ("--limit", "100us", "--expect", "-1"),
        ("--limit", "100us", "--expect", "1e300"),
        ("--limit", "100us", "--expect", "no-such-run"),
        ("--limit", "100us", "--expect", "last"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], home: Path) -> None:
    done = command_line("plan-test", *arguments, cwd=home)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr


def test_a_run_has_its_own_interval_and_needs_a_store(home: Path, tmp_path: Path) -> None:
    for words, cwd in ((("--expect", run(home, 0), "--interval", "1ms"), home), (("--expect", "last"), tmp_path)):
        done = command_line("plan-test", *ASKED, *words, cwd=cwd)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert words[-2] in done.stderr or "--store" in done.stderr


@pytest.mark.parametrize(("boards", "chances"), [(5, "33 % and 77 %"), (100, "less than 1 % and less than 1 %")])
def test_the_probability_of_several_boards_is_that_of_one_cpu_under_one_load(boards: int, chances: str) -> None:
    (note,) = [note for note in _notes(plan_assumed(Requirement(100_000), 10**6, boards)) if " boards " in note]
    assert note.startswith("one CPU under one load") and f"all {boards} boards in {chances} of cases" in note


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80])
def test_nothing_is_wider_than_the_terminal(columns: int, tmp_path: Path) -> None:
    words = ("--limit", "100us", "--miss-rate", "1e-9", "--longest-burst", "20", "--boards", "100")
    with Terminal("plan-test", *words, cwd=tmp_path, columns=columns) as terminal:
        status, said = terminal.end()
    lines = screen(said)
    assert status == 0 and max(map(len, lines)) <= columns
    assert sum("100 ×" in line for line in lines) >= 3
