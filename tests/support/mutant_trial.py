# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of every kind, and what becomes of a mutant of one: read, judged and measured, or refused in one line."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from fastenough.analysis import Assessment, judge, measure, merge_samples
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.recording import Recording, read_from
from fastenough.recording.columns import INTERVALS_FILE, MANIFEST_FILE, TOTALS_FILE
from fastenough.recording.lines import Lines
from fastenough.store import Store
from tests.support import recordings as made
from tests.support.mutants import BAD_VALUES, RAW, mutant, places
from tests.support.pass_checker import contradictions
from tests.support.processes import ROOT

ASKED = (Requirement(200_000, return_time_ns=3 * 10**9), Requirement(50_000, 0.05, longest_burst=5))
"""The second is exceeded now and then by all that is made here."""
PROBES = (
    ["timer", "-D", "300ms", "-i", "1ms", "--limit", "20us"],
    ["timer", "-D", "200ms", "-i", "1ms", "--method", "clock_nanosleep-rel", "--clock", "realtime"],
    ["spin", "-D", "200ms"],
    ["mutex", "-D", "200ms"],
    ["shm", "-D", "200ms"],
)


def _values(seed: int, cpus: int = 1, intervals: int = 12) -> list[list[Any]]:
    """So many of one value that lines are short: 2,500 a second."""
    random_ = np.random.default_rng(seed)
    few = np.array([3_000, 4_100, 5_203, 7_000, 12_000, 31_000])
    rare = [random_.random(2_500) < 0.002 for _ in range(cpus * intervals)]
    return [
        [
            np.where(rare[cpu * intervals + at], 60_000, few[random_.integers(0, few.size, 2_500)])
            for at in range(intervals)
        ]
        for cpu in range(cpus)
    ]


TICKS = {"unit": "ticks", "tick_ps": 500_000, "corrected": False}
PASSING: dict[str, dict[str, Any]] = {
    "ordered": {"load": "cpu", "rise_k": 3, "limit_ns": 200_000},
    "idle": {"load": "none", "cpus": 2},
    "loaded": {"load": "full", "events": [{"kind": "max", "series": 0, "cpu": 0, "value": 60_000}]},
    "jitter": {"views": ("jitter",), "series": {"corrected": False}},
    "by a gauge": {
        "views": ("response",),
        "series": TICKS,
        "scale": 500,
        "head": {"probe": "response", "instrument": {"id": "gauge", "tick_ps": 500_000}},
    },
    "stated": {"head": {"requirement": {"limit_ns": 200_000, "miss_rate": 0, "confidence": 0.95}}},
}


