# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent on its own: nothing that it started outlives its transport, and bytes that are no frames end it."""

from __future__ import annotations

import os
import random
import resource
import secrets
import signal
import struct
import subprocess
import sys
import time
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path

import pytest

from fastenough.link import BoardGone, Link, LocalLink, Stalled, find_probe
from fastenough.link.agent import FRAME, FRAME_MOST, GREETING, NONCE_SIZE, NUMBER, VERSION, AgentProcess, FrameKind
from fastenough.link.base import Flood
from fastenough.model import FastenoughError
from tests.support.agents import QUICK, agent, link_to
from tests.support.processes import eventually, living_with, with_words
from tests.support.tools import program

pytestmark = pytest.mark.untimed

_ESCAPING = "(setsid sh -c '(sleep {0} &) ; sleep {0}' &); sleep 0.3; echo there; exec sleep {0}"


def _frame(number: int, kind: int, content: bytes = b"") -> bytes:
    return FRAME.pack(number, kind, len(content)) + content


def _start(*words: str, scratch: str = "", limit_ms: int = 0) -> bytes:
    return NUMBER.pack(limit_ms) + b"".join(word.encode() + b"\0" for word in (scratch, *words))


def _seconds() -> str:
    """A duration of a sleep that no other process has."""
    return f"9{secrets.randbelow(10**6):06}"


def _scratch() -> Path:
    return Path(f"/var/tmp/fastenough-{secrets.token_hex(6)}")


def _answer(*frames: bytes) -> tuple[int, bytes]:
    """How the agent ends that hears these bytes, and what it said."""
    done = subprocess.run(
        [find_probe(), "agent", "stdio"], input=b"".join(frames), capture_output=True, check=False, timeout=60
    )
    return done.returncode, done.stdout


def test_commands_say_what_they_say() -> None:
    with agent() as link:
        assert link.run(["sh", "-c", "cat; echo bad >&2; exit 3"], input=b"in" * 100_000).stdout == b"in" * 100_000
        done = link.run(["sh", "-c", "echo bad >&2; kill -9 $$"])
        assert (done.status, done.stderr) == (137, b"bad\n")
        with pytest.raises(FileNotFoundError):
            link.run(["no-such-command"])
        with pytest.raises(FileNotFoundError):
            link.start(["no-such-command"])
        assert link.which("sh") == "/usr/bin/sh"
        for own in ("fastenough-probe", f"/proc/{link.agent_pid}/exe"):
            assert link.run([own, "--version"]).text.startswith("fastenough-probe ")


def test_a_greeting_that_is_lost_is_repeated() -> None:
    """A guest's port loses what arrives before the agent has opened it again."""
    greeting = FRAME.size + NUMBER.size + NONCE_SIZE
    lossy = f"dd bs={greeting} count=1 status=none of=/dev/null; exec {find_probe()} agent stdio"
    with closing(link_to("sh", "-c", lossy)) as link:
        assert link.run(["echo", "there"]).stdout == b"there\n"


def test_answers_to_a_repeated_greeting_are_ignored() -> None:
    late = f"sleep 1.2; exec {find_probe()} agent stdio"
    with closing(link_to("sh", "-c", late)) as link:
        assert [link.run(["echo", str(number)]).text for number in range(3)] == ["0\n", "1\n", "2\n"]


def test_a_hundred_megabytes_arrive_whole() -> None:
    with agent(QUICK) as link:
        begin = time.monotonic()
        words = "head -c 100000000 /dev/zero | tr '\\000' 'x' | fold -b -w 20000000; echo end"
        process = link.start(["sh", "-c", words])
        lines = list(process.lines(30))
        assert [len(line) for line in lines] == [20_000_001] * 4 + [20_000_004]
        assert process.wait(60) == 0
        assert time.monotonic() - begin < 60


def _links() -> list[AbstractContextManager[Link]]:
    return [nullcontext(LocalLink()), agent(QUICK)]


