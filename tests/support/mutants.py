# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings changed at random, as a list of lines: some anyhow, some so that all their sums still agree.

``mutant(whole, dice)`` is one change or a few of a whole recording.  Nothing of it is hashed: whoever seals the result
takes the hash of what came out, so that a reader has only the content to go by.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable
from typing import Any

Line = dict[str, Any]
Lines = list[Line]

BAD_VALUES: list[Any] = [
    None,
    True,
    False,
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
    1.0,
    1e300,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    {"a": {"b": []}},
    [1, 2],
    "9" * 5000,
    [None],
    "$\\frac{",
    "none",
    "verdict",
    "other",
    "fifo",
]
RAW = [
    b"\xff\xfe",
    b"\x00",
    b"[" * 5000,
    b"NaN",
    b"1e999",
    b"1.0",
    b'"\\ud800"',
    b"9" * 5000,
    b"\n",
    b"{}",
    b"-",
    b"\\u0000",
    b"",
    b"0",
    b",",
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) within."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        found += [(value, key), *places(value[key])]
    return found


def _intervals(lines: Lines) -> Lines:
    return [line for line in lines if line.get("type") == "interval"]


def _entry(lines: Lines, dice: random.Random) -> Line:
    """One series of one interval; raises IndexError where there is none."""
    entry: Line = dice.choice([entry for interval in _intervals(lines) for entry in interval["series"]])
    return entry


def _without_order(lines: Lines, series: int) -> None:
    """Takes rises and limits of a series away: what is changed coherently has another order, which nobody knows."""
    for one in lines[0]["series"]:
        if one["id"] == series:
            one.pop("rise_k", None)
    for line in lines[1:]:
        for entry in line.get("series", []) if line["type"] != "event" else []:
            if entry["id"] == series:
                for key in ("rises", "limit", "order_unknown"):
                    entry.pop(key, None)


def balanced(lines: Lines) -> None:
    """Makes the end say what the intervals add up to."""
    end = lines[-1]
    for said in end["series"] if end.get("type") == "end" else []:
        parts = [entry for interval in _intervals(lines) for entry in interval["series"] if entry["id"] == said["id"]]
        stored, lost = sum(part["count"] for part in parts), sum(part["lost"] for part in parts)
        said |= {
            "stored": stored,
            "lost": lost,
            "taken": stored + lost,
            "sum": sum(part["sum"] for part in parts),
            "missed": sum(part["missed"] for part in parts),
            "sum_sq": str(sum(int(part["sum_sq"]) for part in parts)),
        }
        for key, pick in (("min", min), ("max", max)):
            said.pop(key, None)
            if stored:
                said[key] = pick(part[key] for part in parts if part["count"])


# --- changes that keep no promise


def _any_value(lines: Lines, dice: random.Random) -> None:
    container, key = dice.choice(places(dice.choice(lines)))
    value = container[key]
    match dice.randrange(5):
        case 0:
            del container[key]
        case 1 if type(value) is int:
            container[key] = value + dice.choice([-1, 1, 1000, -(10**6), 2**40])
        case 2 if type(value) is int:
            container[key] = dice.choice([float(value) if abs(value) < 2**60 else 0.5, -value, str(value), value * 10])
        case 3 if isinstance(value, list) and value:
            value.append(copy.deepcopy(dice.choice(value)))
        case _:
            container[key] = copy.deepcopy(dice.choice(BAD_VALUES))


def _order_of_lines(lines: Lines, dice: random.Random) -> None:
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            del lines[one]
        case 2:
            lines.insert(one, copy.deepcopy(lines[other]))
        case _:
            del lines[one + 1 :]


# --- changes after which all sums agree


