# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings and summaries that anybody may have written: a verdict or a reason, never a traceback or a flood."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from fastenough.model import BadInput
from fastenough.recording import lines as bounded
from fastenough.recording import read_from, read_recording
from fastenough.recording.lines import MOST_LINE_BYTES
from fastenough.store.summary import parse_summary
from tests.support import recordings as made
from tests.support.mutants import places
from tests.support.processes import ROOT

pytestmark = pytest.mark.untimed

BAD_VALUES: list[Any] = [
    None,
    True,
    "",
    "x",
    "\ud800",
    "[/x]",
    "\x1b[2J",
    "../../x",
    "=1+1",
    -1,
    0,
    1,
    2**31,
    2**53 + 1,
    2**63,
    -(2**63),
    10**400,
    0.5,
    1e300,
    [],
    {},
    [[]],
    {"a": {"b": []}},
    [1, 2],
    "9" * 6000,
    [None],
    "$\\frac{",
    " ",
]
RAW = [b"\xff\xfe", b"\x00", b"[" * 5000, b"NaN", b"1e999", b'"\\ud800"', b"9" * 6000, b"\n", b"{}", b"-", b"\\u0000"]


def _change_value(lines: list[bytes], dice: random.Random) -> None:
    which = dice.randrange(len(lines))
    line = json.loads(lines[which])
    container, key = dice.choice(places(line))
    if dice.random() < 0.2:
        del container[key]
    elif isinstance(container[key], int) and dice.random() < 0.3:
        container[key] += dice.choice([-1, 1, 1000, -(10**6), 2**40])
    else:
        container[key] = dice.choice(BAD_VALUES)
    lines[which] = json.dumps(line).encode() + b"\n"


def _change_bytes(lines: list[bytes], dice: random.Random) -> None:
    which = dice.randrange(len(lines))
    at = dice.randrange(len(lines[which]))
    lines[which] = lines[which][:at] + dice.choice(RAW) + lines[which][at + dice.randrange(9) :]


def _change_order(lines: list[bytes], dice: random.Random) -> None:
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(3):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            del lines[one]
        case _:
            lines.insert(one, lines[other])


CHANGES: list[Callable[[list[bytes], random.Random], None]] = [*[_change_value] * 8, _change_bytes, _change_order]


def mutated(whole: list[bytes], dice: random.Random) -> bytes:
    lines = list(whole)
    for _ in range(dice.choice([1, 1, 1, 2, 4])):
        if lines:
            with contextlib.suppress(ValueError, RecursionError):  # of a line that is no JSON any more
                dice.choice(CHANGES)(lines, dice)
    return b"".join(lines)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    plan = made.Plan(
        made.latencies(1, intervals=2, per_interval=40),
        load="cpu",
        rise_k=3,
        events=[{"kind": "max", "series": 1, "cpu": 0, "value": 5000, "culprit": {"task": "x"}, "text": "t"}],
    )
    return made.write(tmp_path_factory.mktemp("whole") / "run.jsonl", plan).read_bytes().splitlines(keepends=True)


def test_mutated_summaries_are_read_or_refused() -> None:
    dice = random.Random(20260102)
    plain = {
        "format": "fastenough-run",
        "version": 1,
        "id": "r",
        "state": "ended",
        "outcome": "completed",
        "samples": 5,
        "position": 0,
        "sha256": "0" * 64,
        "planned": ["timer, load none"],
        "reason": "x",
    }
    read = 0
    for _ in range(500):
        try:
            summary = parse_summary(mutated([json.dumps(plain).encode() + b"\n"], dice), "r")
        except ValueError:
            continue
        read += 1
        assert summary.id == "r"
        json.dumps([summary.reason, summary.planned], ensure_ascii=False).encode()
        assert all(abs(number or 0) < 2**63 for number in (summary.samples, summary.position))
    assert 10 < read < 450, read


def _changed(whole: list[bytes], which: int, change: Callable[[dict[str, Any]], None]) -> bytes:
    line = json.loads(whole[which])
    change(line)
    return b"".join([*whole[:which], json.dumps(line).encode() + b"\n", *whole[which + 1 :]])


