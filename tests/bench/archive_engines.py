# SPDX-License-Identifier: GPL-2.0-or-later
"""Asks pandas and chDB (ClickHouse's engine) what DuckDB answers about the archive of a fleet; fails if they differ.

They are installed for the time of this program, from ``setup/engines.lock``: they need a gigabyte.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.archive_questions import LIMIT_NS, QUESTIONS, by_duckdb, filled_archive
from tests.support.cli_calls import ROOT

_ASKED = r"""
import json, sys
import chdb
import pandas as pd

folder, limit_ns, questions = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
rows = pd.read_parquet(folder)
cells = rows[["board", "bucket_ns", "bucket_count"]].explode(["bucket_ns", "bucket_count"])
greatest = rows.sort_values(["max_ns", "board", "cpu", "interval"], ascending=[False, True, True, True])
frames = (
    rows.groupby("type", observed=True).max_ns.max().reset_index(),
    rows.groupby("board")[["count", "lost"]].sum().reset_index(),
    rows.groupby(["board", "cpu"]).size().reset_index(),
    greatest[["board", "cpu", "interval"]].head(3),
    cells[cells.bucket_ns >= limit_ns].groupby("board").bucket_count.sum().reset_index(),
)
by_pandas = {name: sorted(frame.values.tolist()) for name, frame in zip(questions, frames, strict=True)}
source = f"file('{folder}/**/*.parquet', Parquet)"
kind = "extract(_path, 'type=([^/]+)')"
view = f"(SELECT *, {kind} AS type FROM {source})"
by_chdb = {}
for name, text in questions.items():
    if "unnest" in text:
        text = (
            f"SELECT board, sum(n) FROM archive ARRAY JOIN bucket_ns AS ns, bucket_count AS n "
            f"WHERE ns >= {limit_ns} GROUP BY board"
        )
    answer = json.loads(str(chdb.query(text.replace("archive", view), "JSONCompact")))["data"]
    rows = [[int(cell) if str(cell).isdigit() and len(str(cell)) < 20 else cell for cell in row] for row in answer]
    by_chdb[name] = sorted(rows)
print(json.dumps({"pandas": by_pandas, "chdb": by_chdb}, default=int))
"""


def main() -> None:
    """Print how many answers were equal."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        python = folder / "venv/bin/python"
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        lock = ROOT / "setup" / "engines.lock"
        subprocess.run([python, "-m", "pip", "install", "-q", "--require-hashes", "-r", lock], check=True)
        for merged in (False, True):
            (folder / str(merged)).mkdir()
            with filled_archive(folder / str(merged), merged=merged) as bench:
                expected = {name: [list(row) for row in rows] for name, rows in by_duckdb(bench.folder).items()}
                asked: list[str | Path] = [python, "-c", _ASKED, bench.folder, str(LIMIT_NS), json.dumps(QUESTIONS)]
                found = json.loads(subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout)
            for engine, answers in found.items():
                assert answers == expected, (engine, answers, expected)
            what = "merged" if merged else "parts"
            print(f"{what}: {len(expected)} answers are the same in DuckDB, {', '.join(found)}")


if __name__ == "__main__":
    main()
