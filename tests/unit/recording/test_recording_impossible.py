# SPDX-License-Identifier: GPL-2.0-or-later
"""What no machine can have recorded is refused: each of these once stood in a recording that was believed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastenough.model import BadInput
from fastenough.recording import read_recording
from tests.support import recordings as made
from tests.support.mutants import Lines, balanced


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    plan = made.Plan(
        made.latencies(1, intervals=3, per_interval=40),
        load="cpu",
        events=[{"kind": "max", "series": 0, "cpu": 0, "value": 5000}],
    )
    return made.write(tmp_path_factory.mktemp("whole") / "run.jsonl", plan).read_text().splitlines()


def _read(path: Path, lines: Lines) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read_recording(path)


def _entry(lines: Lines, interval: int = 1) -> dict[str, Any]:
    entry: dict[str, Any] = lines[interval]["series"][0]
    return entry


def _minus_beside_plus(lines: Lines) -> None:
    """Five values too many in one bucket, and five too few in another: the sum is right."""
    buckets = _entry(lines)["buckets"]
    buckets[0][1], buckets[1][1] = buckets[0][1] + 5 + buckets[1][1], -5


def _twice(lines: Lines) -> None:
    lines.insert(2, dict(lines[2]))
    balanced(lines)


def _renumbered(lines: Lines) -> None:
    """The same second once more, with a number of its own."""
    lines.insert(2, json.loads(json.dumps(lines[1])))
    for number, line in enumerate(lines[1:5]):
        line["seq"] = number
    balanced(lines)


def _overlapping(lines: Lines) -> None:
    lines[2]["begin"] = {clock: ns - 1000 for clock, ns in lines[2]["begin"].items()}


def _backwards(lines: Lines) -> None:
    lines[2]["end"], lines[3]["begin"] = ({"mono_ns": 5, "wall_ns": 5} for _ in range(2))


def _counted_in_no_bucket(lines: Lines) -> None:
    _entry(lines)["count"] += 1
    balanced(lines)


def _sum_within_extremes(lines: Lines) -> None:
    """No smaller than so many minima, yet smaller than the buckets allow."""
    entry = _entry(lines)
    entry["sum"] = entry["count"] * entry["min"]
    balanced(lines)


def _squares(lines: Lines) -> None:
    entry = _entry(lines)
    entry["sum_sq"] = str(int(entry["sum_sq"]) * 11 // 10)
    balanced(lines)


def _greater_event(lines: Lines) -> None:
    lines[-2]["value"] = 900_000


def _event_of_nothing(lines: Lines) -> None:
    lines[-2]["series"] = 77


def _series_untold(lines: Lines) -> None:
    del lines[-1]["series"][0]


def _early_end(lines: Lines) -> None:
    lines[-1]["at"] = dict(lines[1]["end"])


def _ns_in_ticks(lines: Lines) -> None:
    lines[0]["series"][1]["tick_ps"] = 1


IMPOSSIBLE: dict[str, tuple[Callable[[Lines], None], str]] = {
    "a count of -5 beside +5": (_minus_beside_plus, "a count from 1"),
    "an interval twice": (_twice, "does not follow"),
    "an interval twice, numbered anew": (_renumbered, "does not begin where the previous one ends"),
    "intervals that overlap": (_overlapping, "does not begin where the previous one ends"),
    "an interval that runs backwards": (_backwards, "ends before it begins"),
    "a total that no bucket holds": (_counted_in_no_bucket, "buckets sum to"),
    "totals of other intervals": (lambda lines: lines[-1]["series"][0].update(stored=121, taken=121), "do not add up"),
    "a maximum of no interval": (lambda lines: lines[-1]["series"][0].update(max=5000), "minimum or maximum"),
    "a sum that the buckets cannot have": (_sum_within_extremes, "the sum cannot be"),
    "squares that the buckets cannot have": (_squares, "sum of squares cannot be"),
    "an event above the maximum": (_greater_event, "an event reports a value of 900000"),
    "an event of no series": (_event_of_nothing, "series 77, which is not declared"),
    "an end that leaves a series out": (_series_untold, "series 0 is missing"),
    "an end before the last interval's": (_early_end, "before the end of the last interval"),
    "ns that are counted in ticks": (_ns_in_ticks, "tick_ps"),
    "a count with a point": (lambda lines: _entry(lines).update(count=40.0), "not a line"),
    "a minimum with a point": (lambda lines: _entry(lines).update(min=float(_entry(lines)["min"])), "not a line"),
    "NaN among the buckets": (lambda lines: _entry(lines)["buckets"].append([float("nan"), 1]), "not a line"),
    "infinity in a fact": (lambda lines: lines[0]["profile"].update(x=float("inf")), "not a line"),
    "5,000 digits": (lambda lines: _entry(lines).update(sum_sq="9" * 5000), "not a line"),
    "a counter that is a text": (lambda lines: lines[1]["counters"].update(smi="0"), "not a line"),
    "a counter with a point": (lambda lines: lines[-1]["counters"].update(throttled=0.0), "not a line"),
    "a load that is a text": (lambda lines: lines[0].update(load="cpu"), "not a line"),
    "a load's time that is a text": (lambda lines: lines[1]["load"].update(cpu_ns="1"), "not a line"),
    "a proof that is a list": (lambda lines: lines[-1].update(load=[]), "not a line"),
    "a proof that is 1": (lambda lines: lines[-1]["load"].update(ran=1), "not a line"),
    "a requirement of nothing": (lambda lines: lines[0].update(requirement={}), "not a line"),
    "a requirement that all may miss": (
        lambda lines: lines[0].update(requirement={"limit_ns": 5, "miss_rate": 1, "confidence": 0.95}),
        "not a line",
    ),
    "a requirement at no confidence": (
        lambda lines: lines[0].update(requirement={"limit_ns": 5, "miss_rate": 0, "confidence": 5e-324}),
        "run.jsonl: requirement: the confidence",
    ),
    "a requirement that none may miss, nearly": (
        lambda lines: lines[0].update(requirement={"limit_ns": 5, "miss_rate": 5e-324, "confidence": 0.95}),
        "run.jsonl: requirement: the miss rate",
    ),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_cannot_be_is_refused_in_one_line(what: str, tmp_path: Path, whole: list[str]) -> None:
    change, said = IMPOSSIBLE[what]
    lines = [json.loads(line) for line in whole]
    _read(tmp_path / "run.jsonl", lines)
    change(lines)
    with pytest.raises(BadInput) as refused:
        _read(tmp_path / "run.jsonl", lines)
    assert re.search(said, str(refused.value)) and "\n" not in str(refused.value), refused.value


def test_5000_digits_that_are_no_text(tmp_path: Path, whole: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    content = "\n".join(whole) + "\n"
    path.write_text(content.replace('"count":40', f'"count":{"9" * 5000}', 1))
    assert path.read_text() != content
    with pytest.raises(BadInput):
        read_recording(path)


def test_an_event_of_a_value_that_was_lost_is_no_contradiction(tmp_path: Path, whole: list[str]) -> None:
    lines = [json.loads(line) for line in whole]
    _greater_event(lines)
    _entry(lines)["lost"] = 1
    balanced(lines)
    _read(tmp_path / "run.jsonl", lines)
