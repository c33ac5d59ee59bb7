# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that is missing, damaged or altered is never judged: it is named, and there is no PASS."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from fastenough.analysis import Assessment, judge
from fastenough.campaign.ledger import find_unfinished
from fastenough.cli import main
from fastenough.cli.report import choose_runs
from fastenough.model import Requirement
from fastenough.store import Store, index
from fastenough.store.campaign import newest_campaign
from fastenough.store.directory import LIVE_FILE, RUN_FILE, SEALED_FILE
from tests.support import recordings as made
from tests.support.processes import start_bench

pytestmark = pytest.mark.untimed

LOADS = ("none", "cpu", "io")
BUSY = made.RAN | {"cpu_ns": 4_000_000_000}
"""In an interval of 16 s as much as in 1 s otherwise would be too little for the load."""
PLANNED = tuple(f"timer interval=1ms, load {load}" for load in LOADS)


def begin(store: Store, position: int, campaign: str = "assess-1") -> Any:
    return store.begin(
        {"campaign": campaign, "plan_sha256": "p", "position": position, "positions": len(LOADS), "planned": PLANNED}
    )


def lines(folder: Path, run_id: str, load: str, **changes: Any) -> list[bytes]:
    plan = made.Plan(made.quiet(run_id), run_id=run_id, load=load, load_use=(BUSY,), **changes)
    return made.write(folder / "made.jsonl", plan).read_bytes().splitlines(keepends=True)


def keep(store: Store, position: int, campaign: str = "assess-1", **changes: Any) -> str:
    writer = begin(store, position, campaign)
    for line in lines(store.path, writer.id, LOADS[position], **changes):
        writer.line(line)
    writer.end()
    return str(writer.id)


def rewrite(path: Path, content: bytes) -> None:
    """As an editor does: a new file in the place of one that cannot be written."""
    path.unlink()
    path.write_bytes(content)


def report(store: Store, *words: str) -> tuple[int, dict[str, Any]]:
    ended = fastenough(store, "report", "--limit", "1ms", "--json", "--out", str(store.path.parent / "report"), *words)
    return ended.returncode, json.loads(ended.stdout)["assessment"]


def judged(store: Store, *names: str) -> Assessment:
    """What a report says, without the time that its figures take."""
    fresh = Store(store.path)
    campaign = choose_runs(fresh, names)
    return judge([fresh.load(run) for run in campaign.runs], Requirement(10**6), missing=campaign.missing)


