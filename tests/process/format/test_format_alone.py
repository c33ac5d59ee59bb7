# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/format.md alone suffices to read a recording: a reader made from it agrees with the package's own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastenough.recording import Recording, read_recording
from fastenough.recording.histogram import bucket_highest, bucket_index
from tests.support.format_reader import QUANTILES, highest

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
READER = Path(__file__).parents[2] / "support/format_reader.py"


def _alone(path: Path) -> dict[str, Any]:
    """What the reader says in a process of its own, without the package."""
    said = subprocess.run([sys.executable, "-I", str(READER), str(path)], check=True, capture_output=True, timeout=60)
    return dict(json.loads(said.stdout))


def _by_the_package(recording: Recording) -> dict[str, Any]:
    result = {}
    for series in recording.series:
        total = recording.totals[series.id]
        said: dict[str, Any] = {
            "count": total.total,
            "lost": recording.lost(series.id),
            "missed": recording.missed(series.id),
            "sum": total.sum,
            "sum_sq": total.sum_sq,
        }
        if total.total:
            said |= {"min": total.minimum, "max": total.maximum}
            said |= {str(share): total.value_at_rank(math.ceil(share * total.total)) for share in QUANTILES}
        if recording.head.version == 2:
            said |= {"role": series.role.value} | _order(recording, series.id)
        result[str(series.id)] = said
    return result


def _order(recording: Recording, number: int) -> dict[str, Any]:
    rises, limit = recording.rises(number), recording.limit(number)
    bursts = (
        {}
        if rises is None
        else {str(edge): int(runs) for edge, runs in zip(rises.edge.tolist(), rises.runs(), strict=True)}
    )
    return {"bursts": bursts, "limit": [0, 0, 0] if limit is None else [limit.exceeded, limit.runs, limit.longest]}


@pytest.mark.parametrize(
    "arguments",
    [
        ["timer", "-D", "500ms", "-i", "500us", "--limit", "20us"],
        ["timer", "-D", "500ms", "-i", "500us", "--method", "clock_nanosleep-rel", "--clock", "realtime"],
        ["spin", "-D", "300ms"],
        ["timer", "-D", "300ms", "-i", "200ms"],  # intervals in which nothing was stored
    ],
    ids=" ".join,
)
def test_a_reader_made_from_the_page_agrees(probe_binary: str, tmp_path: Path, arguments: list[str]) -> None:
    path = tmp_path / "r"
    subprocess.run(
        [probe_binary, *arguments, "--report", "50ms", "--record", str(path), "--quiet", "--allow-difference"],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    recording = read_recording(path)
    assert any(total.total for total in recording.totals.values())
    assert _alone(path) == _by_the_package(recording)


@pytest.mark.parametrize("path", sorted((ROOT / "format" / "golden").glob("*.jsonl")), ids=lambda path: path.name)
def test_it_agrees_on_recordings_that_were_kept(path: Path) -> None:
    assert _alone(path) == _by_the_package(read_recording(path))


def test_it_agrees_on_a_recording_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    whole = (ROOT / "format" / "golden" / "timer-2.jsonl").read_bytes()
    path.write_bytes(whole[: -(len(whole) // 10)])
    recording = read_recording(path)
    assert recording.cut_off and _alone(path) == _by_the_package(recording)


@pytest.mark.parametrize("k", [1, 4, 10, 16])
def test_it_agrees_on_every_kind_of_bucket(k: int) -> None:
    some = [0, 1, (2 << k) - 1, 2 << k, (2 << k) + 1, 5 << k, 40 << k, ((64 - k) << k) - 1]
    assert [highest(sign * index, k) for index in some for sign in (1, -1)] == [
        int(bucket_highest([sign * index], k)[0]) for index in some for sign in (1, -1)
    ]


def test_the_example_on_the_page_holds() -> None:
    page = (ROOT / "docs" / "format.md").read_text()
    assert "the value 100,000 (top = 16, shift = 6) has the index 6 · 1024 + 1562 = 7706" in page
    assert bucket_index([100_000, -100_000], 10).tolist() == [7706, -7706]
    assert (highest(7706, 10), highest(-7706, 10)) == (100_031, -99_968)


def test_the_reader_shares_no_code_with_the_package() -> None:
    assert "import fastenough" not in READER.read_text() and "from fastenough" not in READER.read_text()
    assert sum(bool(line.strip()) for line in READER.read_text().splitlines()) < 70