@pytest.mark.parametrize("number", [0, 1], ids=["local", "agent"])
def test_output_without_an_end_is_bounded(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its size, however quickly it comes; another machine whose output does not end is not asked again."""
    for module in ("local", "agent"):
        for name in ("MOST_OUTPUT", "MOST_LINE"):
            monkeypatch.setattr(f"fastenough.link.{module}.{name}", 4 << 20, raising=False)
    endless = "exec tr '\\000' x </dev/zero"
    with _links()[number] as link:
        process = link.start(["sh", "-c", endless])
        with pytest.raises(Flood):
            next(process.lines(30))
        process.stop()
        begun_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises((Flood, BoardGone)[number]) as told:
            link.run(["sh", "-c", endless], timeout_s=60)
        assert "\n" not in str(told.value)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun_kib < 300 << 10
        if number:
            with pytest.raises(BoardGone):
                link.run(["true"])


@pytest.mark.parametrize("number", [0, 1], ids=["local", "agent"])
def test_a_byte_now_and_then_holds_nobody(number: int) -> None:
    dribble = "while :; do printf x; sleep 0.2; done"
    with _links()[number] as link:
        begun_s = time.monotonic()
        with pytest.raises(Stalled):
            link.run(["sh", "-c", dribble], timeout_s=1.0)
        process = link.start(["sh", "-c", dribble])
        with pytest.raises(Stalled):
            next(process.lines(1.0))
        process.stop()
        assert time.monotonic() - begun_s < 30


def test_frames_of_a_byte_take_no_more_memory_than_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.link.agent._UNREAD_MOST", 1 << 20)

    class Nowhere:
        gone = ""

        def send(self, number: int, kind: int, content: bytes = b"") -> None:
            pass

    process, frames = AgentProcess(Nowhere(), 1, "hostile"), 0
    while not process._overrun and frames < 1 << 14:
        process.take(FrameKind.OUTPUT, b"x")
        frames += 1
    assert frames < 1 << 14


@pytest.mark.parametrize("ending", ["close", "kill", "limit", "stop", "command"])
def test_nothing_of_a_tree_stays(ending: str) -> None:
    seconds, scratch = _seconds(), _scratch()
    script = _ESCAPING.format(seconds)
    if ending == "command":
        script = script.replace("exec sleep", "true")
    with agent() as link:
        process = link.start(["sh", "-c", script], scratch=str(scratch), limit_s=1.0 if ending == "limit" else 0.0)
        assert next(process.lines(60)) == b"there\n"
        if ending == "close":
            link.close()
        elif ending == "kill":
            os.kill(link.agent_pid, signal.SIGKILL)
        elif ending == "stop":
            assert process.stop() == 128 + signal.SIGTERM
        if ending in {"limit", "stop", "command"}:
            assert process.wait(60) == (0 if ending == "command" else 128 + signal.SIGTERM)
            assert with_words("sleep", seconds) == []
            assert not scratch.exists()
        assert eventually(lambda: not with_words("sleep", seconds))
        assert eventually(lambda: not scratch.exists())


@pytest.mark.parametrize("days", [1, 49, 50, 4000])
def test_a_command_may_have_any_time_limit(days: int) -> None:
    with agent() as link:
        assert link.start(["sh", "-c", "exit 3"], limit_s=days * 86400.0).wait(60) == 3


def test_a_guard_that_is_killed_takes_its_tree_along() -> None:
    seconds, other, scratch = _seconds(), _seconds(), _scratch()
    with agent() as link:
        spared = link.start(["sh", "-c", f"echo there; exec sleep {other}"])
        process = link.start(["sh", "-c", _ESCAPING.format(seconds)], scratch=str(scratch))
        assert (next(spared.lines(60)), next(process.lines(60))) == (b"there\n", b"there\n")
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(60) == 128 + signal.SIGKILL
        assert with_words("sleep", seconds) == []
        assert not scratch.exists()
        assert len(with_words("sleep", other)) == 1


def test_directories_of_agents_that_were_killed_are_removed() -> None:
    old, held, fresh = _scratch(), _scratch(), _scratch()
    foreign = Path(f"/var/tmp/fastenough-{secrets.token_hex(5)}xy")
    for folder in (old, fresh, foreign):
        folder.mkdir()
        (folder / "file").touch()
    with agent() as link:
        process = link.start(["sh", "-c", "echo there; exec sleep 60"], scratch=str(held))
        assert next(process.lines(60)) == b"there\n"
        for folder in (old, held, foreign):
            os.utime(folder, (0, 0))
        with agent() as second:
            assert second.run(["true"]).status == 0
            assert [folder.exists() for folder in (old, held, fresh, foreign)] == [False, True, True, True]
    for folder in (fresh, foreign):
        (folder / "file").unlink()
        folder.rmdir()


def test_a_missing_file_is_missing_in_any_language(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """LANGUAGE selects a translation in each locale but C."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("LANGUAGE", "pl:gl:fi:de:fr")
    with agent() as link, pytest.raises(FileNotFoundError):
        link.read(str(tmp_path / "missing"))


def test_its_own_file_is_gone_at_once(tmp_path: Path) -> None:
    place = tmp_path / f"fastenough-{secrets.token_hex(6)}"
    place.mkdir()
    file = place / "fastenough-probe"
    file.write_bytes(Path(find_probe()).read_bytes())
    file.chmod(0o700)
    link = link_to(str(file), "agent", "stdio", str(place))
    try:
        assert not place.exists()
        assert link.run([f"/proc/{link.agent_pid}/exe", "spin", "--help"]).status == 0
    finally:
        link.close()


def test_an_agent_that_hears_nothing_ends_everything() -> None:
    seconds = _seconds()
    with agent(QUICK) as link:
        process = link.start(["sh", "-c", _ESCAPING.format(seconds)])
        assert next(process.lines(60)) == b"there\n"
        pid = link.agent_pid
        time.sleep(2 * QUICK.patience_s)
        assert link.run(["true"]).status == 0, "a link at work is not silent"
        link._closing.set()  # the bench hangs, its end of the transport stays open
        assert eventually(lambda: not with_words("sleep", seconds))
        assert eventually(lambda: b"agent" not in _command_line(pid))


def _command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_a_bench_that_hears_nothing_gives_up() -> None:
    with agent(QUICK) as link:
        process = link.start(["sleep", "60"])
        os.kill(link.agent_pid, signal.SIGSTOP)
        with pytest.raises(BoardGone, match="no data for 3 s"):  # not Stalled
            process.wait(30)
        with pytest.raises(BoardGone):
            link.run(["true"])


def test_what_no_agent_answers_stalls() -> None:
    with pytest.raises(Stalled, match=r"has not answered within 0\.5 s"):
        link_to("sleep", "60", timeout_s=0.5)
    with pytest.raises(BoardGone, match="the agent has ended"):
        link_to("true", timeout_s=10)


def test_a_link_says_how_long_a_command_may_be_silent() -> None:
    with closing(link_to(find_probe(), "agent", "stdio", command_s=0.3)) as link:
        with pytest.raises(Stalled, match=r"sleep: no output for 0\.3 s"):
            link.run(["sleep", "60"])
        assert link.run(["sleep", "0.5"], 30.0).status == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (_frame(1, 77), "unknown kind"),
        (_frame(1, FrameKind.EXITED, b"0000"), "unknown kind"),
        (FRAME.pack(1, FrameKind.INPUT, FRAME_MOST + 1), "too long"),
        (_frame(0, FrameKind.START, _start("true")), "no number"),
        (_frame(1, FrameKind.START, b""), "not terminated"),
        (_frame(1, FrameKind.START, NUMBER.pack(0) + b"\0true"), "not terminated"),
        (_frame(1, FrameKind.START, _start()), "no arguments"),
        (_frame(1, FrameKind.START, _start("")), "no arguments"),
        (_frame(1, FrameKind.START, _start(*["a"] * 1025)), "too many arguments"),
        (_frame(1, FrameKind.START, _start("true", scratch="/etc")), "invalid name"),
        (_frame(1, FrameKind.START, _start("true", scratch="/tmp/../fastenough-0123456789ab")), "invalid name"),
        (_frame(1, FrameKind.START, _start("true", scratch="tmp/fastenough-0123456789ab")), "invalid name"),
        (_frame(1, FrameKind.START, _start("sleep", "60")) * 2, "already started"),
        (_frame(1, FrameKind.START, _start("sleep", "60")) + _frame(1, FrameKind.INPUT, b"x"), "already started"),
        (_frame(1, FrameKind.SIGNAL, NUMBER.pack(65)), "no such signal"),
        (_frame(1, FrameKind.SIGNAL, b"\1"), "no such signal"),
        (_frame(0, FrameKind.RESET, b"short"), "wrong length"),
    ],
    ids=range(17),
)
def test_bad_frames_are_refused_with_the_reason(frame: bytes, why: str) -> None:
    status, said = _answer(frame)
    assert status == 0
    assert why in said.decode(errors="replace")
    assert FRAME.pack(0, FrameKind.REFUSED, len(_refusal(said))) in said