def _values_added(lines: Lines, dice: random.Random) -> None:
    """Or taken away: some more in a bucket that there is, or one far above all others."""
    entry = _entry(lines, dice)
    _without_order(lines, entry["id"])
    if dice.random() < 0.5 and entry["buckets"]:
        place = dice.randrange(len(entry["buckets"]))
        value = [entry["min"], entry["max"]][place > 0]
        if place not in (0, len(entry["buckets"]) - 1):
            return
        n = dice.choice([-1, 1, 5, 1000])
        if entry["buckets"][place][1] + n < 1 or (n < 0 and entry["buckets"][place][1] < 2):
            return
        entry["buckets"][place][1] += n
    else:
        value, n = dice.choice([10, 2_047, 2_048 << 14, 2_048 << 20]), 1
        index = value if value < 2_048 else ((value.bit_length() - 11) << 10) + (value >> (value.bit_length() - 11))
        if any(at == index for at, _ in entry["buckets"]):
            return
        entry["buckets"] = sorted([*entry["buckets"], [index, 1]])
        entry["min"], entry["max"] = min(value, entry.get("min", value)), max(value, entry.get("max", value))
    entry["count"] += n
    entry["sum"] += n * value
    entry["sum_sq"] = str(int(entry["sum_sq"]) + n * value * value)
    balanced(lines)


def _interval_gone(lines: Lines, dice: random.Random) -> None:
    """With its time, or so that the one before lasts as long as both."""
    chosen = dice.choice(_intervals(lines))
    for entry in chosen["series"]:
        _without_order(lines, entry["id"])
    lines[:] = [line for line in lines if line is not chosen]
    shift = (
        {}
        if dice.random() < 0.5
        else {clock: chosen["end"][clock] - chosen["begin"][clock] for clock in ("mono_ns", "wall_ns")}
    )
    end = dict(lines[0]["begin"])
    for number, interval in enumerate(_intervals(lines)):
        later = interval["seq"] > chosen["seq"]
        interval["seq"] = number
        for bound in ("begin", "end"):
            interval[bound] = {
                clock: ns - (shift.get(clock, 0) if later else 0) for clock, ns in interval[bound].items()
            }
        if not shift:
            interval["begin"] = dict(end)
        end = interval["end"]
    balanced(lines)


def _interval_emptied(lines: Lines, dice: random.Random) -> None:
    for chosen in dice.sample(_intervals(lines), dice.choice([1, 1, 8]) % (len(_intervals(lines)) + 1)):
        for entry in chosen["series"]:
            _without_order(lines, entry["id"])
            entry |= {"count": 0, "sum": 0, "sum_sq": "0", "buckets": []}
            entry.pop("min", None)
            entry.pop("max", None)
    balanced(lines)


def _time_stretched(lines: Lines, dice: random.Random) -> None:
    chosen = dice.choice(_intervals(lines))
    by = dice.choice([-999_000_000, -10, 10, 50_000_000, 8 * 10**9, 10**15])
    for line in [line for line in lines[1:] if line["type"] != "event"]:
        later = line["type"] == "end" or line["seq"] > chosen["seq"]
        for bound in ("begin", "end", "at"):
            if bound in line and (later or (line is chosen and bound == "end")):
                line[bound] = {clock: ns + by for clock, ns in line[bound].items()}


def _lost_or_missed(lines: Lines, dice: random.Random) -> None:
    entry = _entry(lines, dice)
    _without_order(lines, entry["id"])
    entry[dice.choice(["lost", "missed"])] += dice.choice([1, 3, 10_000])
    balanced(lines)


# --- changes of what is said about the values


def _said_of_a_series(lines: Lines, dice: random.Random) -> None:
    series = dice.choice(lines[0]["series"])
    key, value = dice.choice(
        [
            ("role", "verdict"),
            ("role", "diagnostic"),
            ("role", "throughput"),
            ("two_sided", True),
            ("two_sided", False),
            ("corrected", True),
            ("corrected", False),
            ("relative", True),
            ("relative", False),
            ("k", 9),
            ("k", 11),
            ("unit", "ticks"),
            ("unit", "ns"),
            ("tick_ps", 1),
            ("tick_ps", 10**6),
            ("cpu", 0),
            ("cpu", 7),
            ("id", 0),
            ("period_ns", 10**5),
            ("period_ns", 10**7),
            ("name", "wakeup"),
            ("name", "wakeup_corrected"),
            ("refused", "no"),
            ("bytes", 4096),
            ("rise_k", 0),
            ("clock", "CLOCK_REALTIME"),
            ("labels", {"a": 1}),
        ]
    )
    series[key] = value
    if dice.random() < 0.2:
        series.pop(key)


