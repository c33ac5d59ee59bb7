# SPDX-License-Identifier: GPL-2.0-or-later
"""Orders that change a board: the executor's service verifies them itself, carries them out whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.fleet import orders
from fastenough.fleet.orders import Order, make_order, packed_plan
from fastenough.pack.signature import sign
from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.executing_boards import CARRY_OUT, ExecutingBoard, shells
from tests.support.json_documents import require_valid
from tests.support.ordered_boards import MACHINE, OrderedBoard
from tests.support.presence import present
from tests.support.privileges import needs_root
from tests.support.processes import eventually, recorded, with_words
from tests.support.publishing import running_bus
from tests.support.rings import files, recordings
from tests.support.tools import ROOT, program, require

pytestmark = pytest.mark.machines

OTHER = "b" * 32
_GROUP = 65534
_PLAN = """name = "short"
title = "Short"
question = "Does it run?"
loads = ["{load}"]
duration = "1s"

[[run]]
probe = "semaphore"
"""


@pytest.fixture
def board(build_directory: Path, probe_binary: str, tmp_path: Path) -> Iterator[ExecutingBoard]:
    require("nats-server", "ssh-keygen", "setsid")
    publisher = program(build_directory, "target/publisher/sanitized-publisher")
    executor = program(build_directory, "target/publisher/sanitized-executor")
    with running_bus(tmp_path) as bus:
        yield ExecutingBoard(OrderedBoard(tmp_path, publisher, bus), executor, probe_binary)


def order(action: str, value: str, by: str = "ann") -> Order:
    return make_order(MACHINE, action, value, by, 600)


def test_an_order_changes_the_interval_of_the_next_recording(board: ExecutingBoard) -> None:
    with board.running():
        assert board.interval_s == 1
        answer = board.board.answer(board.board.signed(order("interval", "2s")))
        assert answer is not None and (answer.state, answer.reason) == ("done", "")
        newest = files(board.folder / "ring")[-1]
        assert board.interval_s == 2 and board.contents() == {"interval": b"FASTENOUGH_INTERVAL=2s\n"}
        assert eventually(lambda: recorded(newest))
    first, second = recordings(board.folder / "ring")
    assert (first.head.interval_ns, second.head.interval_ns) == (1_000_000_000, 2_000_000_000)
    assert second.intervals[0].end_mono_ns - second.intervals[0].begin_mono_ns >= 2_000_000_000


REFUSED_VALUES = [("interval", "500ms"), ("interval", "2h"), ("interval", "3601s"), ("trace", "169h"), ("plan", "A")]


def test_values_out_of_their_bounds_change_nothing(board: ExecutingBoard) -> None:
    with board.running():
        assert board.board.state_of(board.board.signed(order("interval", "3s"))) == "done"
        before, count = board.contents(), len(files(board.folder / "ring"))
        for action, value in REFUSED_VALUES:
            answer = board.board.answer(board.board.signed(order(action, value)))
            assert answer is not None and (answer.state, answer.reason) == ("refused", "failed"), (action, value)
            assert answer.detail
        assert {name: text for name, text in board.contents().items() if name == "interval"} == before
        assert board.interval_s == 3 and len(files(board.folder / "ring")) == count


def _line(changed: Callable[[bytes], bytes]) -> Callable[[ExecutingBoard], bytes]:
    """A line that is changed and then signed correctly."""

    def message(board: ExecutingBoard) -> bytes:
        line = changed(order("interval", "2s").line())
        return line + sign(line, board.folder / "ann", orders.NAMESPACE)

    return message


def _value(value: bytes) -> Callable[[ExecutingBoard], bytes]:
    return _line(lambda line: line.replace(b'"2s"', b'"' + value + b'"'))


STOLEN: dict[str, tuple[str, Callable[[ExecutingBoard], bytes]]] = {
    "not signed": ("unsigned", lambda board: order("interval", "2s").line()),
    "signed by a stranger": ("signature", lambda board: board.board.signed(order("interval", "2s"), "eve")),
    "for another machine": (
        "foreign",
        lambda board: board.board.signed(replace(order("interval", "2s"), machine=OTHER)),
    ),
    "expired": ("expired", lambda board: board.board.signed(replace(order("interval", "2s"), expires_s=1))),
    "changed after it was signed": (
        "signature",
        lambda board: board.board.signed(order("interval", "2s")).replace(b'"2s"', b'"9s"'),
    ),
    "the recovery as action": ("unknown", _line(lambda line: line.replace(b"interval", b"recover"))),
    "a space": ("malformed", _value(b"2s reboot")),
    "a line feed": ("malformed", _value(b"2s\\n9s")),
    "a line feed that is none in JSON": ("malformed", _value(b"2s\n9s")),
    "a path": ("unknown", _value(b"../../etc/passwd")),
    "a command": ("malformed", _value(b"$(reboot)")),
    "huge": ("unknown", _value(b"9999999h")),
    "64 KiB": ("malformed", lambda board: board.board.signed(replace(order("plan", "A"), value="A" * 65536))),
    "a megabyte": ("malformed", lambda board: b"x" * 1_000_000),
    "nothing": ("malformed", lambda board: b""),
}


def test_who_controls_the_publisher_changes_nothing(board: ExecutingBoard) -> None:
    """The service refuses what no operator has signed for this board, and each order that it has carried out."""
    with board.recording(), board.serving():
        answers = {name: board.call(message(board)) for name, (_, message) in STOLEN.items()}
        reasons = {name: json.loads(text)["reason"] for name, text in answers.items()}
        assert reasons == {name: reason for name, (reason, _) in STOLEN.items()}
        assert board.contents() == {} and board.interval_s == 1
        older, newer = (board.board.signed(order("interval", value)) for value in ("2s", "3s"))
        assert [json.loads(board.call(message))["reason"] for message in (newer, newer, older)] == [
            "",
            *["replayed"] * 2,
        ]
        assert board.interval_s == 3


def test_a_service_that_was_killed_restores_the_former_interval(board: ExecutingBoard) -> None:
    with board.recording():
        with board.serving() as service:
            assert json.loads(board.call(board.board.signed(order("interval", "2s"))))["state"] == "done"
            message = board.board.signed(order("interval", "5s"))
            caller = threading.Thread(target=board.call, args=(message,))
            with board.blocked():
                caller.start()
            assert board.contents()["interval"] == b"FASTENOUGH_INTERVAL=5s\n"
            board.kill(service)
            caller.join()
        with board.serving():
            assert eventually(lambda: board.contents() == {"interval": b"FASTENOUGH_INTERVAL=2s\n"})
            assert board.interval_s == 2
            assert json.loads(board.call(message))["reason"] == "replayed"


def test_an_action_that_was_killed_is_undone(board: ExecutingBoard) -> None:
    with board.running():
        answers = []
        message = board.board.signed(order("interval", "5s"))
        caller = threading.Thread(target=lambda: answers.append(board.board.answer(message)))
        with board.blocked():
            caller.start()
        for pid in with_words(str(board.folder / "actions"), "interval"):
            os.killpg(pid, signal.SIGKILL)  # the program of the actions and all that it has started
        caller.join()
        assert answers[0] is not None and (answers[0].state, answers[0].reason) == ("refused", "failed")
        assert eventually(lambda: board.contents() == {}) and board.interval_s == 1


def test_a_service_that_does_not_use_the_interval_is_reported(board: ExecutingBoard) -> None:
    service = board.folder / "service"
    service.write_text(service.read_text().replace('"$FASTENOUGH_INTERVAL"', "1s"))
    with board.running():
        answer = board.board.answer(board.board.signed(order("interval", "2s")))
        assert answer is not None and answer.reason == "failed" and "FASTENOUGH_INTERVAL" in answer.detail
        assert eventually(lambda: board.contents() == {})


@needs_root("it drops capabilities")
def test_the_service_needs_no_capability_and_only_its_group_may_use_its_socket(board: ExecutingBoard) -> None:
    """As its unit starts it."""
    without = ["setpriv", "--bounding-set=-all", "--no-new-privs", f"--regid={_GROUP}", "--clear-groups"]
    with board.recording(), board.serving(*without):
        found = board.socket.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (0, _GROUP, 0o660)
        for action, value in (("interval", "2s"), ("trace", "1min")):
            answer = json.loads(board.call(board.board.signed(order(action, value))).partition(b"\n")[0])
            assert (answer["state"], answer["reason"]) == ("done", ""), answer
        assert board.interval_s == 2
        assert [path for path in board.state.rglob("*") if path.stat().st_mode & 0o077] == []


def test_without_the_service_an_order_is_refused(board: ExecutingBoard) -> None:
    with board.board.running(f"--executor={board.folder}/client"):
        answer = board.board.answer(board.board.signed(order("interval", "2s")))
        assert answer is not None and (answer.state, answer.reason) == ("refused", "failed") and answer.detail


def _unpacked(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        streams = {Path(one.name).name: archive.extractfile(one) for one in archive if one.isfile()}
        return {name: stream.read() for name, stream in streams.items() if stream is not None}


def test_a_trace_arrives_with_the_recordings_of_this_time_and_the_kernels_trace(board: ExecutingBoard) -> None:
    (board.folder / "kernel").mkdir()
    (board.folder / "kernel" / "trace").write_text("# tracer: nop\nsched_switch\n")
    ring, out = board.folder / "ring", board.folder / "out.tar.gz"
    words = ["farm", "order", MACHINE, "trace", "10min", "--nats", board.board.url, "--json", "--out", str(out)]
    with board.running():
        assert eventually(lambda: recorded(files(ring)[0], 2))
        old = ring / "0000000000-old.jsonl"
        old.write_text("{}\n")
        os.utime(old, (1, 1))
        done = command_line(*words, "--signer", "ann", "--sign", str(board.folder / "ann"), cwd=board.folder)
        again = command_line(*words, "--signer", "ann", "--sign", str(board.folder / "ann"), cwd=board.folder)
    document = require_valid("farm order", done.stdout)
    assert (done.returncode, document["state"], document["file"]) == (0, "done", str(out))
    assert again.returncode == 2
    path, _, size = document["detail"].partition(": ")
    assert Path(path).parent == board.state / "traces" and size.startswith(f"{out.stat().st_size} bytes")
    assert Path(path).read_bytes() == out.read_bytes()
    texts = _unpacked(out)
    (name,) = {path.name for path in files(ring)} - {old.name}
    assert texts.keys() == {name, "kernel-trace.txt"} and texts["kernel-trace.txt"].endswith(b"sched_switch\n")
    assert texts[name].count(b"\n") > 2 and (ring / name).read_bytes().startswith(texts[name])


def test_a_trace_that_does_not_fit_into_an_answer_stays_on_the_board(board: ExecutingBoard) -> None:
    """Of five such traces, the last four."""
    (board.folder / "kernel").mkdir()
    content = os.urandom(1_000_000)
    (board.folder / "kernel" / "trace").write_bytes(content)
    with board.running():
        for _ in range(5):
            answer = board.board.answer(board.board.signed(order("trace", "1s")))
            assert answer is not None and (answer.state, answer.attachment) == ("done", b"")
            time.sleep(1)  # their names have the second
    path = Path(present(answer, "answer").detail.partition(": ")[0])
    assert _unpacked(path)["kernel-trace.txt"] == content
    assert sorted(path.parent.iterdir())[-1] == path and len(list(path.parent.iterdir())) == 4


def _carried_out(folder: Path, action: str, value: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the program of the actions does without its service, with state and ring in a folder."""
    return subprocess.run(
        [CARRY_OUT, action, value],
        env={
            **os.environ,
            "FASTENOUGH_STATE": str(folder / "state"),
            "FASTENOUGH_RING": str(folder / "ring"),
            **variables,
        },
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _folders(folder: Path, *names: str) -> list[Path]:
    made = [folder / name for name in names]
    for each in made:
        each.mkdir()
    return made


def test_of_a_long_kernel_trace_the_newest_part_is_stored(tmp_path: Path) -> None:
    """The answer says that it is a part."""
    _, ring, kernel = _folders(tmp_path, "state", "ring", "kernel")
    (ring / "0000000001-a.jsonl").write_text("{}\n")
    (kernel / "trace").write_bytes(b"oldest" + bytes(64 << 20) + b"newest")
    done = _carried_out(tmp_path, "trace", "1min", FASTENOUGH_KERNEL_TRACE=str(kernel))
    path, _, content = done.stdout.partition(": ")
    assert done.returncode == 0 and "the newest 65536 KiB of the kernel trace" in content, done
    text = _unpacked(Path(path))["kernel-trace.txt"]
    assert (len(text), text[-6:]) == (64 << 20, b"newest")


_SYSTEMCTL = """#!/bin/sh
echo "$@" >>{folder}/called
case "$*" in
"--quiet is-active fastenough-{running}.service") exit 0 ;;
"--quiet is-active "*) exit 3 ;;
"restart fastenough-{running}.service") echo '{{"interval_ns":2000000000}}' >{folder}/ring/0000000002-b.jsonl ;;
*) exit 5 ;;
esac
"""


@pytest.mark.parametrize("running", ["probe", "monitor"])
def test_only_services_that_run_are_restarted(tmp_path: Path, running: str) -> None:
    """A board has one of them or both; systemctl fails for one that is not installed."""
    _, _, programs = _folders(tmp_path, "state", "ring", "programs")
    (programs / "systemctl").write_text(_SYSTEMCTL.format(folder=tmp_path, running=running))
    (programs / "systemctl").chmod(0o755)
    done = _carried_out(tmp_path, "interval", "2s", PATH=f"{programs}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, ""), done
    assert (tmp_path / "called").read_text().count("\n") == 3


def test_a_recovery_whose_restart_fails_is_repeated(tmp_path: Path) -> None:
    state, _ = _folders(tmp_path, "state", "ring")
    (state / "interval").write_text("FASTENOUGH_INTERVAL=5s\n")
    (state / "interval.former").write_text("FASTENOUGH_INTERVAL=2s\n")
    failed = _carried_out(tmp_path, "recover", "", FASTENOUGH_RESTART="false")
    assert (failed.returncode, (state / "interval.former").exists()) == (1, True), failed
    done = _carried_out(tmp_path, "recover", "", FASTENOUGH_RESTART="true")
    assert (done.returncode, (state / "interval.former").exists()) == (0, False), done
    assert (state / "interval").read_text() == "FASTENOUGH_INTERVAL=2s\n"


def _with_programs(board: ExecutingBoard, *names: str) -> None:
    """A path with the programs of a small system, and those of a bench if it is named."""
    folder = board.folder / "programs"
    folder.mkdir()
    for name in ("sh", "date", "mkdir", "ls", "sort", "tail", "head", "base64", "seq", "sleep", "rm", "mv", "setsid"):
        (folder / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
    for name in ("ssh-keygen", *names):
        found = (
            ROOT / "bin" / name
            if name == "fastenough"
            else Path(subprocess.check_output(["which", name], text=True).strip())
        )
        (folder / name).symlink_to(found)
    board.environment["PATH"] = str(folder)


def test_a_plan_runs_with_the_fastenough_of_the_board(board: ExecutingBoard) -> None:
    board.environment["PATH"] = f"{ROOT / 'bin'}:{board.environment['PATH']}"
    plan = _PLAN.format(load="none").encode()
    with board.serving(), board.board.running(f"--executor={board.folder}/client"):
        answer = board.board.answer(board.board.signed(order("plan", packed_plan(plan))))
        assert answer is not None and answer.state == "done", answer
        (log,) = (board.state / "plans").glob("*/plan.toml")
        assert log.read_bytes() == plan
        assert eventually((log.parent / "status").exists)
        assert (log.parent / "status").read_text() == "0\n"
        assert [run.probe for run in Store(board.state / "store").runs()] == ["semaphore"]
        answer = board.board.answer(
            board.board.signed(order("plan", packed_plan(_PLAN.format(load="nosuch").encode())))
        )
        assert answer is not None and answer.reason == "failed" and answer.detail.startswith("status 2: ")


def test_a_plan_is_refused_where_fastenough_is_not_installed(board: ExecutingBoard) -> None:
    _with_programs(board)
    with board.recording(), board.serving():
        answer = json.loads(board.call(board.board.signed(order("plan", packed_plan(b"name = 'x'\n")))))
        assert (answer["state"], answer["reason"]) == ("refused", "failed") and "not installed" in answer["detail"]
        assert board.contents() == {}


@pytest.mark.parametrize(
    "value", ["", " ", "60", "0s", "-1s", "1 s", "1s\n2s", "../1s", "1s;reboot", "$(reboot)", "1234567s", "*"]
)
@pytest.mark.parametrize("shell", shells())
@pytest.mark.parametrize("action", ["interval", "trace"])
def test_the_program_of_the_actions_checks_values_again(shell: str, action: str, value: str, tmp_path: Path) -> None:
    state, ring = tmp_path / "state", tmp_path / "ring"
    state.mkdir()
    ring.mkdir()
    variables = {
        **os.environ,
        "FASTENOUGH_STATE": str(state),
        "FASTENOUGH_RING": str(ring),
        "FASTENOUGH_RESTART": "touch began",
    }
    done = subprocess.run(
        [*shell.split(), CARRY_OUT, action, value],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (1, 1, "")
    assert list(state.iterdir()) == [] and not (tmp_path / "began").exists()


def _expose(path: Path, fault: str) -> None:
    """Let others replace a file or a folder."""
    if fault == "owner":
        os.chown(path, 65534, 65534)
    elif fault == "mode":
        path.chmod(0o777)
    else:
        path.rename(path.with_name("real"))
        path.symlink_to(path.with_name("real"))


def _refusal(board: ExecutingBoard, **options: str) -> str:
    """The line with which the service refuses to start."""
    done = subprocess.run(
        board.command(**options), env=board.environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    return done.stderr


@needs_root("it gives files to another user")
@pytest.mark.parametrize("name", ["signers", "actions", "state"])
@pytest.mark.parametrize("fault", ["owner", "mode", "link"])
def test_files_that_others_may_replace_are_refused(board: ExecutingBoard, name: str, fault: str) -> None:
    _expose(board.folder / name, fault)
    assert name in _refusal(board)


@needs_root("it gives files to another user")
@pytest.mark.parametrize("fault", ["owner", "mode", "link"])
def test_folders_on_the_way_that_others_may_replace_are_refused(board: ExecutingBoard, fault: str) -> None:
    """Whoever can rename one of them can put another file in the place of the signers."""
    way = board.folder / "way"
    (way / "own").mkdir(parents=True)
    (way / "own" / "signers").write_bytes((board.folder / "signers").read_bytes())
    _expose(way, fault)
    assert f"--signers: {way} must be a folder" in _refusal(board, signers=str(way / "own" / "signers"))
