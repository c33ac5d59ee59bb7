# SPDX-License-Identifier: GPL-2.0-or-later
"""An ordinary user measures: through sudo, with what is granted, or is told what to grant."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import pytest

from fastenough.cli import cli
from fastenough.files import Untrusted, require_trusted
from fastenough.link.guard import descendants
from fastenough.link.local import LocalLink
from fastenough.recording import Recording, read_recording
from tests.support.huge_pages import HUGE_PAGES, other_value
from tests.support.ordinary_user import User, ordinary_user
from tests.support.privileges import needs_root
from tests.support.processes import ended as dead
from tests.support.processes import eventually, recorded, with_words
from tests.support.terminal import screen

pytestmark = pytest.mark.machines

NOBODY = 65534
RUN = ("run", "timer", "--duration", "1s")


@pytest.fixture(scope="module")
def user(probe_binary: str) -> Iterator[User]:
    with ordinary_user(sudo=False) as made:
        yield made


@pytest.fixture(scope="module")
def sudoer(probe_binary: str) -> Iterator[User]:
    with ordinary_user(sudo=True) as made:
        yield made


def _latest(user: User) -> Recording:
    return read_recording(sorted(user.home.glob("fastenough-data/runs/*/recording.jsonl.zst"))[-1])


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [RUN, ("assess", "--loads", "none", "--duration", "2s")], ids=["run", "assess"])
def test_who_may_nothing_is_told_what_to_grant(user: User, arguments: tuple[str, ...]) -> None:
    runs = set(user.home.glob("fastenough-data/runs/*"))
    ended = user.call(*arguments)
    assert ended.returncode == 2
    said = ended.stderr.splitlines()
    assert f"'{user.name} - rtprio 99' '{user.name} - memlock unlimited'" in said[0]
    assert said[0].endswith("# and log in again")
    assert "/etc/security/limits.d/" in said[0]
    assert said[-1].startswith("fastenough: not granted: ")
    assert "--as-granted" in said[-1]
    assert "--allow-difference" not in ended.stderr
    assert set(user.home.glob("fastenough-data/runs/*")) == runs


def test_what_to_grant_stands_on_lines_of_its_own_on_a_terminal(user: User) -> None:
    asked = [user.python, "-m", "fastenough", "assess", "--loads", "none"]
    on_a_terminal = [user.python, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", *asked]
    ended = subprocess.run(
        [*user.prefix(), *on_a_terminal],
        cwd=user.home,
        env=user.environment() | {"TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    [grant] = [line for line in screen(ended.stdout) if "rtprio 99" in line]
    assert grant.startswith("printf ") and grant.endswith("# and log in again")


def test_the_grants_can_be_pasted(user: User, tmp_path: Path) -> None:
    """The commands run as they are printed, with a sudo that only runs its command and files below a folder here."""
    said = user.call(*RUN).stderr.splitlines()[:-1]
    script = 'sudo() { case $1 in tee) cat >"$D/$(basename $2)";; *) :;; esac; }\n' + "\n".join(said)
    subprocess.run(["sh", "-ec", script], env={**os.environ, "D": str(tmp_path)}, check=True)
    limits = (tmp_path / "fastenough.conf").read_text().splitlines()
    assert limits == [f"{user.name} - rtprio 99", f"{user.name} - memlock unlimited", f"{user.name} - nice -20"]
    if Path("/dev/cpu_dma_latency").exists():
        assert (tmp_path / "70-fastenough.rules").read_text() == (
            f'KERNEL=="cpu_dma_latency", OWNER="{user.name}", MODE="0600"\n'
        )


@pytest.mark.slow
def test_as_granted_is_measured_and_never_passes(user: User) -> None:
    ended = user.call(
        "assess", "--as-granted", "--loads", "none", "--duration", "2s", "--limit", "1h", "--miss-rate", "50%"
    )
    assert ended.returncode == 3, ended.stderr
    assert "INCONCLUSIVE" in ended.stdout
    assert "no conclusion about real-time threads" in ended.stdout
    recording = _latest(user)
    assert recording.outcome == "completed"
    assert "not-real-time" in recording.head.marks
    failing = user.call("report", "--limit", "1ns")
    assert failing.returncode == 3, "what ordinary threads did is no failure of real-time ones either"


def test_nobody_is_asked_to_grant_what_is_not_asked_for(user: User) -> None:
    ended = user.call("run", "timer", "policy=other", "latency=off", "mlockall", "allow-difference", "--duration", "1s")
    assert ended.returncode == 0, ended.stderr


def test_sudo_measures_and_all_files_are_the_users(sudoer: User) -> None:
    ended = sudoer.call("assess", "--loads", "none,cpu", "--duration", "2s")
    assert ended.returncode == 0, ended.stderr
    assert "no limit stated" in ended.stdout
    assert ended.stderr.splitlines()[0] == (
        "not root: the probe and the settings run through sudo; loads run as this user, who owns all files"
    )
    granted = {setting.name: setting.in_effect for setting in _latest(sudoer).head.settings}
    assert granted["policy"] == "fifo"
    assert granted["priority"] == 98
    assert (sudoer.home / "report" / "index.html").is_file()
    assert {path.lstat().st_uid for path in sudoer.home.rglob("*")} == {sudoer.uid}
    assert not Path("/var/lib/fastenough/local.journal").exists() or not with_words(sudoer.name)


def _probing(process: subprocess.Popen[str]) -> list[int]:
    """The tree of a bench that measures: sudo, guard, probe and the bench itself."""
    return [pid for pid in descendants(process.pid) if _says(pid, b"fastenough-probe\0timer")]


def _says(pid: int, words: bytes) -> bool:
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _measuring(sudoer: User, *arguments: str) -> tuple[subprocess.Popen[str], list[int]]:
    before = len(list(sudoer.home.glob("fastenough-data/runs/*")))
    process = sudoer.start("run", *arguments)
    assert eventually(
        lambda: (
            len(list(sudoer.home.glob("fastenough-data/runs/*"))) > before
            and any(map(recorded, sudoer.home.glob("fastenough-data/runs/*/recording.jsonl")))
        ),
        60,
    )
    tree = _probing(process)
    assert len(tree) == 3, "sudo, the guard and the probe"
    return process, tree


def _gone(tree: list[int]) -> bool:
    return not any(_says(pid, b"fastenough-probe") for pid in tree)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_what_root_runs(sudoer: User, number: signal.Signals) -> None:
    process, tree = _measuring(sudoer, "timer", "--duration", "600s")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert _gone(tree)
    assert _latest(sudoer).outcome == "aborted"


@pytest.mark.slow
def test_nothing_of_roots_outlives_a_killed_bench(sudoer: User) -> None:
    process, tree = _measuring(sudoer, "timer", "--duration", "600s")
    process.kill()
    process.communicate(timeout=60)
    assert eventually(lambda: _gone(tree))


@pytest.mark.slow
def test_a_killed_sudo_leaves_nothing(sudoer: User) -> None:
    process, tree = _measuring(sudoer, "timer", "--duration", "600s")
    sudo = next(pid for pid in tree if _says(pid, b"sudo\0-n"))
    os.kill(sudo, signal.SIGKILL)
    assert eventually(lambda: dead(sudo)), "what is asked of the run after that reaches it all the same"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGINT
    assert _gone(tree)


@pytest.mark.slow
def test_a_guard_that_was_stopped_does_not_stop_sudo_for_ever(sudoer: User) -> None:
    process, tree = _measuring(sudoer, "timer", "--duration", "600s")
    guard = next(pid for pid in tree if _says(pid, b"guard.py") and not _says(pid, b"sudo\0-n"))
    os.kill(guard, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    os.kill(guard, signal.SIGCONT)
    process.communicate(timeout=60)
    assert _gone(tree)


@pytest.mark.slow
def test_settings_of_a_killed_bench_are_named_and_put_back(sudoer: User, huge_pages: None) -> None:
    before, requested = HUGE_PAGES.read_text(), other_value()
    plan = sudoer.home / "plan.toml"
    plan.write_text(
        f'name = "x"\nduration = "60s"\n[settings]\ntransparent-huge-pages = "{requested}"\n[[run]]\nprobe = "timer"\n'
    )
    for restoring in (("doctor", "--restore"), RUN):
        process, tree = _measuring(sudoer, "--plan", str(plan))
        assert f"[{requested}]" in HUGE_PAGES.read_text()
        process.kill()
        process.communicate(timeout=60)
        assert eventually(partial(_gone, tree))
        assert f"[{requested}]" in HUGE_PAGES.read_text()
        found = json.loads(sudoer.call("doctor", "--json").stdout)
        left = next(finding for finding in found if finding["subject"] == "settings")
        assert str(HUGE_PAGES) in left["text"]
        assert left["fix"] == "fastenough doctor --restore"
        ended = sudoer.call(*restoring)
        assert ended.returncode == 0, ended.stderr
        assert f"restored settings that a killed fastenough had changed: {HUGE_PAGES}" in (ended.stdout + ended.stderr)
        assert HUGE_PAGES.read_text() == before


def test_root_runs_no_program_that_others_can_change(tmp_path: Path) -> None:
    program = tmp_path / "probe"
    program.write_text("#!/bin/sh\n")
    tmp_path.chmod(0o755)
    require_trusted(str(program))
    tmp_path.chmod(0o777)
    with pytest.raises(Untrusted, match="can be changed by other users"):
        require_trusted(str(program))


@needs_root("it gives files away")
def test_root_runs_no_program_of_another_user(tmp_path: Path) -> None:
    program = tmp_path / "probe"
    program.write_text("#!/bin/sh\n")
    tmp_path.chmod(0o755)
    require_trusted(str(program))
    os.chown(program, 12345, 12345)
    with pytest.raises(Untrusted):
        require_trusted(str(program))


def _leaf(words: list[str]) -> click.Context:
    """Parses a command line to its end; raises click's complaint."""
    context = cli.make_context("fastenough", words)
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None and name is not None
        context = command.make_context(name, rest, parent=context)
    return context