def _refusal(said: bytes) -> bytes:
    """The text of the last frame."""
    while said:
        length = FRAME.unpack(said[: FRAME.size])[2]
        text, said = said[FRAME.size : FRAME.size + length], said[FRAME.size + length :]
    return text


def test_more_commands_than_there_is_room_for_are_refused_alone() -> None:
    with agent() as link:
        running = [link.start(["sleep", "60"]) for _ in range(63)]
        last = link.start(["sleep", "60"])
        refused = link._launch(["true"], b"", "", 0.0)
        assert refused.wait(60) == 126
        assert refused.stderr() == b"too many commands at once\n"
        assert last.stop() == 128 + signal.SIGTERM
        assert link.run(["true"]).status == 0
        assert all(process.running for process in running)


def test_input_for_a_command_that_never_starts_is_let_go() -> None:
    """An agent at a device serves one bench after the other, for months."""
    reset = _frame(0, FrameKind.RESET, NUMBER.pack(0) + bytes(16))
    inputs = b"".join(_frame(number, FrameKind.INPUT, b"x") for number in range(1, 4))
    held = []
    with subprocess.Popen([find_probe(), "agent", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            process.stdin.write(inputs + reset)
            process.stdin.flush()
            assert process.stdout.read(FRAME.size) == FRAME.pack(0, FrameKind.RESET, 28)
            process.stdout.read(28)
            held.append(len(list(Path(f"/proc/{process.pid}/fd").iterdir())))
        process.stdin.close()
    assert held[0] == held[-1]


def _mutated(dice: random.Random) -> bytes:
    """Frames that are right, then some bytes of them that are not."""
    whole = [_frame(0, FrameKind.RESET, struct.pack("<I", 500) + bytes(16)), _frame(0, FrameKind.PING, b"ping")]
    for number in range(1, dice.randint(2, 5)):
        whole += [
            _frame(number, FrameKind.INPUT, dice.randbytes(dice.randint(0, 300))),
            _frame(number, FrameKind.START, _start("cat", limit_ms=dice.choice([0, 5]))),
            _frame(number, FrameKind.SIGNAL, NUMBER.pack(dice.randint(1, 15))),
            _frame(number, FrameKind.KILL),
        ]
    dice.shuffle(whole)
    text = bytearray(b"".join(whole))
    for _ in range(dice.randint(0, 4)):
        text[dice.randrange(len(text))] = dice.choice([0, 1, 127, 255, dice.randrange(256)])
    return bytes(text[: dice.randint(1, len(text))])


@pytest.mark.slow
def test_mutated_frames_neither_break_it_nor_leave_anything(build_directory: Path, tmp_path: Path) -> None:
    sanitized = program(build_directory, "target/agent/sanitized-agent")
    dice = random.Random(20261122)
    for _ in range(150):
        text = _mutated(dice)
        done = subprocess.run(
            [sanitized, "stdio"],
            input=text,
            capture_output=True,
            check=False,
            timeout=60,
            cwd="/",
            env={**os.environ, "TMARK": str(tmp_path)},
        )
        assert (done.returncode, done.stderr) == (0, b""), text.hex()
    assert living_with(str(tmp_path)) == []


def test_what_is_no_way_to_start_it_is_said() -> None:
    for words in ([], ["nothing"], ["stdio", "a", "b"], ["device"]):
        done = subprocess.run([find_probe(), "agent", *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1


def test_output_that_nobody_reads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.link.agent._UNREAD_MOST", 1 << 20)
    with agent() as link:
        process = link.start(["yes"])
        assert process.wait(20) == 128 + signal.SIGKILL
        with pytest.raises(FastenoughError, match="more than 1 MB of its output were not read"):
            list(process.lines(5))
        assert link.run(["true"]).status == 0


_DEAF = f"""
import os, sys, time
nonce = os.read(0, 4096)[{FRAME.size + NUMBER.size}:][:{NONCE_SIZE}]
sys.stdout.buffer.write({_frame(0, FrameKind.RESET)[: FRAME.size - NUMBER.size]!r}
                        + {NUMBER.pack(NONCE_SIZE + GREETING.size)!r} + nonce + {GREETING.pack(VERSION, 1, 0)!r})
while True:
    sys.stdout.buffer.write({_frame(0, FrameKind.PING)!r})
    sys.stdout.flush()
    time.sleep(0.05)
    os.read(0, 16) if {{reads}} else None
"""
"""A board that greets, says that it is there, and reads nothing, or little, of what it is sent."""


@pytest.mark.parametrize("reads", [False, True])
def test_a_board_that_does_not_listen_holds_nobody(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.link.agent._SEND_S", 1.0)
    with closing(link_to(sys.executable, "-c", _DEAF.format(reads=reads), pace=QUICK)) as link:
        begun_s = time.monotonic()
        with pytest.raises(BoardGone, match="was not accepted"):
            link.run(["cat"], input=b"x" * 1_000_000)
        assert time.monotonic() - begun_s < 30
        with pytest.raises(BoardGone):
            link.run(["true"])