def _series_twice(lines: Lines, dice: random.Random) -> None:
    """One series under two ids: as many values again, which nobody measured."""
    series = dice.choice(lines[0]["series"])
    new = max(one["id"] for one in lines[0]["series"]) + 1
    lines[0]["series"].append(copy.deepcopy(series) | {"id": new} | dice.choice([{}, {"cpu": 5}]))
    for line in lines[1:]:
        if line["type"] != "event":
            line["series"] += [
                copy.deepcopy(entry) | {"id": new} for entry in line["series"] if entry["id"] == series["id"]
            ]


def _settings(lines: Lines, dice: random.Random) -> None:
    where = dice.choice([lines[0], lines[-1]])
    settings = where.get("settings", [])
    match dice.randrange(4):
        case 0:
            where["settings"] = []
        case 1:
            where.pop("settings", None)
        case _:
            setting = dice.choice(settings)
            key = dice.choice([key for key in setting if key != "name"])
            setting[key] = dice.choice([None, "other", "fifo", 0, 98, 50, True])


def _counters(lines: Lines, dice: random.Random) -> None:
    told = [line["counters"] for line in lines if "counters" in line]
    name = dice.choice(
        [
            "throttled",
            "steal_ns",
            "cgroup_throttled",
            "smi",
            "migrations",
            "clock_step_ns",
            "thermal_throttled",
            "frequency_limited",
        ]
    )
    value = dice.choice([None, 0, 1, -1, 5_000_000])
    for counters in [dice.choice(told)] if dice.random() < 0.5 else told:
        if dice.random() < 0.2:
            counters.pop(name, None)
        else:
            counters[name] = value


def _load(lines: Lines, dice: random.Random) -> None:
    match dice.randrange(4):
        case 0:
            key = dice.choice(["ran", "name", "reasons", "stated", "window_s"])
            lines[-1].setdefault("load", {})[key] = dice.choice([None, True, False, "io", [], ["x"], 3.0])
        case 1:
            lines[0]["load"] = dice.choice([{"name": "none"}, {"name": "io"}, {"name": "none", "commands": [["dd"]]}])
        case 2:
            for interval in _intervals(lines)[dice.randrange(12) :]:
                interval["load"] = {"cpu_ns": 0, "context_switches": 0, "processes": dice.choice([0, 4, None])}
        case _:
            for interval in dice.sample(_intervals(lines), 1):
                interval.pop("load", None)


def _run(lines: Lines, dice: random.Random) -> None:
    match dice.randrange(6):
        case 0:
            lines[0]["marks"] = dice.choice([[], ["emulated"], ["virtual-machine"], ["not-real-time"]])
        case 1:
            lines[-1]["outcome"] = dice.choice(["completed", "failed", "aborted", "not-applicable"])
        case 2:
            lines[0]["profile"] = dice.choice(
                [
                    None,
                    {},
                    {"emulated": True},
                    {"hypervisor": "kvm"},
                    {"steal_so_far_ns": 5},
                    {"cpu_isolation": {"online": "0-63"}},
                ]
            )
        case 3:
            lines[0]["parameters"][dice.choice(["duration_ns", "policy", "method", "interval_ns"])] = dice.choice(
                [10**8, "other", "nanosleep", 1]
            )
        case 4:
            lines[0]["instrument"] = dice.choice([None, {}, {"id": "x"}])
        case _:
            lines[0]["interval_ns"] = dice.choice([1, 10**6, 10**12])


def _event(lines: Lines, dice: random.Random) -> None:
    at = dice.randrange(1, len(lines))
    lines.insert(
        at,
        {
            "type": "event",
            "kind": dice.choice(["max", "threshold", "throttled", "clock-step", "note"]),
            "at": {"mono_ns": 5, "wall_ns": 5},
            "series": dice.choice([0, 1, 99]),
            "value": dice.choice([5, 10**6, 10**9]),
        },
    )


