# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader of recordings made from docs/format.md alone; it shares no code with fastenough."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)


def lines(path: Path) -> list[dict[str, Any]]:
    whole = path.read_bytes().split(b"\n")[:-1]  # behind the last newline is no line
    return [json.loads(line) for line in whole]


def highest(index: int, k: int) -> int:
    """The greatest value of a bucket; of the mirrored half it is the one nearest to zero."""
    magnitude = abs(index)
    shift = max((magnitude >> k) - 1, 0)
    lowest = (magnitude - (shift << k)) << shift
    return -lowest if index < 0 else lowest + (1 << shift) - 1


def quantile(buckets: Counter[int], k: int, share: float, greatest: int) -> int:
    rank = math.ceil(share * buckets.total())
    for index in sorted(buckets):
        rank -= buckets[index]
        if rank <= 0:
            return min(highest(index, k), greatest)
    raise AssertionError("the buckets hold less than they say")


def summary(path: Path) -> dict[int, dict[str, Any]]:
    """Per series id: count, lost, missed and, where anything is stored, min, max, mean and quantiles."""
    head, *rest = lines(path)
    assert head["type"] == "head" and head["format"] == "fastenough-recording" and head["version"] in (1, 2)
    intervals = [line for line in rest if line["type"] == "interval"]
    for number, interval in enumerate(intervals):
        assert interval["seq"] == number
        assert number == 0 or interval["begin"] == intervals[number - 1]["end"]
    assert not intervals or intervals[0]["begin"]["mono_ns"] >= head["begin"]["mono_ns"]
    result = {}
    for series in head["series"]:
        entries = [entry for interval in intervals for entry in interval["series"] if entry["id"] == series["id"]]
        buckets: Counter[int] = Counter()
        for entry in entries:
            assert entry["count"] == sum(count for _, count in entry["buckets"])
            assert ("min" in entry) == ("max" in entry) == (entry["count"] > 0)
            buckets.update(dict(entry["buckets"]))
        numbers = {name: sum(entry[name] for entry in entries) for name in ("count", "lost", "missed", "sum")}
        result[series["id"]] = said = dict(numbers, sum_sq=sum(int(entry["sum_sq"]) for entry in entries))
        if numbers["count"]:
            said["min"] = min(entry["min"] for entry in entries if entry["count"])
            said["max"] = max(entry["max"] for entry in entries if entry["count"])
            said |= {str(share): quantile(buckets, series["k"], share, said["max"]) for share in QUANTILES}
        if head["version"] == 2:
            said |= {"role": series["role"], "bursts": bursts(entries), "limit": at_limit(entries)}
    return result


def bursts(entries: list[dict[str, Any]]) -> dict[str, int]:
    """How many runs of consecutive values began at each edge where that number changes."""
    deltas: Counter[int] = Counter()
    for entry in entries:
        deltas.update(dict(entry.get("rises", [])))
    return {str(edge): sum(deltas[lower] for lower in deltas if lower <= edge) for edge in deltas if deltas[edge]}


def at_limit(entries: list[dict[str, Any]]) -> list[int]:
    """Values above the limit given before the run, their runs, and the longest of these."""
    limits = [entry["limit"] for entry in entries if "limit" in entry]
    return [
        sum(limit["exceeded"] for limit in limits),
        sum(limit["runs"] for limit in limits),
        max((limit["longest"] for limit in limits), default=0),
    ]


if __name__ == "__main__":
    print(json.dumps(summary(Path(sys.argv[1]))))
