# SPDX-License-Identifier: GPL-2.0-or-later
"""Every sample as Parquet: none is changed or left out, and a file of any size takes the memory of a few blocks."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fastenough.model import BadInput
from fastenough.recording.samples import read_samples
from fastenough.recording.samples_parquet import export_samples
from tests.support.cli_calls import fastenough

pytestmark = pytest.mark.check

HEAD = struct.pack("<8sII", b"FESAMPLE", 1, 16)
END = struct.pack("<IIQ", 0xFFFFFFFF, 0, 0)


def block(series: int, samples: list[tuple[int, int]], lost: int = 0) -> bytes:
    return struct.pack("<IIQ", series, len(samples), lost) + b"".join(struct.pack("<qq", *each) for each in samples)


def _made(path: Path, *blocks: bytes, end: bytes = END) -> Path:
    path.write_bytes(HEAD + b"".join(blocks) + end)
    return path


def test_each_sample_is_there_once_with_what_was_lost_before_it(tmp_path: Path) -> None:
    made = _made(
        tmp_path / "s",
        block(0, [(10, 5), (20, -3)], 0),
        block(1, [(15, 2**62)], 7),
        block(0, [], 4),
        block(0, [(30, 6)], 2),
        block(1, [], 9),
    )
    printed = fastenough("store", "export-samples", "s", "s.parquet", "--json", cwd=tmp_path)
    counts = {"written": {"0": 3, "1": 1}, "lost": {"0": 6, "1": 16}, "complete": True}
    assert json.loads(printed.stdout) == {"version": 2} | counts
    table = pq.read_table(tmp_path / "s.parquet")
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert rows == [(0, 10, 5, 0), (0, 20, -3, 0), (1, 15, 2**62, 7), (0, 30, 6, 6)]
    said = json.loads(pq.ParquetFile(tmp_path / "s.parquet").metadata.metadata[b"fastenough"])
    assert said == counts, "what was lost behind the last sample stands beside the rows"
    kept = read_samples(made)
    for series, samples in kept.series.items():
        mine = table.filter(np.asarray(table["series"]) == series)
        assert np.array_equal(mine["latency_ns"], samples.latency_ns)


def test_a_cut_off_file_is_exported_as_far_as_it_goes(tmp_path: Path) -> None:
    _made(tmp_path / "s", block(0, [(10, 5)]), end=block(0, [(20, 5), (30, 5)])[:-3])
    printed = fastenough("store", "export-samples", "s", "out", cwd=tmp_path)
    assert (printed.returncode, pq.read_table(tmp_path / "out").num_rows) == (0, 1)
    assert b"truncated" in printed.stdout


def _big(path: Path, blocks: int) -> Path:
    whole = block(0, [(n, n) for n in range(4096)])
    with path.open("wb") as stream:
        stream.write(HEAD)
        for _ in range(blocks):
            stream.write(whole)
        stream.write(END)
    return path


def _peak(source: Path, target: Path) -> int:
    tracemalloc.start()
    with target.open("wb") as stream:
        told = export_samples(source, stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    blocks = (source.stat().st_size - 32) // (16 + 4096 * 16)
    assert told.written[0] == pq.ParquetFile(target).metadata.num_rows == blocks * 4096
    return peak


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    small, great = _big(tmp_path / "small", 40), _big(tmp_path / "great", 400)
    _peak(small, tmp_path / "warm")
    assert _peak(great, tmp_path / "b") < 1.5 * _peak(small, tmp_path / "a")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"FESAMPLE",
        HEAD[:-1] + b"\xff",
        HEAD + block(0, [])[:4] + b"\xff" * 12,
        HEAD + END + END,
        HEAD + 2 * block(0, [], 1 << 62) + block(0, [(1, 2)]) + END,
    ],
    ids=["empty", "head", "size", "count", "behind the end", "lost"],
)
def test_what_is_no_file_of_samples_is_refused_and_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(BadInput, match=r"sample|damaged"):
        read_samples(tmp_path / "s")
    refused = fastenough("store", "export-samples", "s", "out", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count(b"\n"), refused.stdout) == (2, 1, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_nothing_that_is_there_is_replaced(tmp_path: Path) -> None:
    _made(tmp_path / "s", block(0, [(10, 5)]))
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("there", "link", "no/where"):
        refused = fastenough("store", "export-samples", "s", name, cwd=tmp_path)
        assert (refused.returncode, refused.stderr.count(b"\n")) == (2, 1), refused.stderr
    assert (tmp_path / "there").read_text() == "mine"
    assert fastenough("store", "export-samples", "gone", "out", cwd=tmp_path).returncode == 2
    assert not (tmp_path / "out").exists()
