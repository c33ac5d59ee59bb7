# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost model of the deterministic board: its counts repeat, and show what a load does to the caches.

A loop of the same instructions runs beside the probe, once within a line of the cache and once through twice the cache.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.analysis.costs import COUNTED, CostFigures, cost_figures
from fastenough.campaign import Entry, Plan, run_campaign
from fastenough.model import NotApplicable
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable
from fastenough.report.sections.costs import section
from fastenough.store import Store
from fastenough.virtual.cost_model import COST_MODELS, CostModel, require_interface
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import Command, DeterministicGuest, GuestRun, emulator_of
from fastenough.virtual.probe import PROBE
from tests.support.cache_walk import FAR, NEAR, build_walk, walk_load
from tests.support.virtual_boards import BOOT_S

pytestmark = pytest.mark.untimed

TIMER = Command((PROBE, "timer", "--interval=1ms", "--duration=100ms", "--record=-"))
MODEL = COST_MODELS["cache"]
BOARD = "deterministic:stock cost-model=cache"
INSTRUCTIONS, _, DATA_MISSES = COUNTED


@pytest.fixture(autouse=True)
def interface() -> None:
    """The interface of this QEMU for plugins."""
    version = emulator_of(find_kernel("stock").machine)["version"]
    try:
        require_interface(version)
    except NotApplicable as reason:
        pytest.skip(str(reason))


def _boot(walk: bytes, size: int, model: CostModel | None) -> GuestRun:
    guest = DeterministicGuest(find_kernel("stock"), cost_model=model)
    return guest.boot([TIMER], walk_load(walk, size))


def _results(run: GuestRun) -> tuple[bytes, bytes | None]:
    """The recording and the costs of a guest."""
    results = run.results(BOOT_S)
    (done,) = results.commands
    assert done.status == 0, done.stderr
    return done.stdout, results.costs


def _figures(costs: bytes | None) -> dict[str, CostFigures]:
    assert costs is not None
    figures = {each.counted: each for each in cost_figures([costs])}
    assert set(figures) == set(COUNTED)
    assert all(each.paths >= 100 for each in figures.values())
    return figures


@pytest.mark.matrix
def test_costs_repeat_leave_the_recording_alone_and_show_a_load_on_the_cache(tmp_path: Path) -> None:
    walk = build_walk(tmp_path)
    plain, nothing = _results(_boot(walk, FAR, None))
    recording, costs = _results(_boot(walk, FAR, MODEL))
    assert nothing is None and recording == plain
    assert _results(_boot(walk, FAR, MODEL)) == (recording, costs)
    far, near = _figures(costs), _figures(_results(_boot(walk, NEAR, MODEL))[1])
    assert far[INSTRUCTIONS].median == pytest.approx(near[INSTRUCTIONS].median, rel=0.01)
    assert far[DATA_MISSES].median > 5 * near[DATA_MISSES].median


def test_a_run_of_the_board_is_stored_and_reported_with_its_costs(tmp_path: Path) -> None:
    plan = Plan("costs", (Entry("timer", ("none",), 0.1, {"interval": ("1ms",)}),), boards=(BOARD,))
    store = Store(tmp_path / "store")
    (run,) = run_campaign(plan, store).runs
    recording = store.load(run)
    assert recording.head.profile is not None and recording.costs is not None
    assert recording.head.profile["emulator"]["cost_model"] == MODEL.text
    assert "cost-model" not in str(recording.head.profile["cmdline"])
    figures = _figures(recording.costs())
    shown = section(make_context([recording], judge([recording])))
    assert shown is not None
    (table,) = shown.parts
    assert isinstance(table, ReportTable)
    assert [row[1:] for row in table.rows] == [
        [each.counted, each.paths, each.minimum, each.median, each.upper_quartile] for each in figures.values()
    ]