@pytest.mark.slow
def test_what_doctor_suggests_can_be_typed(user: User) -> None:
    ended = user.call("doctor", "--json")
    assert ended.returncode == 5, "an ordinary user gets no real-time priority"
    findings = json.loads(ended.stdout)
    suggested = [
        line
        for finding in findings
        for text in (finding["text"], finding["fix"] or "")
        for line in re.findall(r"(?<!killed )fastenough ([a-z][^()\n]*)", text)
    ]
    assert len(suggested) >= 3
    for line in suggested:
        _leaf(line.split())


@pytest.mark.slow
def test_doctor_says_of_an_ordinary_user_what_is_so(user: User) -> None:
    findings = {finding["subject"]: finding for finding in json.loads(user.call("doctor", "--json").stdout)}
    if Path("/dev/cpu_dma_latency").exists():
        assert findings["idle states"]["state"] == "limited"
        assert "is not writable" in findings["idle states"]["text"]
    assert "rtprio" in findings["real-time priority"]["fix"]
    told = user.call("doctor").stdout.splitlines()
    assert max(len(line) for line in told if user.name not in line) <= 100
    assert any(f"'{user.name} - rtprio 99'" in line for line in told), "to be pasted, unfolded"


@pytest.mark.slow
def test_without_sudo_nothing_is_said_of_what_root_may_run(user: User, sudoer: User, tmp_path: Path) -> None:
    """A Python of a third person's: who may not use sudo is told what to grant, who may, why it is not used."""
    for who, told in ((user, "rtprio 99"), (sudoer, "can be changed by other users, so ")):
        python = who.home / "theirs"
        python.write_text(
            f'#!/bin/sh\n[ "$1" = -I ] && exec {who.python} "$@"\n'
            f"exec {who.python} -c \"import sys; sys.executable='$0'; import runpy; "
            "runpy.run_module('fastenough', run_name='__main__')\" \"$@\"\n"
        )
        python.chmod(0o755)
        os.chown(python, NOBODY, NOBODY)
        theirs = replace(who, python=str(python))
        asked = subprocess.run(
            [*theirs.prefix(), theirs.python, "doctor"],
            cwd=who.home,
            env=theirs.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert asked.returncode == 5, asked.stderr
        said = " ".join(asked.stdout.split())
        assert told in said
        assert ("is not used as root" in said) == (who is sudoer)


def test_a_server_outside_the_path_of_users_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """sshd lies in /usr/sbin, which Debian leaves out of the PATH of ordinary users."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    for server in ("sshd", "chroot"):
        assert LocalLink().which(server) == shutil.which(server, path="/usr/sbin")