def _made(folder: Path, name: str, cpus: int = 1, scale: int = 1, **change: Any) -> bytes:
    values = [[interval // scale for interval in cpu] for cpu in _values(len(name), cpus)]
    usual: dict[str, Any] = {"load": "cpu", "period_ns": 400_000, "run_id": "r"}
    plan = made.Plan(values, **(usual | change))
    return made.write(folder / "made.jsonl", plan).read_bytes()


def first_version(content: bytes) -> bytes:
    """A recording of an idle machine as it was written in version 1."""
    lines = [json.loads(line) for line in content.splitlines()]
    head, end = lines[0], lines[-1]
    head |= {"version": 1, "configuration": head["configuration"]["name"]}
    for series in head["series"]:
        series["name"] = series["name"].replace("_corrected", "_owed")
        for key in ("role", "two_sided", "corrected", "relative"):
            del series[key]
    head["settings"] = [
        {{"requested": "asked", "in_effect": "granted"}.get(key, key): value for key, value in setting.items()}
        for setting in head["settings"]
    ]
    del end["settings"]
    end["settings_changed"] = []
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def kinds(folder: Path, probe: str | None = None) -> dict[str, bytes]:
    """By name: made so that they pass, kept ones of both versions, and fresh ones where there is a probe."""
    found = {name: _made(folder, name, **change) for name, change in PASSING.items()}
    found["version 1"] = first_version(_made(folder, "idle", load="none"))
    for path in sorted((ROOT / "format" / "golden").glob("*.jsonl")):
        found[path.stem] = path.read_bytes()
    for number, arguments in enumerate(PROBES if probe else ()):
        path = folder / f"fresh-{number}.jsonl"
        subprocess.run(
            [str(probe), *arguments, "--report", "50ms", "--record", str(path), "--quiet", "--allow-difference"],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        found[" ".join(arguments)] = path.read_bytes()
    return found


def _said(assessment: Assessment) -> None:
    """It can be printed and written."""
    json.dumps(
        [assessment.headline, *assessment.reasons, *assessment.next_steps, *assessment.cautions], ensure_ascii=False
    ).encode()


def _contradicted(content: bytes, assessment: Assessment) -> list[str]:
    """What speaks against a PASS, by the requirement it was judged by."""
    required = assessment.requirements
    assert len(required) == 1
    return contradictions(content, required[0].limit_ns, required[0].miss_rate)


def judged(recording: Recording, content: bytes) -> int:
    """Judge it in every way; how often it passed.  Raises AssertionError for a PASS that the content contradicts."""
    passed = 0
    for required in (*ASKED, None):
        assessment = judge([recording], required)
        _said(assessment)
        assert recording.end is not None or assessment.verdict is Verdict.BROKEN
        assert assessment.verdict is not Verdict.PASS or required or recording.head.requirement, "nothing was required"
        if assessment.verdict is Verdict.PASS:
            passed += 1
            against = _contradicted(content, assessment)
            assert not against, (assessment.headline, against)
    return passed


def _read(content: bytes) -> Recording | None:
    """With the hash of what it is; None where it is refused, in one line."""
    try:
        with tempfile.TemporaryFile() as stream:
            stream.write(content)
            stream.seek(0)
            return read_from(stream, "mutant", hashlib.sha256(content).hexdigest())
    except BadInput as error:
        assert "\n" not in str(error)
        str(error).encode()
        return None


@dataclass
class Trials:
    """Mutants of recordings of every kind, one after the other from a seed, and what became of them."""

    whole: dict[str, bytes]
    seed: int
    counts: Counter[str] = field(default_factory=Counter)

    def content(self, number: int) -> bytes:
        """Mutant ``number``: half of them of what would pass, so that there is a PASS to contradict."""
        dice = random.Random(f"{self.seed} {number}")
        names = list(self.whole)
        passing = names[: len(PASSING) + 1]
        return mutant(self.whole[dice.choice(passing if dice.random() < 0.5 else names)], dice)

    def run(self, numbers: range) -> None:
        """Raises whatever reading or judging raises."""
        for number in numbers:
            try:
                self._one(self.content(number))
            except BaseException as error:
                error.add_note(f"mutant {number} of seed {self.seed}")
                raise

    def _one(self, content: bytes) -> None:
        recording = _read(content)
        self.counts["mutants"] += 1
        if recording is None:
            return
        self.counts["parsed"] += 1
        self.counts["passed"] += judged(recording, content) > 0
        for series in recording.series:
            measure(merge_samples([(recording, series)]))


def sealed(store: Store, content: bytes) -> str:
    """Keep it as a run: hashed and sealed as any other, with its columns where they can be made."""
    writer = store.begin({})
    first, newline, rest = content.partition(b"\n")
    try:
        head = json.loads(first)
        first = json.dumps(head | {"run_id": writer.id}).encode()
    except (ValueError, TypeError, RecursionError):
        pass
    writer.line(first + newline + rest)
    writer.end()
    return writer.id


def text_of(store: Store, run: str) -> bytes:
    """What was sealed."""
    with (store.path / "runs" / run / "recording.jsonl.zst").open("rb") as stream:
        return b"".join(Lines(stream, run))


def _changed_table(path: Path, dice: random.Random) -> None:
    """Rows, columns or what stands beside them."""
    table = pq.read_table(path)
    said = dict(table.schema.metadata or {})
    key = b"fastenough"
    if key in said and dice.random() < 0.7:
        content = json.loads(said[key])
        container, place = dice.choice(places(content))
        container[place] = dice.choice(BAD_VALUES)
        table = table.replace_schema_metadata(said | {key: json.dumps(content).encode()})
    elif table.num_rows:
        which = dice.randrange(table.num_columns)
        order = [dice.randrange(table.num_rows) for _ in range(table.num_rows)]
        table = dice.choice(
            [
                table.set_column(which, table.schema.field(which), table.column(which).take(order)),
                table.drop_columns([table.column_names[which]]),
                table.slice(1),
            ]
        )
    path.unlink()
    pq.write_table(table, path, compression="zstd")


def reseal_columns(store: Store, run: str, dice: random.Random) -> None:
    """Change one of its column files, and make the hashes fit again."""
    folder = store.path / "runs" / run
    chosen = folder / dice.choice([TOTALS_FILE, TOTALS_FILE, INTERVALS_FILE])
    if dice.random() < 0.3:
        content = chosen.read_bytes()
        at = dice.randrange(len(content))
        chosen.unlink()
        chosen.write_bytes(content[:at] + dice.choice(RAW) + content[at + dice.randrange(9) :])
    else:
        _changed_table(chosen, dice)
    manifest = folder / MANIFEST_FILE
    said = json.loads(manifest.read_text())
    for key, file in (("totals_sha256", TOTALS_FILE), ("intervals_sha256", INTERVALS_FILE)):
        said[key] = hashlib.sha256((folder / file).read_bytes()).hexdigest()
    manifest.unlink()
    manifest.write_text(json.dumps(said))


def stored(store: Store, content: bytes, dice: random.Random, counts: Counter[str]) -> None:
    """Sealed as a run and read again, out of its columns; then once more with these changed, and sealed again."""
    run = sealed(store, content)
    text = text_of(store, run)
    recording = store.load(run)
    counts["sealed"] += 1
    if recording.damage is None:
        counts["believed"] += 1
        judged(recording, text)
        if (store.path / "runs" / run / MANIFEST_FILE).exists():
            reseal_columns(store, run, dice)
            again = store.load(run)
            counts["columns"] += 1
            counts["columns passed"] += judged(again, text) > 0
            assert len(again.timeline) >= 0
    else:
        assert judge([recording], ASKED[0]).verdict is Verdict.BROKEN
    shutil.rmtree(store.path / "runs" / run)
