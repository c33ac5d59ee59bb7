# SPDX-License-Identifier: GPL-2.0-or-later
"""A ring of recordings on the board: without a gap while it is written, with every gap told, and never full."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import Recording
from tests.support.presence import present
from tests.support.privileges import needs_root, own_mounts
from tests.support.processes import eventually, recorded
from tests.support.rings import files, follows, notes, recordings, start

KILLS = 50


def ended(process: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
    """What it said until it ended by this signal, in order."""
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode in (0, 128 + number), said
    return said


def many(ring: Path, count: int) -> bool:
    return len(files(ring)) >= count


def check_whole(recording: Recording) -> None:
    """A cycle: completed, ten intervals or so, its totals finer than its intervals, each value in an interval."""
    assert recording.outcome is Outcome.COMPLETED and not recording.reasons
    assert recording.totals[0].k == 10 and recording.intervals[0].histograms[0].k == 4
    assert recording.totals[0].total == sum(each.histograms[0].total for each in recording.intervals)


def test_recordings_follow_each_other_without_a_gap(probe_binary: str, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    process = start(probe_binary, ring, "--limit=1us")
    assert eventually(lambda: many(ring, 6))
    ended(process)
    found = recordings(ring)
    for recording in found:
        check_whole(recording)
    assert all(follows(one, other) for one, other in itertools.pairwise(found))
    assert len({recording.run_id for recording in found}) == len(found)
    first, last = found[1].head.begin.mono_ns, found[-1].stopped.mono_ns  # in the first one the thread starts
    due = (last - first) // 1_000_000
    corrected = sum(recording.totals[1].total for recording in found[1:])
    # no period of all that time is in two recordings, or in none; a late thread begins and ends them late
    late = max(recording.totals[1].maximum or 0 for recording in found) // 1_000_000
    assert abs(corrected - due) <= 2 + late
    for recording in found:
        of_series = (event.value for event in recording.events if event.kind == "max" and event.series == 0)
        maxima = [present(value, "maximum") for value in of_series]
        assert maxima and max(maxima) == recording.totals[0].maximum  # each one tells its own
        limit = recording.limit(0)
        assert limit is not None and limit.runs >= 1 and limit.longest <= limit.exceeded


@pytest.mark.slow
def test_what_was_killed_loses_one_interval_at_most_and_the_gap_is_told(probe_binary: str, tmp_path: Path) -> None:
    """At random points, again and again: whole lines, sound recordings, and each says how the one before it ended."""
    ring, dice, killed_at = tmp_path / "ring", random.Random(7), []
    for _ in range(KILLS):
        process = start(probe_binary, ring, "--ring-cycle=60ms")
        before = len(files(ring))
        assert eventually(partial(many, ring, before + 1))
        time.sleep(dice.uniform(0, 0.15))
        killed_at.append((time.monotonic_ns(), files(ring)[-1].name[:10]))
        process.kill()
        process.communicate()
    ended(start_and_wait(probe_binary, ring))
    paths, found = files(ring), recordings(ring)
    assert [int(path.name[:10]) for path in paths] == list(range(1, len(paths) + 1))
    by_serial = {path.name[:10]: recording for path, recording in zip(paths, found, strict=True)}
    cut_off = sum(recording.end is None for recording in found)
    assert cut_off >= KILLS // 2  # others are hit between two recordings
    for at_ns, serial in killed_at:
        newest = max(
            recording.stopped.mono_ns
            for name, recording in by_serial.items()
            if serial <= name <= f"{int(serial) + 1:010}" and recording.stopped.mono_ns < at_ns + 20_000_000
        )
        assert at_ns - newest < 20_000_000 + 300_000_000  # an interval, and what the machine held the test up
    gaps = [text for recording in found for text in notes(recording, "gap: ")]
    assert len(gaps) == KILLS
    for one, other in itertools.pairwise(found):
        assert bool(notes(other, "gap: ")) == (not follows(one, other))
    names = [path.name for path in paths]
    for name, one, other in zip(names, found, found[1:], strict=False):
        for text in notes(other, "gap: "):
            assert name in text and ("was interrupted" if one.end is None else "ended normally") in text


def start_and_wait(probe: str, ring: Path) -> subprocess.Popen[str]:
    """Until it has measured: without any act its run would fail."""
    process = start(probe, ring)
    count = len(files(ring))
    assert eventually(lambda: len(files(ring)) > count and recorded(files(ring)[-1], 3))
    return process


def test_a_torn_last_line_is_cut_away_when_it_is_started_again(probe_binary: str, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    process = start_and_wait(probe_binary, ring)
    time.sleep(0.1)
    process.kill()
    process.communicate()
    last = files(ring)[-1]
    whole = last.read_bytes()
    with last.open("ab") as stream:
        stream.write(b'{"type":"interval","seq":' + bytes(5000))
    ended(start_and_wait(probe_binary, ring))
    assert last.read_bytes() == whole


def test_what_holds_no_whole_line_is_removed(probe_binary: str, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.mkdir(mode=0o700)
    torn, begun = ring / "0000000007-20260101T000000Z-00000000.jsonl", ring / "0000000008-a.jsonl.new"
    torn.write_text('{"type":"head"')
    begun.write_text('{"type":"head"')
    ended(start_and_wait(probe_binary, ring))
    assert not torn.exists() and not begun.exists()
    assert files(ring)[0].name.startswith("0000000008-")


@pytest.mark.slow
def test_a_full_disk_drops_the_oldest_and_ends_no_measuring(probe_binary: str, tmp_path: Path) -> None:
    """A disk of 600 KiB of its own, of which somebody else takes whatever is free, and after 4 s gives it back."""
    script = """
        set -e
        mount -t tmpfs -o size=600k,mode=700 none "$1"
        mkdir -m 700 "$1/ring"
        "$2" timer --interval=1ms --report=20ms --ring-cycle=200ms --interval-k=4 --policy=other --allow-difference \
            --affinity=0 --default-system --quiet --until-interrupt --ring="$1/ring" 2>"$3/said" >/dev/null &
        sleep 4
        end=$(($(date +%s) + 4)) number=0
        while [ "$(date +%s)" -lt $end ]; do
            number=$((number + 1))
            dd if=/dev/zero of="$1/foreign$number" bs=4k 2>/dev/null || true
        done
        rm "$1"/foreign*
        sleep 2
        kill -INT $!
        wait $!
        cp -r "$1/ring" "$3/ring"
    """
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    out.mkdir()
    done = subprocess.run(
        [*own_mounts(), "sh", "-c", script, "sh", disk, probe_binary, out],
        timeout=120,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = recordings(out / "ring")
    serials = [int(path.name[:10]) for path in files(out / "ring")]
    assert serials[0] > 5 and len(found) >= 5  # the oldest made room
    assert serials == list(range(serials[0], serials[0] + len(serials))), "what could not be begun was never there"
    said = (out / "said").read_text()
    assert "of the ring deleted" in said and "No space left on device" in said
    assert "recording has resumed" in said
    lost = [text for recording in found for text in notes(recording, "gap: ")]
    assert lost and all("could not be written: No space left on device" in text for text in lost)
    for text in lost:
        intervals, values = map(int, re.findall(r"\d+", text)[:2])
        assert 10 * intervals <= values <= 80 * intervals  # of two series, each with 20 in an interval
    for one, other in itertools.pairwise(found):
        assert follows(one, other) or notes(other, "gap: ")
    check_whole(found[-2])
    values = sum(recording.aggregate.totals[1].total for recording in found)
    untold = sum(
        event.value or 0
        for recording in found[1:]
        for event in recording.events
        if event.kind == "note" and (event.text or "").startswith("gap: ")
    )
    due = (found[-1].stopped.mono_ns - found[0].head.begin.mono_ns) // 1_000_000
    # Of both series together: what is on disk, and what the notes say is not, are all that was due.
    assert abs(2 * values + untold - 2 * due) <= 0.02 * due


def occupied(ring: Path) -> int:
    """Bytes on disk; a file may get its name, or make room, while they are counted."""
    found = 0
    for path in ring.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            found += path.stat().st_blocks * 512
    return found


@pytest.mark.slow
def test_it_takes_no_more_than_it_may(probe_binary: str, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    process = start(
        probe_binary, ring, "--ring-mib=1", "--ring-cycle=10m", "--report=10ms", "--interval-k=10", "--interval=100us"
    )
    most = newest = 0
    while newest < 8:  # the first ones had to make room
        time.sleep(0.1)
        most, newest = max(most, occupied(ring)), max(_serials(ring), default=0)
    ended(process)
    found = recordings(ring)
    assert most <= (1 << 20) + 300_000  # one line more
    assert sum(len(notes(each, "dropped: ")) for each in found) > 0
    assert len(found) >= 2 and all(follows(one, other) for one, other in itertools.pairwise(found))


def _serials(ring: Path) -> list[int]:
    return [int(path.name[:10]) for path in files(ring)]


def test_what_is_old_enough_makes_room(probe_binary: str, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    process = start(probe_binary, ring, "--ring-keep=500ms")
    assert eventually(lambda: _serials(ring)[:1] > [5])
    ended(process)
    assert 2 <= len(_serials(ring)) <= 6
    assert not any(notes(each, "dropped: ") for each in recordings(ring))  # their time had come


def _make_writable_to_others(ring: Path) -> None:
    ring.joinpath("x").mkdir(parents=True)
    ring.chmod(0o777)


def _give_away(ring: Path) -> None:
    ring.mkdir()
    os.chown(ring, 12345, 0)


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda ring: ring.write_text("x"), "name a folder of your own"),
        (lambda ring: ring.symlink_to("/tmp"), "name a folder of your own"),
        (_make_writable_to_others, "other users may write into"),
        pytest.param(
            _give_away,
            "other users may write into",
            marks=needs_root("it gives a folder away"),
        ),
    ],
)
def test_a_folder_that_others_may_write_into_is_refused(
    probe_binary: str, tmp_path: Path, prepare: Callable[[Path], object], said: str
) -> None:
    ring = tmp_path / "ring"
    prepare(ring)
    process = start(probe_binary, ring)
    stderr = process.communicate(timeout=30)[1]
    assert process.returncode == 2 and said in stderr and stderr.count("\n") == 1


def test_two_do_not_write_into_one_ring(probe_binary: str, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    process = start_and_wait(probe_binary, ring)
    other = start(probe_binary, ring)
    stderr = other.communicate(timeout=30)[1]
    assert other.returncode == 2 and "another probe writes to" in stderr
    ended(process)
    assert not any(notes(each, "gap: ") for each in recordings(ring))


def test_what_is_called_otherwise_is_left_alone(probe_binary: str, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.mkdir(mode=0o700)
    names = [
        "notes.txt",
        "0000000001-../x.jsonl".replace("/", "_"),
        "0000000001-a\nb.jsonl",
        "00000000010-a.jsonl",
        "0000000099.jsonl",
        "0000000001-" + "a" * 100 + ".jsonl",
    ]
    for name in names:
        (ring / name).write_text("mine")
    (ring / "0000000042-folder.jsonl").mkdir()
    (ring / "0000000043-link.jsonl").symlink_to(tmp_path / "elsewhere")
    ended(start_and_wait(probe_binary, ring))
    assert all((ring / name).read_text() == "mine" for name in names)
    assert (ring / "0000000043-link.jsonl").is_symlink() and not (tmp_path / "elsewhere").exists()


def test_cpus_that_come_or_go_end_it_in_order(probe_binary: str, tmp_path: Path) -> None:
    """The kernel's list of CPUs, in a view of the file system of its own, says something else after a while."""
    script = """
        set -e
        cp /sys/devices/system/cpu/online "$2/online"
        mount --bind "$2/online" /sys/devices/system/cpu/online
        "$1" timer --interval=1ms --report=20ms --ring-cycle=200ms --policy=other --allow-difference --affinity=0 \
            --default-system --quiet --ring="$2/ring" >/dev/null &
        until ls "$2/ring" 2>/dev/null | grep -q .; do sleep 0.1; done
        sleep 0.5
        echo 0-63 1<>"$2/online"
        wait $!
    """
    done = subprocess.run(
        [*own_mounts(), "sh", "-c", script, "sh", probe_binary, tmp_path],
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    last = recordings(tmp_path / "ring")[-1]
    assert "start again" in done.stderr and notes(last, "the CPUs online changed from ")
    assert last.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ring=x", "--record=y"], "omit --record and --run-id"),
        (["--ring=x", "--run-id=y"], "omit --record and --run-id"),
        (["--ring=/nowhere/at/all"], "for a ring"),
        (["--interval-k=2"], "--interval-k: 2 is out of range"),
        (["--ring="], "--ring"),
    ],
)
def test_bad_options_are_one_line(probe_binary: str, tmp_path: Path, options: list[str], said: str) -> None:
    done = subprocess.run(
        [probe_binary, "timer", "--allow-difference", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
