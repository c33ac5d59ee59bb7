# SPDX-License-Identifier: GPL-2.0-or-later
"""Pulling a board's ring into the store: every recording once and whole, wherever it is cut off, and the gaps told."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis.merged import grouped
from fastenough.board import AS_BOOTED
from fastenough.board.local import LocalBoard
from fastenough.facts import collect
from fastenough.jobs import pull as job
from fastenough.jobs.pull import BoardAnnotations
from fastenough.link import LocalLink
from fastenough.link import ring as ring_of_link
from fastenough.model import BadInput
from fastenough.recording import Head, LoadStated, read_recording
from fastenough.recording.building import HeadAdditions, completed_head, line_bytes
from fastenough.store import Store
from tests.support.cli_calls import ROOT, command_line, environment
from tests.support.json_documents import require_valid
from tests.support.processes import eventually
from tests.support.recordings import Plan, instant, write
from tests.support.rings import files, start
from tests.support.ssh_boards import NAME, Server

pytestmark = pytest.mark.untimed

SECOND = 10**9
HERE = socket.gethostname()
"""The name of this machine in its runs."""
TOLD = job.BoardNames(HERE, lambda head: HeadAdditions(HERE))


def values(seed: int, intervals: int) -> list[list[np.ndarray[Any, np.dtype[np.int64]]]]:
    """Of one CPU, a second each, and no two seeds the same."""
    dice = np.random.default_rng(seed)
    return [[dice.integers(3000, 90_000, 1000) for _ in range(intervals)]]


def put(
    ring: Path, serial: int, *, begin_ns: int | None = None, intervals: int = 3, run_id: str | None = None, **more: Any
) -> Path:
    """One recording of a ring, three seconds long; each begins where the one before it ended."""
    ring.mkdir(mode=0o700, exist_ok=True)
    run_id = run_id or f"20260101T0000{serial % 60:02}Z-{serial:08x}"
    path = ring / f"{serial:010}-{run_id}.jsonl"
    write(path, Plan(values(serial, intervals), run_id=run_id, begin_ns=0, **more))
    shift = intervals * SECOND * serial if begin_ns is None else begin_ns
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for name in {"begin", "end", "at"} & line.keys():
            line[name] = instant(line[name]["mono_ns"] + shift)
    path.write_bytes(b"".join(map(line_bytes, lines)))
    return path


def pulled(ring: Path, store: Path) -> job.PullResult:
    opened = Store(store)
    try:
        return job.pull(LocalLink(), str(ring), opened, TOLD, lambda: None)
    finally:
        opened.close()


def check_all_there(ring: Path, store: Path, board: str = HERE) -> None:
    """Each recording of the ring is in the store once, line by line what it was, but for the board in its head."""
    runs = {run.id: run for run in Store(store).runs()}
    assert set(runs) == {path.stem[11:] for path in files(ring)}
    assert not Store(store).verify()
    for path in files(ring):
        kept, was = Store(store).load(path.stem[11:]), read_recording(path)
        assert kept.damage is None and kept.head.board == board == runs[kept.run_id].board
        assert [one.histograms[0].count.tolist() for one in kept.intervals] == [
            one.histograms[0].count.tolist() for one in was.intervals
        ]
        assert (kept.end, kept.stopped) == (was.end, was.stopped)
        assert {number: total.k for number, total in kept.totals.items()} == {
            number: total.k for number, total in was.totals.items()
        }


def rest(store: Path) -> list[str]:
    """What lies in the spool."""
    return [path.name for path in (store / "pulled").glob("*/*") if path.name not in ("last.json", "refused.json")]


def test_what_the_probe_recorded_is_pulled_once(probe_binary: str, tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    process = start(probe_binary, ring, "--ring-cycle=1s")  # a busy machine takes as long to pull a recording
    assert eventually(lambda: len(files(ring)) >= 4)
    told = pulled(ring, store)
    assert len(told.stored) >= 3 and len(told.under_way) <= 1 and not told.gaps and not told.refused
    assert eventually(lambda: len(files(ring)) >= len(told.stored) + 3)
    process.send_signal(2)
    process.communicate(timeout=30)
    again = pulled(ring, store)
    assert again.stored and not again.gaps and not again.under_way
    assert not {one.run_id for one in told.stored} & {one.run_id for one in again.stored}
    check_all_there(ring, store)
    assert rest(store) == []
    nothing = pulled(ring, store)
    assert nothing == job.PullResult(newest=files(ring)[-1].name)


def test_a_recording_that_grows_is_fetched_from_where_it_was(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1)
    whole = put(ring, 2, intervals=6)
    lines = whole.read_bytes().splitlines(keepends=True)
    whole.write_bytes(b"".join(lines[:4]) + lines[4][:100])
    told = pulled(ring, store)
    assert [one.serial for one in told.stored] == [1]
    assert told.under_way == [job.PartialRecording(whole.stem[11:], 2, sum(map(len, lines[:4])), whole.name)]
    whole.write_bytes(b"".join(lines))
    told = pulled(ring, store)
    assert told.bytes == sum(map(len, lines[4:]))  # whole lines stay, the torn one comes again
    assert [one.serial for one in told.stored] == [2]
    check_all_there(ring, store)


def _with_load(stated: LoadStated, _: Head) -> HeadAdditions:
    return HeadAdditions("b", load=stated)


def test_what_was_stated_when_a_recording_was_seen_first_holds_for_all_of_it(tmp_path: Path) -> None:
    """Whoever changes the farm's file does not change what a board has been doing."""
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    whole = put(ring, 1, intervals=6)
    lines = whole.read_bytes().splitlines(keepends=True)
    whole.write_bytes(b"".join(lines[:4]))
    for stated in (LoadStated("none"), LoadStated("controller")):
        told = job.pull(LocalLink(), str(ring), store, job.BoardNames("b", partial(_with_load, stated)), lambda: None)
        whole.write_bytes(b"".join(lines))
    assert store.load(told.stored[0].run_id).head.load == LoadStated("none")


