# SPDX-License-Identifier: GPL-2.0-or-later
"""Before and after: set beside each other only where what differs is what somebody changed, and it is named."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis import judge
from fastenough.recording import Recording
from fastenough.report import write_report
from fastenough.report.context import make_context
from fastenough.report.document import Text
from fastenough.report.sections import before_after
from tests.support.monitor_recordings import Watched, watched
from tests.support.recordings import PROFILE, SETTINGS, Plan, latencies, recording

IDLE = {"name": "idle-latency", "requested": 0, "in_effect": 0}


def _run(
    folder: Path,
    name: str,
    begin: int,
    *,
    scale_us: float = 4.0,
    load: str = "none",
    settings: Any = SETTINGS,
    **head: Any,
) -> Recording:
    return recording(
        folder,
        Plan(
            latencies(begin, intervals=4, scale_us=scale_us),
            run_id=name,
            load=load,
            settings=settings,
            views=("wakeup",),
            head=head,
            begin_ns=begin * 10**10,
        ),
    )


def _pairs(*runs: Recording) -> list[before_after.BeforeAfter]:
    return list(before_after.pairs(make_context(runs, judge(runs))))


@pytest.mark.check
def test_one_setting_that_was_changed(tmp_path: Path) -> None:
    """As figure 6: the earlier run is before, whatever the order in which they are given."""
    before = _run(tmp_path, "b", 1, scale_us=90)
    after = _run(tmp_path, "a", 2, settings=(*SETTINGS, IDLE))
    (pair,) = _pairs(after, before)
    assert [entry.group.recordings[0].run_id for entry in (pair.before, pair.after)] == ["b", "a"]
    (said,) = pair.differs
    assert "idle-latency" in said and "settings" in said
    write_report([after, before], judge([after, before]), tmp_path / "report")
    with (tmp_path / "report" / "tables" / "before-after.csv").open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["median before [µs]"]) > 10 * float(row["median after [µs]"])
    with (tmp_path / "report" / "figures" / "before-after-1.csv").open(newline="") as stream:
        drawn = list(csv.DictReader(stream))
    assert {
        name: sum(int(line["samples"]) for line in drawn if line["line"] == name) for name in ("before", "after")
    } == {"before": 2 * 4 * 2000, "after": 2 * 4 * 2000}


@pytest.mark.parametrize(
    "other",
    [
        {"load": "io"},
        {"board": "another"},
        {"parameters": {"mode": "clock_nanosleep", "interval_ns": 500_000}},
        {"profile": PROFILE | {"firmware": {"bios_vendor": "Example", "bios_version": "1.3"}}},
        {},
    ],
    ids=str,
)
def test_another_measurement_is_none_after_it(tmp_path: Path, other: dict[str, Any]) -> None:
    assert _pairs(_run(tmp_path, "one", 1), _run(tmp_path, "two", 2, **other)) == []


@pytest.mark.check
def test_two_changes_are_both_named_and_nobody_is_credited(tmp_path: Path) -> None:
    profile = PROFILE | {"cmdline": "processor.max_cstate=1"}
    runs = [_run(tmp_path, "one", 1), _run(tmp_path, "two", 2, settings=(*SETTINGS, IDLE), profile=profile)]
    context = make_context(runs, judge(runs))
    (pair,) = before_after.pairs(context)
    assert len(pair.differs) == 2 and any("command line" in said for said in pair.differs)
    section = before_after.section(context)
    assert section is not None
    assert any("several settings differ" in leaf.text for leaf in section.leaves() if isinstance(leaf, Text))


def test_what_the_monitor_saw_is_set_beside_each_other_too(tmp_path: Path) -> None:
    after = Watched("two", begin_ns=10**11, head={"settings": [IDLE]})
    (pair,) = _pairs(watched(tmp_path, Watched("one")), watched(tmp_path, after))
    assert pair.before.kind.name == "expiry-to-return" and "idle-latency" in pair.differs[0]


def test_nothing_changed_is_no_section(tmp_path: Path) -> None:
    runs = [_run(tmp_path, "one", 1)]
    assert before_after.section(make_context(runs, judge(runs))) is None