def _entry(line: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = line["series"][0]
    return entry


IMPOSSIBLE: dict[str, tuple[int, Callable[[dict[str, Any]], None]]] = {
    "a sum of 6000 digits": (1, lambda line: _entry(line).update(sum_sq="9" * 6000)),
    "a sum beyond its values": (1, lambda line: _entry(line).update(sum=2**100)),
    "squares below the mean's": (1, lambda line: _entry(line).update(sum_sq="0")),
    "a count that wraps around": (1, lambda line: _entry(line)["buckets"].append([60000, 2**53])),
    "more lost than can be": (1, lambda line: _entry(line).update(lost=2**64 - 1)),
    "a fraction for a count": (1, lambda line: _entry(line).update(lost=1.0)),
    "an interval that ends before it begins": (1, lambda line: line["end"].update(mono_ns=-5)),
    "a fact that is no table": (0, lambda line: line.update(profile={"cpu_isolation": "x"})),
    "a proof that is none": (-1, lambda line: line["load"].update(cpu_time_s="much")),
    "a counter that is a list": (1, lambda line: line["counters"].update(smi=[])),
    "a wall clock of another age": (0, lambda line: line["begin"].update(wall_ns=2**70)),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_cannot_be_is_refused(what: str, tmp_path: Path, whole: list[bytes]) -> None:
    which, change = IMPOSSIBLE[what]
    path = tmp_path / "run.jsonl"
    path.write_bytes(_changed(whole, which % len(whole), change))
    with pytest.raises(BadInput):
        read_recording(path)


def test_texts_come_out_printable(tmp_path: Path, whole: list[bytes]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(_changed(whole, 0, lambda line: line.update(board="a\ud800\x1b[31m\x9b\u202eb")))
    assert read_recording(path).head.board == "a\ufffd\ufffd[31m\ufffd\ufffdb"


def test_deep_nesting_is_refused(tmp_path: Path, whole: list[bytes]) -> None:
    for depth in (40, 900, 200_000):
        path = tmp_path / "run.jsonl"
        path.write_bytes(
            whole[0].replace(b'"profile":{', b'"profile":{"deep":' + b"[" * depth + b"]" * depth + b",")
            + b"".join(whole[1:])
        )
        with pytest.raises(BadInput, match="nested"):
            read_recording(path)


_BOUNDED = """
import resource, sys
from pathlib import Path
from fastenough.model import BadInput
from fastenough.recording import read_recording
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_recording(Path(sys.argv[1]))
except BadInput as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used, error)
"""


def _bomb(path: Path, piece: bytes, times: int) -> None:
    with path.open("wb") as target, zstandard.ZstdCompressor(level=3).stream_writer(target) as stream:
        for _ in range(times):
            stream.write(piece)


@pytest.mark.parametrize("kind", ["one line", "many lines"])
def test_a_small_file_that_grows_takes_little_memory(kind: str, tmp_path: Path, whole: list[bytes]) -> None:
    path = tmp_path / "bomb.jsonl.zst"
    if kind == "one line":
        _bomb(path, b"a" * (1 << 20), 2048)
    else:
        event = b'{"type":"event","kind":"note","at":{"mono_ns":0,"wall_ns":0},"text":"%s"}\n' % (b"a" * 1000)
        events = event * 1024
        _bomb(path, whole[0] + events, 1)
        with path.open("ab") as target:
            for _ in range(1000):
                target.write(zstandard.compress(events))
    assert path.stat().st_size < 1 << 20
    ended = subprocess.run(
        [sys.executable, "-c", _BOUNDED, str(path)], cwd=ROOT, text=True, capture_output=True, timeout=300, check=True
    )
    grown_kib, _, said = ended.stdout.partition(" ")
    assert int(grown_kib) < 20 * MOST_LINE_BYTES >> 10, ended.stdout
    assert ("a line is longer" if kind == "one line" else "the events take more") in said
    assert "Traceback" not in ended.stderr


def test_a_file_that_grows_too_far_is_refused(
    tmp_path: Path, whole: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of lines that are all well: the bound is set low, so that the test need not read as much."""
    monkeypatch.setattr(bounded, "ALWAYS_BYTES", 1 << 20)
    path = tmp_path / "long.jsonl.zst"
    note = b'{"type":"event","kind":"note","at":{"mono_ns":0,"wall_ns":0},"text":"%s"}\n' % (b"a" * 4000)
    path.write_bytes(zstandard.compress(whole[0] + note * 2000, 19))
    assert path.stat().st_size * bounded.MOST_GROWTH < len(note) * 2000
    with pytest.raises(BadInput, match="expands to more"):
        read_recording(path)


def test_a_wide_window_is_refused(tmp_path: Path) -> None:
    """A frame may ask its reader for gigabytes of window."""
    path = tmp_path / "wide.jsonl.zst"
    wide = zstandard.ZstdCompressionParameters(window_log=30, compression_level=1)
    with path.open("wb") as target, zstandard.ZstdCompressor(compression_params=wide).stream_writer(target) as stream:
        stream.write(b"a" * 1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadInput):
        read_recording(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_the_hash_covers_every_byte(tmp_path: Path, whole: list[bytes]) -> None:
    """Also what follows the last newline, and a second frame behind the first."""
    content = b"".join(whole)
    digest = hashlib.sha256(content).hexdigest()
    path = tmp_path / "run.jsonl.zst"
    for stored, good in [
        (content, True),
        (zstandard.compress(content), True),
        (content + b"x", False),
        (zstandard.compress(content) + zstandard.compress(b"x"), False),
        (zstandard.compress(content)[:-9], False),
    ]:
        path.write_bytes(stored)
        with path.open("rb") as stream:
            if good:
                assert read_from(stream, "run", digest).outcome == "completed"
            else:
                with pytest.raises(BadInput):
                    read_from(stream, "run", digest)