def as_services_write(path: Path, **boot_id: str) -> str:
    """Without what a bench adds to a head, and with which boot it was; its run."""
    first, *others = path.read_bytes().splitlines(keepends=True)
    head = {name: value for name, value in json.loads(first).items() if name not in {"profile", "configuration"}}
    path.write_bytes(b"".join([line_bytes(head | boot_id), *others]))
    return path.stem[11:]


def test_only_what_was_recorded_since_the_board_was_booted_gets_its_profile(tmp_path: Path) -> None:
    """Of what was recorded before nobody knows the kernel, and of what does not say when, neither."""
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    runs = [
        as_services_write(put(ring, 1), boot_id="0" * 36),
        as_services_write(put(ring, 2)),
        as_services_write(put(ring, 3), boot_id=str(collect(LocalLink())["boot_id"])),
    ]
    with LocalBoard(probe="").boot(AS_BOOTED) as here:
        told = job.pull(
            LocalLink(), str(ring), store, job.BoardNames("b", BoardAnnotations("b", here).added), lambda: None
        )
    heads = [store.load(run).head for run in runs]
    assert [one.profile for one in told.stored] == [head.profile is not None for head in heads] == [False, False, True]
    assert [head.configuration is not None for head in heads] == [False, False, True]
    assert heads[2].profile is not None and heads[2].profile["kernel"]["release"] == os.uname().release


def test_a_profile_holds_until_the_board_is_booted_again(tmp_path: Path) -> None:
    """A pull while one recording is under way; one more is made, and one after a boot; then the next pull."""
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    now = str(collect(LocalLink())["boot_id"])
    runs = [as_services_write(put(ring, 1), boot_id=now)]
    first = files(ring)[0]
    whole = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(whole[:2]))
    with LocalBoard(probe="").boot(AS_BOOTED) as here:
        job.pull(LocalLink(), str(ring), store, job.BoardNames("b", BoardAnnotations("b", here).added), lambda: None)
    first.write_bytes(b"".join(whole))
    runs += [as_services_write(put(ring, serial), boot_id=boot) for serial, boot in ((2, now), (3, "0" * 36))]
    job.pull(LocalLink(), str(ring), store, job.BoardNames("b", lambda head: HeadAdditions("b")), lambda: None)
    assert [store.load(run).head.profile is not None for run in runs] == [True, True, False]


