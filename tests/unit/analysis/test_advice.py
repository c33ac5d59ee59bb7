# SPDX-License-Identifier: GPL-2.0-or-later
"""Advice walks the paper's flowchart: with its figures to where the paper ends, with recordings by bounds alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis.advice import APPROACHES, STRICT, TOLERANT, Advice, Ending, advise
from fastenough.analysis.approach_rating import ApproachRating, Grade, kernel_of, setups
from fastenough.analysis.power import NO_PASS_WITHOUT_MISSES
from fastenough.jobs.advise import AdviceRequest, advise_by_reference, advise_by_runs, current_runs
from fastenough.jobs.plan_test import plan_assumed
from fastenough.model import BadInput, Requirement
from fastenough.recording import Recording
from fastenough.reference import find_reference
from fastenough.report.context import make_context
from fastenough.report.document import Picture
from fastenough.report.sections import advice as advice_section
from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.mutant_trial import sealed
from tests.support.recordings import PROFILE, Plan, recording, write

BEAGLEBOARD = find_reference("beagleboard")
HARDWARE = "hardware"


def by_paper(limit_us: float, miss_rate: float, probe: str = "response") -> Advice:
    return advise_by_reference(BEAGLEBOARD, AdviceRequest(Requirement(round(limit_us * 1000), miss_rate), probe))


def end_of(advice: Advice) -> str:
    """The approach to deliver, or what else the walk ended in."""
    return {Ending.DELIVER: advice.steps[-1].approach.id, Ending.HARDWARE: HARDWARE}.get(advice.ending, advice.ending)


# --- the paper's own figures


@pytest.mark.parametrize(
    ("probe", "stock", "rt", "xenomai", "module"), [("response", 307, 157, 59, 16), ("periodic", 69, 47, 34, 17)]
)
def test_95_percent_ends_where_the_tables_say(probe: str, stock: int, rt: int, xenomai: int, module: int) -> None:
    """The 95 % marks of tables 4 and 6; twice the limit is the edge of marginal."""
    marks = {"user-stock": stock, "user-rt": rt, "xenomai-user": xenomai, "kernel-stock": module}
    for limit_us in range(2, 400):
        path = ["user-stock"]
        if limit_us < stock:
            path += ["user-rt"] * (2 * limit_us >= stock)
            if 20 * limit_us < stock:
                path = ["user-stock"]  # off the map: straight to hardware
            elif not ("user-rt" in path and limit_us >= rt):
                path += ["xenomai-user"] + ["kernel-stock"] * (limit_us < xenomai)
        found = by_paper(limit_us, 0.05, probe)
        assert [step.approach.id for step in found.steps] == path, limit_us
        assert end_of(found) == (path[-1] if limit_us >= marks[path[-1]] else HARDWARE), limit_us


@pytest.mark.parametrize(("probe", "user", "module"), [("response", 90, 37), ("periodic", 57, 41)])
def test_100_percent_turns_to_xenomai_at_once(probe: str, user: int, module: int) -> None:
    for limit_us in (10, module - 1, module, user - 1, user, 100, 800, 20_000):
        expected = "xenomai-user" if limit_us >= user else "xenomai-kernel" if limit_us >= module else HARDWARE
        found = by_paper(limit_us, 0, probe)
        assert (end_of(found), found.steps[0].approach.id) == (expected, "xenomai-user")


@pytest.mark.parametrize(
    ("khz", "miss_rate", "expected"),
    [
        (31.0, 0.05, "kernel-stock"),
        (8.4, 0.05, "xenomai-user"),
        (13.5, 0.0, "xenomai-kernel"),
        (5.5, 0.0, "xenomai-user"),
        (1.0, 0.05, "user-stock"),
    ],
)
def test_the_frequencies_of_its_abstract_lead_to_what_it_names(khz: float, miss_rate: float, expected: str) -> None:
    """A latency of at most half the period; the last is its serial device, for which stock Linux does at 95 %."""
    assert end_of(by_paper(1e3 / (2 * khz), miss_rate)) == expected


def test_published_figures_are_marked_as_exact_and_as_nobodys_evidence() -> None:
    found = by_paper(200, 0.05)
    assert "taken as exact" in found.basis and "nor bounds" in found.basis
    assert all("taken as exact" in step.rating.reasons[0] for step in found.steps)
    assert any("evidence about your machine" in caution for caution in found.cautions)
    assert "injure or kill" in found.life_safety
    assert [step.rating.grade for step in found.steps] == [Grade.MARGINAL, Grade.GOOD]


def test_what_is_not_said_is_left_out_of_the_name_of_what_is_beside_the_path() -> None:
    advice = advise_by_reference(find_reference("rtlinux"), AdviceRequest(Requirement(50_000), "mutex"))
    assert [name for name, _ in advice.off_path] == ["rtlinux"]


def test_a_rate_the_source_has_no_figure_for_is_undecided_where_it_matters() -> None:
    assert [by_paper(limit_us, 0.001).ending for limit_us in (200, 20_000)] == [Ending.UNDECIDED, Ending.DELIVER]
    assert end_of(by_paper(50, 0.001)) == Ending.UNDECIDED  # Xenomai: 59 at 95 %, 90 at most; stock kernel: 16 and 597
    assert any("95 %" in caution for caution in by_paper(200, 0.001).cautions)


def test_what_an_oscilloscope_could_not_see_is_not_taken_for_a_maximum() -> None:
    board = AdviceRequest(Requirement(50_000_000, 0.05), "response", "AT91SAM9G20-EK")
    assert advise_by_reference(find_reference("at91sam"), board).ending is Ending.UNDECIDED
    with pytest.raises(BadInput, match=r"several boards.*AT91SAM9M10-G45-EK, AT91SAM9G20-EK"):
        advise_by_reference(find_reference("at91sam"), replace(board, board=None))


# --- the walk

ANSWERS = [*Grade]


@pytest.mark.parametrize("chart", [TOLERANT, STRICT])
def test_every_answer_in_every_box_leads_on_or_ends(chart: dict[str, Any]) -> None:
    """All combinations: the walk never visits a box twice, and ends by the answer of the last one."""
    boxes = list(chart)
    requirement = Requirement(100_000, 0.05 if chart is TOLERANT else 0.0)
    for number in range(len(ANSWERS) ** len(boxes)):
        answers = {box: ANSWERS[number // len(ANSWERS) ** place % len(ANSWERS)] for place, box in enumerate(boxes)}
        ratings = {box: ApproachRating(answer) for box, answer in answers.items()}
        found = advise(ratings, requirement, probe="timer", basis="x")
        path = [step.approach.id for step in found.steps]
        assert len(set(path)) == len(path) and path[0] == boxes[0] and set(path) <= set(boxes)
        last = answers[path[-1]]
        assert (found.ending is Ending.DELIVER) == (last is Grade.GOOD)
        assert (found.ending is Ending.MEASURE) == (last is Grade.NO_DATA)
        if found.ending is Ending.HARDWARE:
            assert not set(answers[box] for box in path) & {Grade.GOOD, Grade.UNDECIDED, Grade.NO_DATA}
        assert bool(found.next) == (found.ending in (Ending.UNDECIDED, Ending.MEASURE))


# --- one's own recordings

STOCK = {
    "kernel": {"release": "6.1.0-30-amd64", "version": "#1 SMP PREEMPT_DYNAMIC", "preemption": "preempt"},
    "kernel_config": {"sha256": "b2" * 32, "of_interest": {}},
}
KERNELS: dict[str, dict[str, Any]] = {
    "stock": STOCK,
    "rt": {},
    "xenomai": STOCK | {"kernel_config": {"sha256": "c3" * 32, "of_interest": {"CONFIG_XENOMAI": "y"}}},
}
SECONDS, EACH = 40, 1000


def run(
    folder: Path,
    kernel: str,
    implementation: str,
    late_us: float,
    share: float,
    *,
    load: str = "cpu",
    seed: int = 0,
    **more: Any,
) -> Recording:
    """40,000 wake-ups of 10 µs, a share of which, spread evenly, takes ``late_us``."""
    return recording(folder, plan(kernel, implementation, late_us, share, load=load, seed=seed, **more))


def plan(
    kernel: str,
    implementation: str,
    late_us: float,
    share: float,
    *,
    load: str = "cpu",
    seed: int = 0,
    head: dict[str, Any] | None = None,
    **more: Any,
) -> Plan:
    random = np.random.default_rng(seed + len(kernel) + 10 * len(implementation))
    values = np.where(random.random((SECONDS, EACH)) < share, late_us * 1000, 10_000).astype(np.int64)
    values += random.integers(0, 3, values.shape)
    return Plan(
        [list(values)],
        run_id=f"{kernel}-{implementation}-{load}-{seed}",
        views=("wakeup_corrected",),
        load=load,
        rise_k=3,
        limit_ns=100_000,
        head={
            "implementation": implementation,
            "configuration": f"{kernel} 6.1",
            "board": "beagle",
            "profile": PROFILE | {"cpu_isolation": {}, "cpu": {"count": 1}} | KERNELS[kernel],
        }
        | (head or {}),
        **more,
    )


def advised(store: Store, recordings: Sequence[Recording], requirement: Requirement, **more: Any) -> Advice:
    return advise_by_runs(recordings, AdviceRequest(requirement, "timer", **more), store)


TOLERANT_100US = Requirement(100_000, 0.05, longest_burst=10)
NEVER = Requirement(100_000)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_bounds_decide_each_branch(tmp_path: Path, store: Store) -> None:
    """Stock is late by less than twice the limit (marginal), PREEMPT_RT keeps it: the path of the paper."""
    runs = [run(tmp_path, "stock", "linux-user", 150, 0.1), run(tmp_path, "rt", "linux-user", 50, 0.1)]
    found = advised(store, runs, TOLERANT_100US)
    assert [(step.approach.id, step.rating.grade) for step in found.steps] == [
        ("user-stock", Grade.MARGINAL),
        ("user-rt", Grade.GOOD),
    ]
    assert found.ending is Ending.DELIVER and "PREEMPT_RT" in found.cost
    awful = advised(store, [run(tmp_path, "stock", "linux-user", 500, 0.1, seed=1), runs[1]], TOLERANT_100US)
    assert [step.approach.id for step in awful.steps] == ["user-stock", "xenomai-user"]
    assert (awful.ending, awful.steps[0].rating.grade) == (Ending.MEASURE, Grade.AWFUL)
    assert any("--implementation xenomai-user" in line and "Xenomai kernel" in line for line in awful.next)


def test_an_interval_astride_the_threshold_is_undecided(tmp_path: Path, store: Store) -> None:
    """As many late ones as are allowed: neither bound excludes the limit, and no branch is taken."""
    found = advised(store, [run(tmp_path, "stock", "linux-user", 150, 0.05)], TOLERANT_100US)
    assert (found.ending, len(found.steps)) == (Ending.UNDECIDED, 1)
    assert found.next


@pytest.mark.parametrize(
    ("requirement", "amounts"),
    [
        (Requirement(100_000), ("15 s", "30,000 activations")),
        (Requirement(100_000, 0.001, longest_burst=10), ("38,000 activations", "10 s")),
        (Requirement(100_000, 0.001), (NO_PASS_WITHOUT_MISSES,)),
    ],
)
def test_the_least_measurement_is_one_that_can_pass(requirement: Requirement, amounts: tuple[str, ...]) -> None:
    (line,) = advise({}, requirement, probe="timer", basis="").next
    assert all(amount in line for amount in amounts)
    assert ("at least" in line) is (NO_PASS_WITHOUT_MISSES not in line)
    planned = plan_assumed(requirement, 500_000, per_hour=0.0).verdicts[0]
    assert ("at least" in line) is any(duration.n for duration in planned.durations)


def test_an_idle_machine_is_not_good_enough(tmp_path: Path, store: Store) -> None:
    found = advised(store, [run(tmp_path, "stock", "linux-user", 20, 0.1, load="none")], TOLERANT_100US)
    assert found.ending is Ending.UNDECIDED
    assert any("without load" in line for line in found.steps[0].rating.reasons)
    late = advised(store, [run(tmp_path, "stock", "linux-user", 500, 0.1, load="none")], TOLERANT_100US)
    assert late.steps[0].rating.grade is Grade.AWFUL, "who is late when idle is late"


@pytest.mark.check
def test_a_setup_is_good_under_every_load_that_another_was_measured_under(tmp_path: Path, store: Store) -> None:
    runs = [
        run(tmp_path, "stock", "linux-user", 500, 0.1),
        run(tmp_path, "stock", "linux-user", 500, 0.1, load="io", seed=7),
        run(tmp_path, "xenomai", "xenomai-user", 20, 0.1),
    ]
    found = advised(store, runs, TOLERANT_100US)
    assert (found.ending, found.steps[-1].approach.id) == (Ending.UNDECIDED, "xenomai-user")
    assert any("no run has load io" in line for line in found.steps[-1].rating.reasons)
    more = advised(store, [*runs, run(tmp_path, "xenomai", "xenomai-user", 20, 0.1, load="io", seed=7)], TOLERANT_100US)
    assert end_of(more) == "xenomai-user"


@pytest.mark.parametrize(
    ("approach", "box", "requirement"),
    [
        (("xenomai", "xenomai-user"), "xenomai-user", TOLERANT_100US),
        (("rt", "linux-user"), "user-rt", NEVER),
        (("rt", "linux-kernel"), "linux-kernel on PREEMPT_RT", TOLERANT_100US),
    ],
)
def test_the_best_of_several_setups_counts_and_shares_the_error(
    tmp_path: Path, store: Store, approach: tuple[str, str], box: str, requirement: Requirement
) -> None:
    """So it does off the chart, since an approach off its path may be reported as good enough."""

    def setup(priority: int, late_us: float) -> Recording:
        parameters = {"interval_ns": 1_000_000, "priority": priority}
        return run(tmp_path, *approach, late_us, 0.1, seed=priority, head={"parameters": parameters})

    found = advised(store, [setup(1, 500), setup(99, 50)], requirement)
    assert found.ratings[box].grade is Grade.GOOD
    assert found.ratings[box].runs == (f"{'-'.join(approach)}-cpu-99",)
    assert "97.5 %" in " ".join(found.ratings[box].reasons)


def test_never_is_judged_by_the_maximum_and_its_return_time(tmp_path: Path, store: Store) -> None:
    rare = 3 / (SECONDS * EACH)
    runs = [
        run(tmp_path, "stock", "linux-user", 50, 0.1),
        run(tmp_path, "xenomai", "xenomai-user", 500, rare),
        run(tmp_path, "xenomai", "xenomai-kernel", 50, 0.1),
    ]
    found = advised(store, runs, NEVER)
    assert [(step.approach.id, step.rating.grade) for step in found.steps] == [
        ("xenomai-user", Grade.AWFUL),
        ("xenomai-kernel", Grade.GOOD),
    ]
    only_linux = advised(store, runs[:1], NEVER)
    assert only_linux.ending is Ending.MEASURE
    assert any("user space on stock Linux" in caution for caution in only_linux.cautions)


def test_an_instrument_is_believed_before_the_board(tmp_path: Path, store: Store) -> None:
    outside = run(tmp_path, "stock", "linux-user", 500, 0.1, seed=1, head={"instrument": {"name": "uno"}})
    inside = run(tmp_path, "stock", "linux-user", 20, 0.1, seed=2, marks=("self-measured",))
    found = advised(store, [inside, outside], TOLERANT_100US)
    assert found.steps[0].rating.runs == (outside.run_id,)
    assert found.steps[0].rating.grade is Grade.AWFUL


def test_emulated_runs_decide_nothing(tmp_path: Path, store: Store) -> None:
    found = advised(store, [run(tmp_path, "stock", "linux-user", 20, 0.1, marks=("emulated",))], TOLERANT_100US)
    assert found.ending is Ending.UNDECIDED


def test_what_did_not_apply_is_no_data_and_says_why(tmp_path: Path, store: Store) -> None:
    runs = [
        run(tmp_path, "stock", "linux-user", 500, 0.1),
        recording(
            tmp_path,
            replace(
                plan("stock", "xenomai-user", 20, 0.1),
                values=(),
                outcome="not-applicable",
                reasons=("no /proc/xenomai here",),
            ),
        ),
    ]
    found = advised(store, runs, TOLERANT_100US)
    assert found.ending is Ending.MEASURE and "not applicable here: no /proc/xenomai here" in found.next


def test_advice_is_about_one_board(tmp_path: Path, store: Store) -> None:
    runs = [
        run(tmp_path, "stock", "linux-user", 20, 0.1),
        run(tmp_path, "stock", "linux-user", 500, 0.1, seed=1, head={"board": "uno"}),
    ]
    with pytest.raises(BadInput, match=r"are of several.*beagle, uno"):
        advised(store, runs, TOLERANT_100US)
    assert advised(store, runs, TOLERANT_100US, board="beagle").ending is Ending.DELIVER
    with pytest.raises(BadInput, match="no run of timer on board due"):
        advised(store, runs, TOLERANT_100US, board="due")


@pytest.mark.parametrize(
    ("kernel", "implementation", "expected"),
    [
        ("stock", "linux-user", "stock"),
        ("rt", "linux-user", "rt"),
        ("xenomai", "linux-user", "xenomai"),
        ("stock", "xenomai-user", "xenomai"),
        ("stock", "evl-kernel", "xenomai"),
    ],
)
def test_kernels_are_told_by_the_profile(tmp_path: Path, kernel: str, implementation: str, expected: str) -> None:
    assert kernel_of(run(tmp_path, kernel, implementation, 20, 0.1).head) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("stock 6.1", "stock"),
        ("rt 6.1", "rt"),
        ("preempt-rt", "rt"),
        ("xenomai-3.2", "xenomai"),
        ("smart", "an unknown kernel"),
    ],
)
def test_without_a_profile_by_the_configuration_or_not_at_all(tmp_path: Path, name: str, expected: str) -> None:
    one = run(tmp_path, "stock", "linux-user", 20, 0.1, head={"configuration": name, "profile": {}})
    assert kernel_of(one.head) == expected


@pytest.mark.check
def test_the_path_is_drawn_with_every_box_and_its_answer(tmp_path: Path) -> None:
    found = by_paper(200, 0.05)
    section = advice_section.section(replace(make_context([], _no_runs()), advice=found))
    assert section is not None
    (picture,) = [part for part in section.parts if isinstance(part, Picture)]
    for box in TOLERANT:
        assert APPROACHES[box].title in picture.svg
    assert "not good: marginal" in picture.svg
    taken = [(row[0], row[1]) for row in picture.data[1] if row[4] == "yes"]
    assert taken == [("user-stock", "user-rt"), ("user-rt", "deliver")]


@pytest.mark.check
def test_what_is_off_the_map_goes_straight_to_hardware() -> None:
    """307 µs are more than 20 times 15 µs; where another box is good, the walk goes on to it."""
    off, awful = by_paper(15, 0.05), by_paper(16, 0.05)
    assert [step.approach.id for step in off.steps] == ["user-stock"] and off.ending is Ending.HARDWARE
    assert len(awful.steps) == 3 and awful.steps[0].rating.grade is Grade.AWFUL
    section = advice_section.section(replace(make_context([], _no_runs()), advice=off))
    assert section is not None
    (picture,) = [part for part in section.parts if isinstance(part, Picture)]
    assert [row[:3] for row in picture.data[1] if row[4] == "yes"] == [("user-stock", "hardware", "no: off the map")]
    ratings = {"user-stock": ApproachRating(Grade.OFF_THE_MAP), "xenomai-user": ApproachRating(Grade.GOOD)}
    assert end_of(advise(ratings, Requirement(1000, 0.05), probe="timer", basis="x")) == "xenomai-user"


def _no_runs() -> Any:
    from fastenough.analysis import judge  # noqa: PLC0415

    return judge([])


# --- the command


def fill(home: Path, plans: Sequence[Plan]) -> None:
    store = Store(home / "fastenough-data")
    for number, one in enumerate(plans):
        sealed(store, write(home / f"{number}.jsonl", one).read_bytes())


@pytest.mark.check
def test_the_command_walks_the_store_and_reports(tmp_path: Path) -> None:
    fill(tmp_path, [plan("stock", "linux-user", 150, 0.1), plan("rt", "linux-user", 50, 0.1)])
    asked = ("advise", "--limit", "100us", "--miss-rate", "5%", "--longest-burst", "10")
    done = command_line(*asked, "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[ user space on stock Linux ]  not good: marginal" in done.stdout and "( deliver )" in done.stdout
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<h1>Deliver: user space on PREEMPT_RT is good enough</h1>" in page and 'id="figure-advice"' in page
    as_json = json.loads(command_line(*asked, "--json", cwd=tmp_path).stdout)
    assert (as_json["ending"], len(as_json["steps"])) == ("deliver", 2)
    never = command_line("advise", "--limit", "100us", cwd=tmp_path)
    assert never.returncode == 3 and "--implementation xenomai-user" in never.stdout
    assert len(current_runs(Store(tmp_path / "fastenough-data"))) == 2


@pytest.mark.check
def test_without_a_probe_named_advice_is_about_the_newest_run(tmp_path: Path) -> None:
    """As the documents have it; that there are others is said."""
    one = plan("stock", "linux-user", 20, 0.1)
    fill(tmp_path, [replace(one, head={**one.head, "probe": "mutex"}), one])
    done = command_line("advise", "--limit", "100us", "--json", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    advice = json.loads(done.stdout)
    assert "of timer on" in advice["basis"] and any("mutex" in caution for caution in advice["cautions"])
    named = json.loads(command_line("advise", "--limit", "100us", "--probe", "mutex", "--json", cwd=tmp_path).stdout)
    assert "of mutex on" in named["basis"]


@pytest.mark.check
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "requires --limit"),
        (["--limit", "100us"], "no store"),
        (["--limit", "1ms", "--reference", "beagleboard"], "add --probe response"),
        (["--limit", "1ms", "--reference", "beagleboard", "--probe", "timer"], "has no figures of timer"),
        (["--limit", "1ms", "--reference", "p2041", "run-1"], "omit RUNS"),
        (["--limit", "1ms", "--reference", "p2041", "--marginal", "inf"], "'--marginal': inf is not in the range"),
        (["--limit", "1ms", "--reference", "p2041", "--marginal", "nan"], "'--marginal': nan is not a finite number"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = command_line("advise", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


def test_runs_of_one_kernel_before_and_after_an_upgrade_are_one_setup(tmp_path: Path) -> None:
    """Older versions did not record the build ID."""
    runs = [
        recording(
            tmp_path,
            Plan(
                [[np.full(10, 1000)]],
                run_id=run_id,
                head={"profile": PROFILE | {"kernel": PROFILE["kernel"] | {"build_id": build_id}}},
            ),
        )
        for run_id, build_id in (("old", None), ("new", "ab12"), ("rebuilt", "cd34"))
    ]
    assert [[run.run_id for run in members] for members in setups(runs)] == [["old", "new"], ["rebuilt"]]


def test_runs_with_and_without_the_identifiers_of_their_machine_are_one_setup(tmp_path: Path) -> None:
    """An ordinary user, or a kernel without a driver, sees fewer of them."""
    machines = {"unknown": None, "known": ["a1"], "with-card": ["a1", "b2"], "other": ["c3"]}
    runs = [
        recording(
            tmp_path,
            Plan([[np.full(10, 1000)]], run_id=run_id, head={"profile": PROFILE | {"machine": identifiers}}),
        )
        for run_id, identifiers in machines.items()
    ]
    assert [[run.run_id for run in members] for members in setups(runs)] == [
        ["unknown", "known", "with-card"],
        ["other"],
    ]