def fastenough(store: Store, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([*words, "--store", str(store.path)])
    return subprocess.CompletedProcess(words, int(str(ended.value.code)), out.getvalue(), err.getvalue())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_whole_campaign_passes(store: Store) -> None:
    """Without this, the tests below would prove nothing."""
    for position in range(3):
        keep(store, position)
    status, assessment = report(store)
    assert (status, assessment["verdict"]) == (0, "PASS"), assessment["reasons"]


def test_a_run_that_was_never_made_is_named(store: Store) -> None:
    keep(store, 0)
    keep(store, 1)
    status, assessment = report(store)
    assert (status, assessment["verdict"]) == (3, "INCONCLUSIVE")
    page = (store.path.parent / "report" / "index.html").read_text()
    assert "run 3 of 3 (timer interval=1ms, load io) was planned but not measured" in page
    assert any("run 3 of 3 (timer interval=1ms, load io)" in reason for reason in assessment["reasons"])
    assert any("--resume" in step for step in assessment["next_steps"])


_CAMPAIGN = """
import os, signal, sys
sys.path.insert(0, ".")
from pathlib import Path
from tests.process.store.test_store_integrity import *
store = Store(Path(sys.argv[1]))
keep(store, 0)
keep(store, 1)
print("two", flush=True)
if sys.argv[2] == "begun":
    writer = begin(store, 2)
    for line in lines(store.path, writer.id, "io")[:-1]:
        writer.line(line)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("when", "verdict"), [("between", "INCONCLUSIVE"), ("begun", "BROKEN")])
def test_a_campaign_that_was_killed(store: Store, when: str, verdict: str) -> None:
    bench = start_bench(_CAMPAIGN, str(store.path), when)
    assert bench.communicate()[0] == "two\n"
    assessment = judged(store)
    assert assessment.verdict == verdict, assessment.reasons
    assert any("load io" in reason for reason in assessment.reasons)


def _remove(run: Path) -> None:
    shutil.rmtree(run)


def _spoil_summary(run: Path) -> None:
    rewrite(run / RUN_FILE, b"{}")


def _remove_summary(run: Path) -> None:
    (run / RUN_FILE).unlink()


def _remove_recording(run: Path) -> None:
    (run / SEALED_FILE).unlink()


def _garbage(run: Path) -> None:
    rewrite(run / SEALED_FILE, os.urandom(5000))


def _truncated(run: Path) -> None:
    rewrite(run / SEALED_FILE, (run / SEALED_FILE).read_bytes()[:-40])


def _steal_edited(run: Path) -> None:
    content = zstandard.ZstdDecompressor().decompressobj().decompress((run / SEALED_FILE).read_bytes())
    assert b'"steal_ns":7000000' in content
    rewrite(run / SEALED_FILE, zstandard.compress(content.replace(b'"steal_ns":7000000', b'"steal_ns":0')))


def _hash_removed(run: Path) -> None:
    summary = json.loads((run / RUN_FILE).read_text()) | {"sha256": None}
    rewrite(run / RUN_FILE, json.dumps(summary).encode())


def _fifo(name: str) -> Callable[[Path], None]:
    def make(run: Path) -> None:
        (run / name).unlink()
        os.mkfifo(run / name)

    return make


def _another_runs(run: Path) -> None:
    other = next(folder for folder in run.parent.iterdir() if folder != run)
    rewrite(run / SEALED_FILE, (other / SEALED_FILE).read_bytes())
    summary = json.loads((run / RUN_FILE).read_text())
    summary["sha256"] = json.loads((other / RUN_FILE).read_text())["sha256"]
    rewrite(run / RUN_FILE, json.dumps(summary).encode())


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "folder gone": (_remove, "INCONCLUSIVE"),
    "summary spoilt": (_spoil_summary, "BROKEN"),
    "summary gone": (_remove_summary, "BROKEN"),
    "recording gone": (_remove_recording, "BROKEN"),
    "recording garbage": (_garbage, "BROKEN"),
    "recording truncated": (_truncated, "BROKEN"),
    "steal edited away": (_steal_edited, "BROKEN"),
    "hash removed": (_hash_removed, "BROKEN"),
    "summary a FIFO": (_fifo(RUN_FILE), "BROKEN"),
    "recording a FIFO": (_fifo(SEALED_FILE), "BROKEN"),
    "another run's recording": (_another_runs, "BROKEN"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", [1, 2])
def test_a_damaged_run_forbids_a_pass_and_is_named(store: Store, damage: str, which: int) -> None:
    """The one in the middle, and the newest, whose campaign nothing else may name."""
    counters = dict(made.COUNTERS) | {"steal_ns": 7_000_000}
    runs = [
        keep(store, position, counters=counters if position == which else dict(made.COUNTERS)) for position in range(3)
    ]
    spoil, verdict = DAMAGES[damage]
    spoil(store.path / "runs" / runs[which])
    assessment = judged(store)
    assert assessment.verdict == verdict
    named = f"run {which + 1} of 3" if damage == "folder gone" else runs[which]
    assert any(named in reason for reason in assessment.reasons), assessment.reasons
    if damage == "folder gone":
        return
    shown, listed = fastenough(store, "show", runs[which]), fastenough(store, "list", "--json")
    assert (shown.returncode, "integrity check failed" in shown.stdout) == (4, True)
    compared = fastenough(store, "compare", runs[0], runs[which])
    assert (compared.returncode, runs[which] in compared.stderr) == (4, True)
    verified, rebuilt = fastenough(store, "store", "verify"), fastenough(store, "store", "rebuild")
    if damage != "another run's recording":
        states = {run["id"]: run["state"] for run in json.loads(listed.stdout)}
        assert states == dict.fromkeys(runs, "ended") | {runs[which]: "damaged"}
        assert (verified.returncode, runs[which] in verified.stdout, runs[0] in verified.stdout) == (4, True, False)
        assert (rebuilt.returncode, runs[which] in rebuilt.stdout) == (4, True)


def test_resuming_measures_again_what_is_missing_or_damaged(store: Store) -> None:
    runs = [keep(store, position) for position in range(3)]
    _garbage(store.path / "runs" / runs[1])
    assert find_unfinished(Store(store.path), "p", 3) == ("assess-1", {0: runs[0], 2: runs[2]})
    again = keep(store, 1)
    kept = newest_campaign(store)
    assert kept is not None
    assert (set(kept.runs), kept.missing) == ({runs[0], runs[2], again}, ())


def test_an_aborted_run_that_was_made_again_does_not_count(store: Store) -> None:
    keep(store, 0)
    keep(store, 1, outcome="aborted")
    keep(store, 1)
    keep(store, 2)
    assert judged(store).verdict == "PASS"


def test_a_damaged_run_of_before_does_not_count(store: Store) -> None:
    old = keep(store, 0, "assess-0")
    _spoil_summary(store.path / "runs" / old)
    for position in range(3):
        keep(store, position)
    assert judged(store).verdict == "PASS"


def test_the_only_run_of_the_newest_campaign_is_damaged(store: Store) -> None:
    """The report does not go back to an older campaign without a word."""
    for position in range(3):
        keep(store, position)
    newest = keep(store, 0, "assess-2")
    _spoil_summary(store.path / "runs" / newest)
    assert judged(store).verdict == "BROKEN"


def test_what_a_dead_bench_left_complete_counts_once_it_is_sealed(store: Store) -> None:
    writer = begin(store, 0)
    for line in lines(store.path, writer.id, "none"):
        writer.line(line)
    writer.close()
    assessment = judged(store, writer.id)
    assert (assessment.verdict, "never sealed" in assessment.reasons[0]) == ("BROKEN", True)
    assert fastenough(store, "store", "rebuild").returncode == 0
    assert judged(store, writer.id).verdict == "PASS"


def test_a_report_of_garbage_alone(store: Store) -> None:
    run = keep(store, 0)
    _garbage(store.path / "runs" / run)
    status, assessment = report(store, run)
    assert (status, assessment["verdict"]) == (4, "BROKEN")
    page = (store.path.parent / "report" / "index.html").read_text()
    assert "integrity check failed" in page
    assert run in page


def test_an_index_of_garbage_is_made_again(store: Store) -> None:
    run = keep(store, 0)
    store.close()
    file = store.path / "index.sqlite"
    for garbage in (b"this is no database" * 100, file.read_bytes()[:3000] + os.urandom(9000), b""):
        file.write_bytes(garbage)
        assert run in fastenough(store, "list").stdout
        rebuilt = fastenough(store, "store", "rebuild")
        assert rebuilt.returncode == 0, rebuilt.stderr
        listed = fastenough(store, "list")
        assert (run in listed.stdout, listed.stderr) == (True, "")


def test_an_index_that_a_stopped_bench_has_locked_is_done_without(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not waited for twice, and who holds it is named; the runs are read."""
    run = keep(store, 0)
    store.close()
    monkeypatch.setattr(index, "_PATIENCE_S", 0.2)
    child = os.fork()
    if child == 0:
        sqlite3.connect(store.path / "index.sqlite").execute("BEGIN EXCLUSIVE")
        os.kill(os.getpid(), signal.SIGSTOP)
    try:
        os.waitpid(child, os.WUNTRACED)
        again = Store(store.path)
        assert [known.id for known in again.runs()] == [run]
        told = again.index_fault or ""
        assert told.startswith(f"process {child} (")
        assert "stopped: kill -CONT lets it go on) has locked the index" in told
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert Store(store.path).index_fault is None


def test_an_edit_after_the_index_was_made_is_noticed_by_list(store: Store) -> None:
    """Same size, times put back: what cannot be put back is the time of the change."""
    run = keep(store, 0)
    assert "completed" in fastenough(store, "list").stdout
    sealed = store.path / "runs" / run / SEALED_FILE
    times = sealed.stat()
    content = bytearray(sealed.read_bytes())
    content[len(content) // 2] ^= 1
    sealed.chmod(0o644)
    sealed.write_bytes(content)
    os.utime(sealed, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "damaged" in fastenough(store, "list").stdout


def test_folders_that_are_no_runs(store: Store) -> None:
    """Names that no text holds, control characters, a link, a plain file: the runs beside them can be used."""
    good = keep(store, 0)
    runs = store.path / "runs"
    for name in (b"\xff\xfe", b"a\x1b[2Jb", b"[red]x", b"=1", b"-rf"):
        (runs / os.fsdecode(name)).mkdir()
    (runs / "link").symlink_to(runs / good)
    (runs / "file").write_text("")
    listed = fastenough(store, "list")
    assert good in listed.stdout
    assert "\x1b" not in listed.stdout
    assert listed.stdout.count("damaged") == 6
    assert fastenough(store, "show", good).returncode == 0
    assert fastenough(store, "show", "\\xff").returncode == 4
    assert fastenough(store, "show", os.fsdecode(b"\xff")).returncode == 2
    assert len(json.loads(fastenough(store, "store", "verify", "--json").stdout)["faults"]) == 6
    assert fastenough(store, "store", "rebuild").returncode == 4


def test_live_runs_are_no_faults(store: Store) -> None:
    writer = begin(store, 0)
    for line in lines(store.path, writer.id, "none")[:-1]:
        writer.line(line)
    assert Store(store.path).verify() == {}
    assert store.load(writer.id).cut_off is not None
    assert (writer.path / LIVE_FILE).exists()
    writer.close()
