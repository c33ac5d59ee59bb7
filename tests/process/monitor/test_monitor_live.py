# SPDX-License-Identifier: GPL-2.0-or-later
"""The live view of a monitor: every station, current and worst, and whom to blame, however small the terminal."""

from __future__ import annotations

import io
import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from fastenough.cli.monitor import JsonLines
from fastenough.cli.output import readable
from fastenough.cli.progress_wording import main_series, plain_line
from fastenough.cli.run_picture import picture
from fastenough.folder import Folder
from fastenough.jobs import live
from fastenough.jobs.live import LiveFile, LiveRecording
from fastenough.recording.building import line_bytes
from tests.support.monitor_recordings import PARTS, SUMS, Watched, lines


def _live(plan: Watched) -> LiveRecording:
    live = LiveRecording("watched")
    for line in list(lines(plan))[:-1]:
        live.take(line_bytes(line))
    return live


def _drawn(live: LiveRecording, width: int, height: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, height=height).print(picture(live, "", width, height))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(40, 24), (80, 24), (140, 40)])
def test_stations_and_culprits_fit(width: int, height: int) -> None:
    live = _live(Watched(cpus=4, intervals=3))
    shown = _drawn(live, width, height)
    assert max(map(len, shown)) <= width and len(shown) <= height
    table = shown[: next(place for place, line in enumerate(shown) if line.startswith("causes of"))]
    assert [line.split()[0] for line in table if line.split()[0] in (*PARTS, *SUMS)] == [*PARTS, *SUMS]
    assert "kworker/0:1" in " ".join(" ".join(shown).split())
    (row,) = (line.split() for line in table if line.startswith("runnable-to-running"))
    worst = max(status.maximum_ns or 0 for status in live.statuses() if status.series.name == "runnable-to-running")
    assert f"{-(-worst // 1000):.0f}" in row, "the worst of all CPUs, rounded up"
    assert ("CPU 3" in shown[2]) == (width == 140), "CPU by CPU where there is room"


def test_nothing_seen_yet() -> None:
    live = LiveRecording("watched")
    live.take(line_bytes(next(lines(Watched()))))
    assert "no wake-up of a watched task yet" in " ".join(_drawn(live, 80, 24))


def test_a_line_tells_the_longest_way_and_not_the_noise() -> None:
    live = _live(Watched(long={"runnable-to-running": 10_000}))
    counts = {status.series.id: status.n for status in live.statuses()}
    assert live.head is not None
    assert {series.name for series in main_series(live.head, counts)} == {"expiry-to-return"}
    assert "(expiry-to-return CPU 1, " in plain_line(live) and "4,800 samples" in plain_line(live)


def test_an_interval_without_a_sample_has_no_maximum_of_zero() -> None:
    live = _live(Watched(intervals=1))
    assert ", last interval " in plain_line(live)
    (_, empty) = (line for line in lines(Watched(intervals=2, per_interval=0)) if line["type"] == "interval")
    live.take(line_bytes(empty))
    assert ", no sample in the last interval; 800 samples" in plain_line(live)


def test_culprits_are_told_once() -> None:
    live = _live(Watched(intervals=4))
    assert live.culprits_seen == 8
    assert len(live.culprits_after(0)) == 8 and len(live.culprits_after(6)) == 2
    assert live.culprits_after(8) == []


def test_the_worst_is_told_however_many_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_MOST_CULPRITS", 2)
    watched = _live(Watched(intervals=40))
    assert watched.worst_culprit is not None and watched.worst_culprit not in watched.culprits
    shown = _drawn(watched, 200, 24)
    place = next(place for place, line in enumerate(shown) if line.startswith("causes of"))
    worst_ns = max(status.maximum_ns or 0 for status in watched.statuses())
    assert f": {readable(worst_ns)}, most of it" in shown[place + 1]
    assert shown[place + 2].startswith("after 40"), "then the newest"


def test_the_stream_for_programs_tells_each_interval_though_many_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "recording.jsonl").write_bytes(b"".join(map(line_bytes, lines(Watched(cpus=2, intervals=5)))))
    stream = io.StringIO()
    with closing(LiveFile(Folder.at(tmp_path), "recording.jsonl")) as watch:
        told = JsonLines(stream)
        told.show(watch)
        told.end(watch)
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (said[0]["type"], said[-1]["type"]) == ("begin", "end")
    assert [one["seq"] for one in said if one["type"] == "interval"] == [0, 1, 2, 3, 4]
    counts = [sum(station["n"] for station in one["stations"]) for one in said if one["type"] == "interval"]
    assert counts == sorted(set(counts)), "each as it stood then"
    assert not [line for line in stream.getvalue().splitlines() if re.search(r"_ns\": \d+\.", line)], "whole ns"
    wakeups = [(one["mono_ns"], one["cpu"]) for one in said if one["type"] == "wake-up"]
    assert wakeups and len(set(wakeups)) == len(wakeups)


def test_culprits_beyond_those_that_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(live, "_MOST_CULPRITS", 1)
    (tmp_path / "recording.jsonl").write_bytes(b"".join(map(line_bytes, lines(Watched(cpus=2, intervals=5)))))
    stream = io.StringIO()
    with closing(LiveFile(Folder.at(tmp_path), "recording.jsonl")) as watch:
        JsonLines(stream).show(watch)
        seen = watch.following.culprits_seen
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert sum(one["events"] for one in said if one["type"] == "skipped") == seen - 5 == 5
