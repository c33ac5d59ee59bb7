# SPDX-License-Identifier: GPL-2.0-or-later
"""Other tools' files read a second time, in a few lines each and with nothing of the importers: count, minimum,
maximum, mean (None: not said) and overflow of every series, in ns."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

Told = tuple[int | None, float | None, float | None, float | None, int | None]


def _numbers(text: str, label: str) -> list[float]:
    found = re.search(rf"^{re.escape(label)}((?:\s+-?[\d.]+)+)", text, re.MULTILINE)
    assert found, label
    return [float(word) for word in found[1].split()]


def cyclictest_histogram(text: str) -> list[Told]:
    rows = [list(map(int, line.split())) for line in text.splitlines() if re.match(r"\d{6} ", line)]
    low, mean, high, over = (
        _numbers(text, f"# {name}:")
        for name in ("Min Latencies", "Avg Latencies", "Max Latencies", "Histogram Overflows")
    )
    low = [0 if rows and rows[0][0] == 0 < rows[0][1 + i] else least for i, least in enumerate(low)]
    return [
        (int(sum(row[1 + i] for row in rows) + over[i]), low[i] * 1e3, high[i] * 1e3, mean[i] * 1e3, int(over[i]))
        for i in range(len(low))
    ]


def cyclictest_threads(text: str) -> list[Told]:
    unit = (
        1
        if re.search(r"Act: {2,}\d+ Avg: {3}", text)
        and not re.search(r"Act: {0,4}\d Avg|Avg: {0,3}\d Max", text)
        and "Act:   " in text
        else 1000
    )
    last: dict[str, Told] = {}
    for line in text.splitlines():
        if " Min:" in line:
            thread, *fields = re.findall(r"(?:T|C|Min|Avg|Max):\s*(-?\d+)", line)
            count, low, mean, high = (int(field) for field in fields)
            last[thread] = (count, low * unit, high * unit, mean * unit, None)
    return list(last.values())


def json_threads(text: str) -> list[Told]:
    document = json.loads(text)
    unit = document.get("sysinfo", {}).get("resolution_in_ns") or 1000
    told: list[Told] = []
    for entry in (document.get("thread") or document["cpu"]).values():
        held = entry.get("histogram") or {}
        count = entry.get("cycles", entry.get("count"))
        over = count - sum(held.values()) if held and count else None
        if "cyclicdeadline" in text and held:
            entry["min"] = min(int(edge) for edge in held)  # it takes a minimum of 0 for none yet
        if "freq" in entry and ("." in next(iter(held)) or entry["min"] < int(next(iter(held)))):
            told.append(oslat_upper(entry, held))
            continue
        if "sender" in entry:
            count = entry["sender"]["samples"]
        elif "freq" in entry:
            count, over = sum(held.values()), list(held.values())[-1] * (entry["max"] > int(list(held)[-1]))
        times = entry.get("receiver", entry)
        told.append((count, times["min"] * unit, times["max"] * unit, times["avg"] * unit, over))
    return told


def oslat_upper(entry: dict[str, Any], held: dict[str, int]) -> Told:
    """Newer ones: buckets called by their upper ends; an overflow spoils the mean."""
    fine = "." in next(iter(held))
    *_, (last, count) = held.items()
    over = count if entry["max"] >= round(float(last) * (1000 if fine else 1)) else 0
    unit = 1 if fine else 1000
    return sum(held.values()), entry["min"] * unit, entry["max"] * unit, None if over else entry["avg"] * 1000, over


def oslat(text: str) -> list[Told]:
    if "Minimum:\t 0." in text:
        return oslat_fine(text)
    cores = len(_numbers(text, "        Core:"))
    rows = [
        (int(edge), list(map(int, counts.split())))
        for edge, counts in re.findall(r"^ +(\d+) \(us\):\t((?: \d+)+)", text, re.MULTILINE)
    ]
    low, mean, high = (_numbers(text, f"     {name}:") for name in ("Minimum", "Average", "Maximum"))
    return [
        (
            sum(counts[i] for _, counts in rows),
            low[i] * 1e3,
            high[i] * 1e3,
            mean[i] * 1e3,
            rows[-1][1][i] if high[i] > rows[-1][0] else 0,
        )
        for i in range(cores)
    ]


def oslat_fine(text: str) -> list[Told]:
    rows = [
        (float(edge), list(map(int, counts.split())))
        for edge, counts in re.findall(r"^ +([\d.]+) \(us\):\t((?: \d+)+)", text, re.MULTILINE)
    ]
    low, mean, high = (_numbers(text, f"     {name}:") for name in ("Minimum", "Average", "Maximum"))
    told: list[Told] = []
    for core, most in enumerate(high):
        over = rows[-1][1][core] if most >= rows[-1][0] else 0
        told.append(
            (
                sum(counts[core] for _, counts in rows),
                low[core] * 1e3,
                most * 1e3,
                None if over else mean[core] * 1e3,
                over,
            )
        )
    return told


def rtla(text: str) -> list[Told]:
    unit = 1 if "(ns)" in text else 1000
    rows = [list(map(int, line.split()[1:])) for line in text.splitlines() if re.match(r"\d", line)]
    over = _numbers(text, "over:")
    if "count:" not in text:
        return [(int(sum(row[i] for row in rows) + over[i]), None, None, None, int(over[i])) for i in range(len(over))]
    count, low, mean, high = (_numbers(text, name) for name in ("count:", "min:", "avg:", "max:"))
    return [(int(count[i]), low[i] * unit, high[i] * unit, mean[i] * unit, int(over[i])) for i in range(len(over))]


def hwlatdetect(text: str) -> list[Told]:
    by_cpu: dict[str, list[int]] = {}
    for inner, outer, cpu in re.findall(r"inner:(\d+), outer:(\d+)(?:, cpu:(\d+))?", text):
        by_cpu.setdefault(cpu, []).append(max(int(inner), int(outer)) * 1000)
    if not by_cpu:
        return [(0, None, None, None, 0)]
    return [(len(gaps), min(gaps), max(gaps), sum(gaps) / len(gaps), 0) for gaps in by_cpu.values()]


def samples(raw: bytes) -> list[Told]:
    by_cpu: dict[int, list[int]] = {}
    if b";" in raw[:8]:
        for line in raw.decode().splitlines():
            by_cpu.setdefault(int(line.split(";")[0]), []).append(int(line.split(";")[2]) * 1000)
    else:
        for cpu, _, _, value in struct.iter_unpack("<IqqQ", raw):
            by_cpu.setdefault(cpu, []).append(value * 1000)
    return [
        (len(values), min(values), max(values), sum(values) / len(values), 0) for _, values in sorted(by_cpu.items())
    ]


def xenomai(text: str) -> list[Told]:
    summary = re.findall(r"^(?:RTS\||# +)([ \d.-]+)\|([ \d.-]+)\|([ \d.-]+)\|", text, re.MULTILINE)[-1]
    low, mean, high = (float(word) * 1000 for word in summary)
    cells = [
        (int(at) * 1000, int(n)) for at, n in re.findall(r"^HSD\| +avg\| +(\d+) -.*\| +(\d+)$", text, re.MULTILINE)
    ]
    cells += [
        (int(float(at) * 1000) - 500, int(n) - 1) for at, n in re.findall(r"^(\d+\.5) (\d+)$", text, re.MULTILINE)
    ]
    if not cells:
        return [(None, low, high, mean, None)]
    return [(sum(n for _, n in cells), low, high, mean, cells[-1][1] if high >= cells[-1][0] + 1000 else 0)]


def stress_ng(text: str) -> list[Told]:
    number = re.compile(r"(\d+) samples.*?mean: ([\d.]+) .*?min: (\d+) ns, max: (\d+) ns", re.DOTALL)
    found = number.search(text)
    assert found
    placed = sum(int(n) for n in re.findall(r"cyclic: +\d+ +(\d+)$", text, re.MULTILINE))
    return [(int(found[1]), int(found[3]), int(found[4]), float(found[2]), int(found[1]) - placed)]


def osadl(text: str) -> list[Told]:
    low, mean, high, total = (int(found) * 1000 for found in re.findall(r"^#[MAT]\w+ \w+: (\d+)", text, re.MULTILINE))
    over = re.search(r"are (\d+) samples greater", text)
    assert over
    return [(total // 1000, low, high, mean, int(over[1]))]


def rtla_top(text: str) -> list[Told]:
    """Of its last picture."""
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", text)
    unit, last = 1 if "(ns)" in text else 1000, re.split(r"(?:Latency|Noise) +\n", drawn)[-1]
    rows = [row.replace("|", " ").split() for row in re.findall(r"^ *\d+ #(\d.*)$", last, re.MULTILINE)]
    if "duration:" in last:
        return [
            (None if int(row[5]) else 0, None, float(row[5]) * unit if int(row[5]) else None, None, None)
            for row in rows
        ]
    return [
        (
            None if at > 1 else int(row[0]),
            float(row[at + 1]) * unit,
            float(row[at + 3]) * unit,
            float(row[at + 2]) * unit,
            None,
        )
        for row in rows
        for at in range(1, len(row), 4)
    ]


def rt_app(text: str) -> list[Told]:
    loops = [list(map(int, line.split())) for line in text.splitlines() if not line.startswith("#")]
    slept = [row[10] * 1000 for row in loops if row[9] and (row[7] > 0 or row[10])]
    slack = [row[7] * 1000 for row in loops if row[9] and (row[7] or row[10])]
    return [(len(values), min(values), max(values), sum(values) / len(values), 0) for values in (slept, slack)]


def like_cyclictest(text: str) -> list[Told]:
    """signaltest and cyclicdeadline: a line for each thread, quiet."""
    rows = re.findall(r"C: *(\d+) Min: *(\d+) Act: *\d+ Avg: *(\d+) Max: *(\d+)", text)
    return [(int(n), int(low) * 1e3, int(high) * 1e3, int(mean) * 1e3, None) for n, low, mean, high in rows]


def handovers(text: str) -> list[Told]:
    """Of its last picture."""
    *_, last = text.split("#0: ")
    cycles = re.findall(r"Cycles (\d+)", last)
    values = re.findall(r"Min +(\d+), Cur +\d+, Avg +(\d+), Max +(\d+)", last)
    return [
        (int(n), int(low) * 1e3, int(high) * 1e3, int(mean) * 1e3, None)
        for n, (low, mean, high) in zip(cycles, values, strict=True)
    ]


def rt_dataset(text: str) -> list[Told]:
    latency = json.loads(text)["latency"]
    edges, *cores = latency["cores"]
    told: list[Told] = []
    for counts, most in zip(cores, latency["maxima"], strict=True):
        low = next(edge for edge, n in zip(edges, counts, strict=True) if n)
        beyond = most > edges[-1]
        told.append((None if beyond else sum(counts), low * 1e3, most * 1e3, None, int(beyond)))
    return told


def rteval(text: str) -> list[Told]:
    told: list[Told] = []
    for core in re.findall(r"<core .*?</core>", text, re.DOTALL):
        samples, low, high, mean = (
            float(re.findall(rf"<{name}[^>]*>([^<]+)<", core)[0]) for name in ("samples", "minimum", "maximum", "mean")
        )
        told.append((int(samples), low * 1e3, high * 1e3, mean * 1e3, 0))
    return told


def latmus(text: str) -> list[Told]:
    if "# libevl" in text:
        low, mean, high, count = (
            float(re.findall(rf"^# {name}: (.*)$", text, re.MULTILINE)[0])
            for name in ("min latency", "avg latency", "max latency", "sample count")
        )
        over = re.findall(r"^\d+\+ (\d+)$", text, re.MULTILINE)
        return [(int(count), low * 1e3, high * 1e3, mean * 1e3, int(over[0]) if over else 0)]
    words = re.findall(r"^RTS\|(.*)$", text, re.MULTILINE)[0].split("|")
    low, mean, high = (float(word) * 1e3 for word in words[:3])
    return [(None, low, high, mean, None)]


def perf_sched(text: str) -> list[Told]:
    return [(None, None, float(most) * 1e6 or None, None, None) for most in re.findall(r"max: *([\d.]+) ms", text)]


def hgrm(text: str) -> list[Told]:
    """In µs, as the tests say."""
    first = re.findall(r"^ +([\d.]+) 0\.0+ ", text, re.MULTILINE)[0]
    mean, most, count = (
        re.findall(pattern, text)[0]
        for pattern in (r"Mean += +([\d.]+)", r"Max += +([\d.]+)", r"Total count += +(\d+)")
    )
    return [(int(count), float(first) * 1e3, float(most) * 1e3, float(mean) * 1e3, 0)]


READINGS: list[tuple[str, Callable[[str], list[Told]]]] = [
    (r'"RT Dataset"', rt_dataset),
    (r"<rteval ", rteval),
    (r"^RTT.* CPU\d|^# libevl", latmus),
    (r"Runtime ms", perf_sched),
    (r"1/\(1-Percentile\)", hgrm),
    (r"^\S*#\d+: ID", handovers),
    (r"^T: .*\) (?:P: *\d+|I:\d+) C:", like_cyclictest),
    (r'"thread"|"cpu": \{', json_threads),
    (r"^# Histogram", cyclictest_histogram),
    (r"^\S*T: 0 \(", cyclictest_threads),
    (r"^oslat V", oslat),
    (r"^# RTLA", rtla),
    (r"^#idx +perf", rt_app),
    (r" Timer Latency  |(?:System|related) Noise  ", rtla_top),
    (r"^hwlatdetect:", hwlatdetect),
    (r"^RT[ST]\||^# .* us period", xenomai),
    (r"stress-ng: info", stress_ng),
    (r"^#Minimum latency", osadl),
]
"""What tells a file, and who reads it then."""


def told(path: Path) -> list[Told]:
    """Of any file of a tool that is known."""
    raw = path.read_bytes()
    if path.suffix in (".raw", ".csv"):
        return samples(raw)
    text = raw.decode()
    reading = next(read for pattern, read in READINGS if re.search(pattern, text, re.MULTILINE))
    return reading(text)