def _requirement(lines: Lines, dice: random.Random) -> None:
    lines[0]["requirement"] = dice.choice(
        [
            {"limit_ns": 1, "miss_rate": 0, "confidence": 0.95},
            {"limit_ns": 10**9, "miss_rate": 0.5, "confidence": 0.5},
            {"limit_ns": 10**9, "miss_rate": 1.5, "confidence": 0.95},
            {"limit_ns": 0},
            {},
            None,
        ]
    )


def _rises(lines: Lines, dice: random.Random) -> None:
    entry = _entry(lines, dice)
    match dice.randrange(3):
        case 0:
            entry.setdefault("limit", {"ns": 50_000, "exceeded": 0, "runs": 0, "sum_sq_runs": "0", "longest": 0})[
                dice.choice(["ns", "exceeded", "runs", "longest"])
            ] = dice.choice([0, 1, 7, 10**9])
        case 1:
            entry.setdefault("rises", []).append([dice.randrange(1, 200), dice.choice([-1, 1])])
        case _:
            entry["order_unknown"] = dice.choice([0, 1, 10**6])


def _latency_hidden(lines: Lines, dice: random.Random) -> None:
    """A series full of late values that is declared as something else than a latency."""
    series = dice.choice(lines[0]["series"])
    series |= dice.choice(
        [
            {"refused": "no"},
            {"role": "throughput", "bytes": 10},
            {"role": "diagnostic"},
            {"role": "diagnostic", "name": "other"},
        ]
    )
    late = 10_000_000
    shift = late.bit_length() - 1 - series["k"]
    index = (shift << series["k"]) + (late >> shift)
    _without_order(lines, series["id"])
    for entry in [entry for interval in _intervals(lines) for entry in interval["series"]]:
        if entry["id"] == series["id"] and entry["count"]:
            n = entry["count"]
            entry |= {"min": late, "max": late, "sum": n * late, "sum_sq": str(n * late * late)}
            entry["buckets"] = [[index, n]]
    balanced(lines)


def _entry_missing(lines: Lines, dice: random.Random) -> None:
    """One series in one interval."""
    interval = dice.choice(_intervals(lines))
    gone = dice.choice(interval["series"])
    _without_order(lines, gone["id"])
    interval["series"].remove(gone)
    balanced(lines)


def _suspended(lines: Lines, dice: random.Random) -> None:
    value = dice.choice([None, -1, 10**9])
    for line in lines:
        if "counters" in line:
            line["counters"]["suspended_ns"] = value


def _load_of_nothing(lines: Lines, dice: random.Random) -> None:
    for interval in _intervals(lines):
        if "load" in interval:
            interval["load"]["cpu_ns"] = 1
    if dice.random() < 0.5:
        lines[-1]["load"]["cpu_time_s"] = 1e-8


CHANGES: list[Callable[[Lines, random.Random], None]] = [
    _any_value,
    _any_value,
    _any_value,
    _order_of_lines,
    _values_added,
    _values_added,
    _interval_gone,
    _interval_emptied,
    _time_stretched,
    _lost_or_missed,
    _said_of_a_series,
    _said_of_a_series,
    _series_twice,
    _settings,
    _settings,
    _counters,
    _counters,
    _load,
    _load,
    _run,
    _event,
    _requirement,
    _rises,
    _latency_hidden,
    _entry_missing,
    _suspended,
    _load_of_nothing,
]


def _bytes_changed(content: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(content))
    return content[:at] + dice.choice(RAW) + content[at + dice.randrange(9) :]


def mutant(whole: bytes, dice: random.Random) -> bytes:
    """The content of a recording with one change or a few."""
    lines = [json.loads(line) for line in whole.splitlines()]
    for _ in range(dice.choice([1, 1, 1, 1, 2, 3])):
        with contextlib.suppress(KeyError, IndexError, TypeError, ValueError, AttributeError):  # after other changes
            dice.choice(CHANGES)(lines, dice)
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return _bytes_changed(content, dice) if content and dice.random() < 0.08 else content
