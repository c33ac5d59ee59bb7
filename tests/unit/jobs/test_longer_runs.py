# SPDX-License-Identifier: GPL-2.0-or-later
"""Longer runs of the same kind, whose maxima test the estimates of a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.jobs.longer_runs import longer_runs
from fastenough.recording import Recording
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable
from fastenough.report.sections import extremes
from fastenough.store import Store
from tests.support.extreme_values import gev
from tests.support.recordings import Plan, write


def _stored(store: Store, scratch: Path, seconds: int, greatest_ns: int, load: str = "none") -> Recording:
    """A run of two CPUs; on the second, values are greater by 1 ms."""
    tail = np.minimum(gev(0.0, seconds, 1), 90_000.0)
    tail[-1] = greatest_ns
    first = [np.append(np.full(19, 20_000 + place % 7), int(one)).astype(np.int64) for place, one in enumerate(tail)]
    writer = store.begin()
    plan = Plan(
        [first, [one + 1_000_000 for one in first]],
        run_id=writer.id,
        interval_ns=10**9,
        period_ns=50_000_000,
        views=("wakeup_corrected",),
        load=load,
    )
    for line in write(scratch / "recording", plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return store.load(writer.id)


@pytest.mark.check
def test_the_longest_run_of_the_same_kind_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    run = _stored(store, tmp_path, 30, 95_000)
    assert longer_runs([run], store) == {}
    _stored(store, tmp_path, 30, 1_000_000)
    _stored(store, tmp_path, 50, 96_000)
    longest = _stored(store, tmp_path, 70, 97_000)
    _stored(store, tmp_path, 90, 98_000, load="another")
    [found] = longer_runs([run], store).values()
    assert found.run_id == longest.run_id
    maxima = [found.maximum_of(run, series) for series in run.series]
    assert [one and one.maximum_ns for one in maxima] == [97_000, 1_097_000]
    assert longer_runs([run, longest], store) == {}, "longer than all of the group together"


@pytest.mark.check
def test_the_report_has_the_maximum_of_the_longer_run_and_refuses_what_it_contradicts(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    run = _stored(store, tmp_path, 120, 90_000)
    for greatest_ns, given in ((95_000, 1), (900_000, 0)):
        _stored(store, tmp_path, 151 - given, greatest_ns)
        context = replace(make_context([run], judge([run])), longer=longer_runs([run], store))
        made = extremes.section(context)
        assert made is not None
        tables = [part for part in made.leaves() if isinstance(part, ReportTable)]
        assert len(tables) == given
        for table in tables:
            header, *lines = table.csv_rows()
            assert {line[header.index("longer_run_greatest_ns")] for line in lines} == {1_095_000.0}