@pytest.mark.slow
def test_what_a_service_recorded_is_merged_like_runs_of_one_kind(probe_binary: str, tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    ring.mkdir(mode=0o700)
    process = start(probe_binary, ring)
    try:
        assert eventually(lambda: len(files(ring)) >= 4)
    finally:
        process.kill()
        process.communicate()
    assert command_line("monitor", "pull", f"--ring={ring}", f"--store={store}").returncode == 0
    recordings = [Store(store).load(run.id) for run in Store(store).runs()]
    assert len(recordings) >= 3 and len(grouped(recordings)) == 1
    assert command_line("report", f"--store={store}", f"--out={tmp_path / 'report'}").returncode == 0
    assert len(json.loads((tmp_path / "report" / "report.json").read_text())["runs"]) == len(recordings)


@pytest.mark.slow
def test_a_pull_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """At random points, until nothing is left to pull."""
    ring, store, dice = tmp_path / "ring", tmp_path / "store", random.Random(3)
    for serial in range(1, 13):
        put(ring, serial, intervals=20)
    argv = [sys.executable, "-m", "fastenough", "monitor", "pull", f"--ring={ring}", f"--store={store}"]
    kills = 0
    for _ in range(8):
        bench = subprocess.Popen(
            argv, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(dice.uniform(1.0, 4.0))
        kills += bench.poll() is None
        bench.kill()
        bench.wait()
        assert not Store(store).verify()
        assert all(run.state == "ended" for run in Store(store).runs())  # never a part of one
        if len(Store(store).runs()) == 12:
            break
    told = pulled(ring, store)
    assert kills and not told.gaps
    check_all_there(ring, store)
    assert rest(store) == []


@pytest.mark.slow
def test_two_pulls_at_once_store_each_recording_once(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    for serial in range(1, 9):
        put(ring, serial)
    Store(store).close()
    argv = [sys.executable, "-m", "fastenough", "monitor", "pull", f"--ring={ring}", f"--store={store}", "--json"]
    both = [
        subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [one.communicate(timeout=120) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    counts = sorted(len(require_valid("monitor pull", stdout)["stored"]) for stdout, _ in said)
    assert counts == [0, 8]
    check_all_there(ring, store)


def test_gaps_are_told_once_with_their_length_and_cause(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1, begin_ns=0)
    put(ring, 2, begin_ns=3 * SECOND, outcome=None)  # cut off after 3 s
    put(ring, 3, begin_ns=10 * SECOND)  # started again 4 s later
    put(ring, 7, begin_ns=60 * SECOND)  # three made room
    told = pulled(ring, store)
    assert [one.outcome for one in told.stored] == ["completed", None, "completed", "completed"]
    assert [(gap.ns, gap.dropped) for gap in told.gaps] == [(4 * SECOND, 0), (47 * SECOND, 3)]
    assert "interrupted" in told.gaps[0].reason and "overwritten" in told.gaps[1].reason
    put(ring, 8, begin_ns=63 * SECOND)
    put(ring, 9, begin_ns=70 * SECOND)
    told = pulled(ring, store)
    assert [(gap.ns, gap.dropped, gap.reason) for gap in told.gaps] == [
        (4 * SECOND, 0, "nothing was recorded between them")
    ]
    check_all_there(ring, store)


def _set_clock(path: Path, by_ns: int) -> None:
    """Move the wall clock of a recording."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for name in {"begin", "end", "at"} & line.keys():
            line[name]["wall_ns"] += by_ns
    path.write_bytes(b"".join(map(line_bytes, lines)))


def test_after_a_boot_the_wall_clock_tells_how_long(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1, begin_ns=500 * SECOND)
    _set_clock(put(ring, 2, begin_ns=0), 600 * SECOND)
    put(ring, 3, begin_ns=0)  # and after another one the clock was set back
    told = pulled(ring, store)
    assert [gap.ns for gap in told.gaps] == [97 * SECOND, None]


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_within_a_boot_the_monotonic_clock_tells_how_long(tmp_path: Path, step_s: int) -> None:
    """Also after the wall clock was set, if the recordings state their boot; the next pull knows that of the last."""
    ring, store = tmp_path / "ring", tmp_path / "store"
    boots = ["1" * 36, "1" * 36, "1" * 36, "2" * 36]
    begins = [0, 10, 20, 30]
    gaps = []
    for serial, (boot_id, begin_s) in enumerate(zip(boots, begins, strict=True), 1):
        path = put(ring, serial, begin_ns=begin_s * SECOND)
        as_services_write(path, boot_id=boot_id)
        _set_clock(path, serial * step_s * SECOND)
        gaps += [gap.ns for gap in pulled(ring, store).gaps]
    rebooted = (7 + step_s) * SECOND
    assert gaps == [7 * SECOND, 7 * SECOND, rebooted if rebooted >= 0 else None]


def test_what_was_fetched_and_is_another_now_is_fetched_again(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    path = put(ring, 1, intervals=6)
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    pulled(ring, store)
    (part,) = (store / "pulled").glob("*/*.part")
    part.write_bytes(part.read_bytes().replace(b"monotonic", b"monotonik").replace(b'"count":1000', b'"count":1001'))
    path.write_bytes(whole)
    told = pulled(ring, store)
    assert told.bytes > len(whole)
    check_all_there(ring, store)


def test_what_makes_room_while_it_is_pulled_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    path = put(ring, 1, intervals=6)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    assert pulled(ring, store).under_way
    path.unlink()
    put(ring, 5)
    told = pulled(ring, store)
    assert [(one.serial, one.outcome, one.intervals) for one in told.stored] == [(1, None, 3), (5, "completed", 3)]
    assert told.gaps[0].dropped == 3
    assert rest(store) == []


def test_a_ring_that_is_created_anew_has_lost_nothing(tmp_path: Path) -> None:
    """Its serials begin again, below that of the recording of which a part was fetched."""
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 56)
    path = put(ring, 57, intervals=6, begin_ns=57 * 3 * SECOND)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    assert pulled(ring, store).under_way
    shutil.rmtree(ring)
    runs = [path.stem[11:], *(put(ring, serial, begin_ns=(300 + 3 * serial) * SECOND).stem[11:] for serial in (1, 2))]
    told = pulled(ring, store)
    assert [one.run_id for one in told.stored] == runs
    assert [(gap.after, gap.before, gap.dropped) for gap in told.gaps] == [(runs[0], runs[1], 0)]
    assert rest(store) == []


def _mode_of(line: bytes, **change: Any) -> bytes:
    return line_bytes(json.loads(line) | change)


HOSTILE: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "no recording": lambda lines: [b"hello\n"],
    "binary": lambda lines: [bytes(range(256)) * 100 + b"\n"],
    "another's name": lambda lines: [_mode_of(lines[0], run_id="20260101T000000Z-ffffffff"), *lines[1:]],
    "a path for a name": lambda lines: [_mode_of(lines[0], run_id="../../../../etc/x"), *lines[1:]],
    "a head without an end": lambda lines: [_mode_of(lines[0], parameters={"x": "y" * (17 << 20)}), *lines[1:]],
    "an interval left out": lambda lines: [*lines[:2], *lines[3:]],
    "something behind its end": lambda lines: [*lines, lines[-1]],
    "deep": lambda lines: [lines[0], b'{"type":"event","kind":"note","at":' + b"[" * 100_000 + b"\n"],
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_sound_recording_is_refused_and_the_others_come(tmp_path: Path, what: str) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1)
    path = put(ring, 2)
    path.write_bytes(b"".join(HOSTILE[what](path.read_bytes().splitlines(keepends=True))))
    put(ring, 3)
    gaps = []
    for again in range(2):
        told = pulled(ring, store)
        assert [one.name for one in told.refused] == [path.name]
        assert not again or told.bytes == 0, "what was refused is not fetched again"
        gaps += [(gap.dropped, gap.reason) for gap in told.gaps]
    assert gaps == [(0, "the recordings between them were rejected")]
    path.unlink()
    assert pulled(ring, store).refused == []
    assert rest(store) == [] and not pulled(ring, store).refused
    check_all_there(ring, store)


def test_names_that_no_ring_gives_are_passed_over(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    good = put(ring, 1)
    for name in (
        "0000000002-a b.jsonl",
        "0000000002-$(touch x).jsonl",
        "0000000002-a\nb.jsonl",
        "0-a.jsonl",
        "0000000003-" + "a" * 80 + ".jsonl",
        "-rf.jsonl",
        "0000000004-a.jsonl.new",
    ):
        (ring / name).write_bytes(good.read_bytes())
    (ring / "0000000005-link.jsonl").symlink_to(good)
    (ring / "0000000006-folder.jsonl").mkdir()
    os.mkfifo(ring / "0000000007-fifo.jsonl")
    told = pulled(ring, store)
    assert [one.serial for one in told.stored] == [1] and not told.refused
    assert not (ring / "x").exists()


def test_a_line_without_an_end_is_refused_once_and_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MOST_END_BYTES", 100_000)
    for module in (ring_of_link, job):
        monkeypatch.setattr(module, "CHUNK", 40_000)
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1)
    endless = ring / "0000000002-20260101T000002Z-00000002.jsonl"
    endless.write_bytes(b"x" * 10**6)
    first, second = (pulled(ring, store) for _ in range(2))
    assert [one.name for one in first.refused] == [one.name for one in second.refused] == [endless.name]
    assert first.bytes < 400_000 and second.bytes == 0
    assert not [name for name in rest(store) if name.startswith(endless.name)]


def from_elsewhere(store: Path, path: Path) -> None:
    """The same recording, of another board."""
    opened = Store(store)
    with opened.spool("elsewhere", "ring", lambda: None) as spool:
        head, *more = path.read_bytes().splitlines(keepends=True)
        opened.adopt(
            spool,
            [line_bytes(completed_head(json.loads(head), path.stem[11:], HeadAdditions("elsewhere"))), *more],
            path.stem[11:],
        )


def test_another_boards_run_of_that_name_is_told(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    path = put(ring, 1)
    from_elsewhere(store, path)
    told = pulled(ring, store)
    assert "has a run of this name from elsewhere" in told.refused[0].reason


def test_a_conflict_over_an_id_deletes_nothing(tmp_path: Path) -> None:
    """Whatever brought a run of that name into the store, what was pulled of another board's stays, also when the
    board has it no longer."""
    ring, store = tmp_path / "ring", tmp_path / "store"
    path = put(ring, 1, intervals=6)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    assert len(pulled(ring, store).under_way) == 1
    from_elsewhere(store, path)
    for _ in range(2):
        assert [one.name for one in pulled(ring, store).refused] == [path.name]
        assert [part.read_bytes() for part in (store / "pulled").glob("*/*.part")] == [b"".join(lines[:4])]
        path.unlink(missing_ok=True)


def test_a_recording_that_does_not_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than any of a ring: what has come of it is removed, and it is not fetched again."""
    monkeypatch.setattr(job, "MOST_BYTES", 100_000)
    monkeypatch.setattr(job, "CHUNK", 4096)
    monkeypatch.setattr(ring_of_link, "CHUNK", 4096)
    ring, store = tmp_path / "ring", tmp_path / "store"
    path = put(ring, 1)
    with path.open("ab") as file:
        file.write((b"{}" * 100 + b"\n") * 1000)
    first, second = pulled(ring, store), pulled(ring, store)
    assert [one.name for one in (*first.refused, *second.refused)] == [path.name] * 2
    assert (first.bytes > 100_000, second.bytes) == (True, 0)
    assert not [*(store / "pulled").glob("*/*.part")] and not [*(store / "pulled" / "ids").iterdir()]


def test_two_boards_cannot_bring_the_same_id(tmp_path: Path) -> None:
    ring, theirs, store = tmp_path / "ring", tmp_path / "theirs", Store(tmp_path / "store")
    path = put(ring, 1, outcome=None)
    theirs.mkdir()
    (theirs / path.name).write_bytes(path.read_bytes())
    other = job.BoardNames("other", lambda head: HeadAdditions("other"))
    assert len(pulled(ring, store.path).under_way) == 1
    for _ in range(2):
        refused = job.pull(LocalLink(), str(theirs), store, other, lambda: None).refused
        assert [one.name for one in refused] == [path.name]
    put(ring, 2)
    assert [one.serial for one in pulled(ring, store.path).stored] == [1, 2]
    assert store.runs(id=path.stem[11:])[0].board == HERE


@pytest.mark.usefixtures("at_server")
def test_over_ssh(server: Server, tmp_path: Path) -> None:
    ring, store = tmp_path / "a ring's folder", tmp_path / "store"
    for serial in range(1, 4):
        put(ring, serial)
    done = command_line("monitor", "pull", f"--board={NAME}", f"--ring={ring}", f"--store={store}", "--json")
    assert done.returncode == 0 and len(require_valid("monitor pull", done.stdout)["stored"]) == 3
    check_all_there(ring, store)  # the server is this machine
    assert {Store(store).load(run.id).head.address for run in Store(store).runs()} == {NAME}
    assert eventually(lambda: not server.processes())


def test_pieces_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks smaller than a line."""
    for module in (ring_of_link, job):
        monkeypatch.setattr(module, "CHUNK", 3001)
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1, intervals=5)
    done = job.pull(LocalLink(), str(ring), Store(store), TOLD, lambda: None)
    assert [one.intervals for one in done.stored] == [5]
    check_all_there(ring, store)


@pytest.mark.parametrize("ring", ["/nowhere", "/etc/passwd", "", "-n", "$(reboot)"])
def test_where_no_ring_is_it_says_so(tmp_path: Path, ring: str) -> None:
    with pytest.raises(BadInput, match="no readable ring of recordings"):
        job.pull(LocalLink(), ring, Store(tmp_path / "store"), TOLD, lambda: None)


def test_a_machine_without_a_probe_is_pulled_from(tmp_path: Path) -> None:
    """The package in a checkout of which nothing is built."""
    checkout, ring, store = tmp_path / "checkout", tmp_path / "ring", tmp_path / "store"
    for folder in ("fastenough", "format"):
        shutil.copytree(ROOT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__"))
    put(ring, 1)
    there = partial(command_line, cwd=checkout, more={"PYTHONPATH": str(checkout)})
    assert there("run", "timer").returncode == 5, "there is no probe"
    done = there("monitor", "pull", f"--ring={ring}", f"--store={store}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("stored ")


@pytest.mark.slow
def test_it_is_told_in_words(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1, outcome=None)
    put(ring, 3)
    done = command_line("monitor", "pull", f"--ring={ring}", f"--store={store}")
    assert done.returncode == 0
    assert "3 intervals in 3 s, interrupted" in done.stdout and "(1 dropped)" in done.stdout
    put(ring, 4).write_text("hello\n")
    done = command_line("monitor", "pull", f"--ring={ring}", f"--store={store}")
    assert done.returncode == 4 and done.stderr.startswith("refused 0000000004-") and done.stderr.count("\n") == 1
    done = command_line("monitor", "pull", f"--ring={ring}/nowhere", f"--store={store}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "no readable ring" in done.stderr


def test_a_gap_before_a_recording_that_grows_is_told_once(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1, begin_ns=0)
    path = put(ring, 2, begin_ns=10 * SECOND, intervals=6)
    whole = path.read_bytes().splitlines(keepends=True)
    gaps = []
    for lines in (2, 4, len(whole), len(whole)):
        path.write_bytes(b"".join(whole[:lines]))
        gaps.append([gap.ns for gap in pulled(ring, store).gaps])
    assert gaps == [[7 * SECOND], [], [], []]
    check_all_there(ring, store)
