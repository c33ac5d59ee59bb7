# SPDX-License-Identifier: GPL-2.0-or-later
"""What in a recording speaks against a PASS: made from docs/format.md alone, it shares no code with fastenough.

It looks only for what must never stand beside a PASS; that there is enough evidence for one it does not decide.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEAST_NS = 10 * 10**9
Line = dict[str, Any]


def lines(content: bytes) -> list[Line]:
    whole = content.split(b"\n")[:-1]  # behind the last newline is no line
    return [json.loads(line) for line in whole]


def lowest(index: int, k: int) -> int:
    """The least value of a bucket that holds no negative ones."""
    shift = max((index >> k) - 1, 0)
    return (index - (shift << k)) << shift


def beyond(index: int, series: Line, limit_ns: float) -> bool:
    """Whether every value of a bucket is beyond the limit."""
    unit_ns = series["tick_ps"] / 1000 if series["unit"] == "ticks" else 1.0
    if index < 0 and not series["two_sided"]:
        return False
    return lowest(abs(index), series["k"]) * unit_ns > limit_ns


def roles(head: Line) -> Iterator[Line]:
    """The series with their role, whatever the version."""
    names = {series["name"] for series in head["series"]}
    relative = head["parameters"].get("method") in ("clock_nanosleep-rel", "nanosleep", "ppoll")
    drawn_out = relative if head["version"] == 1 else any(series["relative"] for series in head["series"])
    for entry in head["series"]:
        series = entry | {"drawn_out": drawn_out}
        if head["version"] == 1:
            name = series["name"]
            plain = name + "_owed" in names or "refused" in series
            role = "throughput" if "bytes" in series else "diagnostic" if plain else "verdict"
            yield series | {"role": role, "two_sided": "jitter" in name, "corrected": name.endswith("_owed")}
        else:
            yield series


def of_intervals(intervals: list[Line]) -> Iterator[str]:
    for number, interval in enumerate(intervals):
        if interval["seq"] != number or (number and interval["begin"] != intervals[number - 1]["end"]):
            yield f"interval {number} does not follow the one before it"
        if interval["end"]["mono_ns"] < interval["begin"]["mono_ns"]:
            yield f"interval {number} runs backwards"
        for entry in interval["series"]:
            counts = [count for _, count in entry["buckets"]]
            if sum(counts) != entry["count"] or min(counts, default=1) < 1:
                yield f"interval {number}: the buckets do not add up"


def of_series(series: Line, intervals: list[Line], end: Line, asked: tuple[float, float]) -> Iterator[str]:
    """What one judged series has against it."""
    limit_ns, miss_rate = asked
    entries = [entry for interval in intervals for entry in interval["series"] if entry["id"] == series["id"]]
    n = sum(entry["count"] for entry in entries)
    missed = 0 if series["corrected"] else sum(entry["missed"] for entry in entries)
    over = missed + sum(
        count for entry in entries for index, count in entry["buckets"] if beyond(index, series, limit_ns)
    )
    if over > miss_rate * (n + missed):
        yield f"series {series['id']}: {over} of {n + missed} are beyond the limit"
    if miss_rate and n < math.log(0.05) / math.log1p(-miss_rate):
        yield f"series {series['id']}: {n} values cannot show so low a rate"
    said = [entry for entry in end["series"] if entry["id"] == series["id"]]
    if len(said) != 1 or said[0]["stored"] != n or said[0]["taken"] != n + said[0]["lost"]:
        yield f"series {series['id']}: the end says something else than the intervals"
    span_ns = intervals[-1]["end"]["mono_ns"] - intervals[0]["begin"]["mono_ns"]
    full_ns = sum(
        interval["end"]["mono_ns"] - interval["begin"]["mono_ns"]
        for interval in intervals
        if any(entry["id"] == series["id"] and entry["count"] for entry in interval["series"])
    )
    if span_ns < LEAST_NS or full_ns < 0.85 * span_ns:
        yield f"series {series['id']}: measured for {full_ns} of {span_ns} ns"
    if series["corrected"] and series.get("period_ns"):
        due = span_ns / series["period_ns"]
        if n > 1.06 * due + 2 or (not series["drawn_out"] and n < 0.94 * due - 2):
            yield f"series {series['id']}: {n} values for {due:.0f} periods"


def of_acts(series: Line, others: list[Line], intervals: list[Line]) -> Iterator[str]:
    """A corrected series holds each act of the plain one, in the same bucket."""
    for plain in others:
        if (
            plain["corrected"]
            or plain.get("cpu") != series.get("cpu")
            or plain["k"] != series["k"]
            or plain.get("labels", {}) != series.get("labels", {})
            or series["name"].rpartition("_")[0] != plain["name"]
        ):
            continue
        left: Counter[int] = Counter()
        for entry in (entry for interval in intervals for entry in interval["series"]):
            for index, count in entry["buckets"]:
                left[index] += count * ((entry["id"] == plain["id"]) - (entry["id"] == series["id"]))
        if any(count > 0 for count in left.values()):
            yield f"series {series['id']} lacks acts of series {plain['id']}"


def of_load_read_back(load: Line, intervals: list[Line]) -> Iterator[str]:
    """The counters of intervals of a second and more, with two ticks in favour of what is stated."""
    for interval in intervals:
        ns = interval["end"]["mono_ns"] - interval["begin"]["mono_ns"]
        least, most = (interval["counters"].get(f"{which}_idle_ns") for which in ("least", "most"))
        if least is None or most is None:
            yield "how idle it was is not known"
        elif ns >= 10**9 and (
            least + 2 * 10**7 < (1 - load.get("busy_at_most", 1)) * ns - 1
            or most - 2 * 10**7 > (1 - load.get("busy_at_least", 0)) * ns + 1
        ):
            yield "it was not as busy as stated"


def of_load(head: Line, intervals: list[Line], end: Line) -> Iterator[str]:
    load, proof = head.get("load", {}), end.get("load") or {}
    name = load.get("name")
    if "busy_at_most" in load or "busy_at_least" in load:
        yield from of_load_read_back(load, intervals)
        return
    if name is None or (name == "none" and proof.get("ran") is False):
        yield "the load is not stated, or the machine was not idle"
    if name in (None, "none"):
        return
    if proof.get("name") != name or proof.get("ran") is not True or proof.get("stated"):
        yield "the load is not proven"
    uses = [interval.get("load") or {} for interval in intervals]
    span_ns = intervals[-1]["end"]["mono_ns"] - intervals[0]["begin"]["mono_ns"]
    if name in ("cpu", "full") and sum(use.get("cpu_ns") or 0 for use in uses) < 0.02 * span_ns:
        yield "the load used no CPU time"
    ran = sum(bool(use.get("processes")) and bool(use.get("cpu_ns") or use.get("context_switches")) for use in uses)
    if ran < 0.89 * len(uses) or any(use.get("processes") == 0 for use in uses):
        yield f"the load ran in {ran} of {len(uses)} intervals"


def of_declarations(head: Line, intervals: list[Line]) -> Iterator[str]:
    """No series but the plain one of a corrected one is for anything else than a verdict, on a CPU without one."""
    series = list(roles(head))
    corrected = {one["name"] for one in series if one["corrected"]}
    judged = {
        one.get("cpu")
        for one in series
        if "refused" not in one
        and (one["role"] == "verdict" or {f"{one['name']}_corrected", f"{one['name']}_owed"} & corrected)
    }
    filled = {entry["id"] for interval in intervals for entry in interval["series"] if entry["count"]}
    for one in series:
        if one["id"] in filled and one.get("cpu") not in judged and None not in judged:
            yield f"series {one['id']} is all there is of its CPU, and not judged"
    if any({entry["id"] for entry in interval["series"]} != {one["id"] for one in series} for interval in intervals):
        yield "a series is missing from an interval"


def of_settings(head: Line, end: Line) -> Iterator[str]:
    before: dict[str, list[Any]] = {}
    for setting in head["settings"]:
        requested = setting.get("requested", setting.get("asked"))
        in_effect = setting.get("in_effect", setting.get("granted"))
        before.setdefault(repr([setting.get(key) for key in ("name", "thread", "cpu")]), []).append(in_effect)
        if requested is not None and requested != in_effect:
            yield f"{setting['name']} is not as requested"
    if "instrument" not in head and not any(
        setting["name"] == "policy" and setting.get("requested", setting.get("asked")) is not None
        for setting in head["settings"]
    ):
        yield "no policy was requested"
    for setting in end.get("settings", ()):
        known = before.get(repr([setting.get(key) for key in ("name", "thread", "cpu")]))
        was = known.pop(0) if known else None
        if was is not None and setting["in_effect"] not in (was, None):
            yield f"{setting['name']} has changed"
    for change in end.get("settings_changed", ()):
        yield f"{change['name']} has changed"


def of_machine(head: Line, events: list[Line], intervals: list[Line], end: Line, never: bool) -> Iterator[str]:
    profile = head.get("profile") or {}
    if "emulated" in head["marks"] or profile.get("emulated") is True:
        yield "it was emulated"
    told = [end["counters"], *(interval["counters"] for interval in intervals)]
    if any(counters.get("throttled") or counters.get("cgroup_throttled") for counters in told) or any(
        event["kind"] == "throttled" for event in events
    ):
        yield "it was throttled"
    if any(counters.get("suspended_ns") for counters in told):
        yield "it was suspended"
    if any(counters.get("thermal_throttled") or counters.get("frequency_limited") for counters in told):
        yield "it was slowed down"
    if (
        "instrument" not in head
        and (profile.get("frequency") or {}).get("cpus")
        and all(end["counters"].get(name) is None for name in ("thermal_throttled", "frequency_limited"))
    ):
        yield "whether it was slowed down is not known"
    if "instrument" not in head and end["counters"].get("throttled") is None:
        yield "whether it was throttled is not known"
    if any((counters.get("suspended_ns") or 0) < 0 for counters in told) or (
        "instrument" not in head and end["counters"].get("suspended_ns") is None
    ):
        yield "whether it was suspended is not known"
    steal = end["counters"].get("steal_ns")
    if ("virtual-machine" in head["marks"] or profile.get("hypervisor")) and steal is None:
        yield "what the hypervisor took is not known"
    if never and (steal or profile.get("steal_so_far_ns")):
        yield "the hypervisor took time"


def contradictions(content: bytes, limit_ns: float, miss_rate: float = 0.0) -> list[str]:
    """What speaks against a PASS of this recording at this limit; nothing where nothing does."""
    head, *rest = lines(content)
    end = rest[-1] if rest else {}
    if head["type"] != "head" or end.get("type") != "end" or end["outcome"] != "completed":
        return ["it has not completed"]
    intervals = [line for line in rest if line["type"] == "interval"]
    events = [line for line in rest if line["type"] == "event"]
    if not intervals:
        return ["it holds no interval"]
    found = [
        *of_intervals(intervals),
        *of_declarations(head, intervals),
        *of_load(head, intervals, end),
        *of_settings(head, end),
        *of_machine(head, events, intervals, end, miss_rate == 0),
    ]
    judged = [series for series in roles(head) if series["role"] == "verdict"]
    if not judged:
        found.append("no series is for a verdict")
    for series in judged:
        found += of_series(series, intervals, end, (limit_ns, miss_rate))
        found += of_acts(series, list(roles(head)), intervals) if series["corrected"] else ()
    if any(entry["lost"] for line in [*intervals, end] for entry in line["series"]):
        found.append("values were lost")
    return found


if __name__ == "__main__":
    print(json.dumps(contradictions(Path(sys.argv[1]).read_bytes(), float(sys.argv[2]), float(sys.argv[3]))))
