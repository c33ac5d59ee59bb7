# SPDX-License-Identifier: GPL-2.0-or-later
"""A board behind a real SSH server: it needs nothing of ours, nothing is left on it, its loss is noticed in time."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fastenough.board import open_board
from fastenough.board.files import FILES_SETTING, file_for
from fastenough.link import BoardGone, Completed, Stalled, find_probe
from fastenough.link.agent import Pace
from fastenough.link.ssh import CONFIG_SETTING, OWN_FILE, SshLink, open_ssh, parse_address
from fastenough.link.ssh_upload import AgentUpload
from fastenough.model import BadInput, NotApplicable
from tests.support.namespaces import network
from tests.support.ordinary_user import ordinary_user
from tests.support.privileges import own_mounts
from tests.support.processes import eventually, start_bench
from tests.support.ssh_boards import Server, ssh_server
from tests.support.tools import require

pytestmark = pytest.mark.machines

_QUICK = Pace(ping_s=0.3, silence_s=4.0, patience_s=4.0)
_NAME = re.compile("fastenough-[0-9a-f]{12}")
_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run")


@contextmanager
def _link(server: Server, pace: Pace = _QUICK) -> Iterator[SshLink]:
    with pytest.MonkeyPatch.context() as patch, closing(_opened(server, patch, pace)) as link:
        yield link


def _opened(server: Server, patch: pytest.MonkeyPatch, pace: Pace = _QUICK) -> SshLink:
    patch.setenv(CONFIG_SETTING, str(server.config))
    return open_ssh(parse_address("board"), file_for, pace)


def _directories() -> set[Path]:
    """Of the kind that is made on a board, wherever one may be.  Tests that run meanwhile make such directories too."""
    return {path for place in _PLACES for path in Path(place).glob("fastenough-*") if _NAME.fullmatch(path.name)}


def _of_agent(link: SshLink) -> Path:
    """The directory in which the agent was copied to the board: the last word of its command."""
    path = Path(os.fsdecode(Path(f"/proc/{link.agent_pid}/cmdline").read_bytes().split(b"\0")[-2]))
    assert _NAME.fullmatch(path.name)
    return path


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """All directories made during the test are gone two minutes later, also those of tests that run beside it."""
    before = _directories()
    yield
    made = _directories() - before
    assert eventually(lambda: made.isdisjoint(_directories()), 120), made & _directories()


@pytest.mark.parametrize(
    "name",
    [
        "ssh://",
        "ssh://-oProxyCommand=touch",
        "ssh://a b",
        "ssh://a\nb",
        "ssh://user@-x",
        "ssh://-l@host",
        "ssh://host:0",
        "ssh://host:65536",
        "ssh://host:22:22",
        "ssh://a@b@c",
        "ssh://host/path",
        "ssh://$(id)",
        "ssh://ho\x1b[31mst",
        "ssh://" + "x" * 300,
        "ssh://user name@host",
        "ssh://[::1",
        "ssh://ho'st",
        "ssh://höst",
    ],
)
def test_names_that_are_no_addresses_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(BadInput, match="is not a board address") as refusal:
        open_board(name)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("name", ["host", "user@host", "user@host:22", "10.0.0.1:2222", "[::1]:22", "a@[fe80::1%eth0]"])
def test_addresses_are_taken_apart_and_put_together(name: str) -> None:
    assert str(parse_address(name)) == name
    assert parse_address(name).arguments()[-2] == "--"


def test_a_board_behind_ssh_is_a_board_like_any_other(server: Server) -> None:
    with _link(server) as link:
        assert link.run(["sh", "-c", "cat; echo bad >&2; exit 3"], input=b"in" * 300_000).stdout == b"in" * 300_000
        assert link.read("/proc/self/comm") == b"cat\n"
        with pytest.raises(FileNotFoundError):
            link.read("/no/such/file")
        assert link.run([find_probe(link), "--version"]).text.startswith("fastenough-probe ")
        assert link.raised is link
        assert not _of_agent(link).exists()
        assert link.start(["sleep", "600"], scratch=link.scratch_name()).running
    assert eventually(lambda: not server.processes())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill-bench", "kill-ssh", "kill-agent", "stop-ssh", "stop-agent", "kill-session"])
def test_whatever_dies_the_board_is_left_clean_and_the_bench_is_told(server: Server, how: str) -> None:
    if how == "kill-bench":
        return _kill_bench(server)
    with _link(server) as link:
        process = link.start(
            ["sh", "-c", "(setsid sh -c '(sleep 600 &); sleep 600' &); echo there; exec sleep 600"],
            scratch=link.scratch_name(),
        )
        assert next(process.lines(10)) == b"there\n"
        number = signal.SIGSTOP if how.startswith("stop") else signal.SIGKILL
        os.kill(_victim(how, server, link), number)
        with pytest.raises(BoardGone, match=r"ssh://board is gone: \S+"):  # not Stalled
            process.wait(30)
        with pytest.raises(BoardGone):
            link.run(["true"])
        if how == "stop-agent":
            os.kill(link.agent_pid, signal.SIGCONT)
        assert eventually(lambda: not server.processes()), server.processes()
    return None


def _victim(how: str, server: Server, link: SshLink) -> int:
    if how.endswith("agent"):
        return link.agent_pid
    if how.endswith("ssh"):
        return _child(os.getpid(), b"ssh")
    return _child(server.pid, b"sshd")


def _child(parent: int, name: bytes) -> int:
    """The one child of that name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with_parent = path.read_bytes().rpartition(b") ") if path.exists() else (b"", b"", b"")
        if with_parent[2].split()[1:2] == [str(parent).encode()] and with_parent[0].endswith(b"(" + name):
            found.append(int(path.parent.name))
    assert len(found) == 1
    return found[0]


def _kill_bench(server: Server) -> None:
    script = (
        "import time; from fastenough.board.files import file_for; from fastenough.link.ssh import *; "
        "link = open_ssh(parse_address('board'), file_for); "
        "link.start(['sleep', '600'], scratch=link.scratch_name()); print('there', flush=True); time.sleep(600)"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONFIG_SETTING, str(server.config))
        bench = start_bench(script)
    assert bench.stdout is not None
    assert bench.stdout.readline() == "there\n"
    assert server.processes()
    bench.kill()
    bench.wait()
    assert eventually(lambda: not server.processes())


def _in_mounts(*mounts: str) -> list[str]:
    """Put before a server: it and its sessions see other file systems than we do."""
    script = " && ".join([*mounts, 'exec "$@"'])
    return [*own_mounts(), "sh", "-c", script, "sh"]


def _tmpfs(options: str, *places: str) -> list[str]:
    return [f"mount -t tmpfs -o {options} none {place}" for place in places]


@pytest.mark.parametrize("options", ["noexec", "size=64k", "ro"])
def test_the_file_goes_where_it_can_be_started(options: str) -> None:
    """The first directory will not do, the second does; nothing stays in either."""
    with (
        ssh_server(
            prefix=_in_mounts(
                *_tmpfs(options, "/var/tmp"), *_tmpfs("size=20m", "/dev/shm"), "mount --bind /var/tmp /tmp"
            )
        ) as other,
        _link(other) as link,
    ):
        assert link.run([OWN_FILE, "--version"]).status == 0
        assert "/dev/shm/" in link.run(["readlink", f"/proc/{link.agent_pid}/exe"]).text
        assert link.run(["sh", "-c", "ls -A /tmp /dev/shm | grep fastenough-.............$"]).stdout == b""


def test_a_board_without_any_place_for_the_file_says_so() -> None:
    with ssh_server(
        prefix=_in_mounts(
            *_tmpfs("noexec", "/var/tmp", "/dev/shm", "/run"),
            "mkdir -m 755 -p /run/sshd",
            "mount --bind /var/lib /var/lib",
            "mount -o remount,bind,noexec /var/lib",
            "mount --bind /var/tmp /tmp",
        )
    ) as other:
        with (
            pytest.raises(NotApplicable, match=r"no directory from which the probe can be started: /tmp: .*Permission"),
            _link(other),
        ):
            pass
        assert eventually(lambda: not other.processes())


def test_the_script_passes_through_any_login_shell() -> None:
    command = AgentUpload(file_for).command
    assert (command.count("'"), command[-1]) == (2, "'")
    assert not set("!\n\\`") & set(command)
    assert len(command) < 2000


@pytest.mark.parametrize("ending", ["end", "term"])
def test_a_copy_that_is_cut_off_leaves_nothing(ending: str) -> None:
    opening = AgentUpload(file_for)
    shell = subprocess.Popen(["sh", "-c", opening.command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert shell.stdin is not None and shell.stdout is not None
    assert b" board " in shell.stdout.readline()
    shell.stdin.write(b"1000000\n")
    shell.stdin.flush()
    assert shell.stdout.readline().endswith(b" copy\n")
    (made,) = (path for path in _directories() if path.name in opening.command)
    assert made.stat().st_mode & 0o777 == 0o700
    shell.stdin.write(b"x" * 1000)
    shell.stdin.flush()
    if ending == "term":
        shell.terminate()
    shell.stdout.close()
    shell.stdin.close()
    shell.wait(30)
    assert eventually(lambda: not made.exists())


def test_what_a_login_script_says_is_passed_over(tmp_path: Path) -> None:
    """A shell that talks before it does what it was told."""
    shell = tmp_path / "rc"
    shell.write_text("echo Welcome; echo 'fastenough-key ready'; head -c 3000 /dev/urandom; echo\n")
    with ssh_server() as other:
        with (other.place / "sshd").open("a") as config:
            config.write(f'ForceCommand . {shell}; eval "$SSH_ORIGINAL_COMMAND"\n')
        os.kill(other.pid, signal.SIGHUP)
        time.sleep(0.5)
        with _link(other) as link:
            assert link.run(["echo", "here"]).stdout == b"here\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exec yes >&2", "it wrote more than 8 MB of messages"),
        ("while :; do printf x; sleep 0.1; done", "it has not answered within"),
    ],
)
def test_a_hostile_server_is_given_up_while_it_is_opened(
    command: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastenough.link.ssh_upload._TALK_S", 3.0)
    with ssh_server() as other:
        with (other.place / "sshd").open("a") as config:
            config.write(f"ForceCommand {command}\n")
        os.kill(other.pid, signal.SIGHUP)
        time.sleep(0.5)
        begun_s = time.monotonic()
        with pytest.raises(BoardGone, match=said), _link(other):
            pass
        assert time.monotonic() - begun_s < 30


def _new_key(place: Path, name: str) -> None:
    (place / name).unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], input=b"y\n", check=True)


def _other_host_key(place: Path) -> None:
    _new_key(place, "other")
    known = (place / "known").read_text().split()
    (place / "known").write_text(" ".join([*known[:2], (place / "other.pub").read_text().split()[1]]) + "\n")


def _other_port(place: Path) -> None:
    text = (place / "config").read_text()
    (place / "config").write_text(
        "".join("  Port 1\n" if "Port" in line else line for line in text.splitlines(keepends=True))
    )


@pytest.mark.parametrize(
    ("break_it", "kind", "said"),
    [
        (
            lambda place: (place / "known").write_text(""),
            BadInput,
            "unknown host key; connect once manually and verify it: ssh board",
        ),
        (
            lambda place: _new_key(place, "user"),
            BadInput,
            "no usable SSH key; install yours",
        ),
        (_other_host_key, BadInput, "its host key has changed"),
        (_other_port, BoardGone, "cannot be reached: .*Connection refused"),
    ],
    ids=range(4),
)
def test_what_a_person_must_do_is_said(break_it: Callable[[Path], object], kind: type[Exception], said: str) -> None:
    with ssh_server() as other:
        break_it(other.place)
        with pytest.raises(kind, match=said), _link(other):
            pass


def test_a_server_that_says_nothing_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.link.ssh_upload._OPENING_S", 2.0)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        with pytest.raises(BoardGone, match="cannot be reached: it has not answered within 2 s"), _link(server):
            pass
        assert time.monotonic() - begin < 60
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_a_file_for_another_machine_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = os.uname().machine
    wrong = bytearray(Path(find_probe()).read_bytes())
    wrong[18] ^= 1
    for content in (bytes(wrong), b"", b"#!/bin/sh\n"):
        (tmp_path / f"fastenough-probe-{machine}").write_bytes(content)
        monkeypatch.setenv(FILES_SETTING, str(tmp_path))
        with pytest.raises(NotApplicable, match=f"is not a program for machine type {machine}"):
            file_for(machine)
    with pytest.raises(NotApplicable, match="no probe is available for machine type 'vax'"):
        file_for("vax")


@pytest.mark.slow
def test_a_link_that_goes_down_is_noticed_on_both_sides() -> None:
    require("ip")
    with network(77) as net, ssh_server(address=net.address, prefix=net.prefix) as other, _link(other) as link:
        process = link.start(["sh", "-c", "while echo more; do sleep 0.1; done"], scratch=link.scratch_name())
        assert next(process.lines(10)) == b"more\n"
        agent = link.agent_pid
        net.cut()
        with pytest.raises(BoardGone, match="no data for 4 s"):  # not Stalled
            process.wait(40)
        assert eventually(lambda: not Path(f"/proc/{agent}").exists())
        assert eventually(lambda: not other.processes())


def test_our_file_is_not_sent_to_a_board_that_has_it(tmp_path: Path) -> None:
    """A farm comes every five minutes.  Another file of that name, as of another version, is not used."""
    installed, sent = tmp_path / "fastenough-probe", {}
    shutil.copy(find_probe(), installed)
    path = f"{tmp_path}:/usr/bin:/bin"
    with network(76) as net, ssh_server(address=net.address, prefix=net.prefix, path=path) as other:
        for what, then in (
            ("the same", lambda: installed.write_bytes(installed.read_bytes() + b"x")),
            ("another", installed.unlink),
            ("none", lambda: None),
        ):
            before = net.sent_bytes()
            with _link(other) as link:
                assert link.run(["echo", what], 20).stdout.decode() == f"{what}\n"
            sent[what] = net.sent_bytes() - before
            then()
    size = Path(find_probe()).stat().st_size
    assert sent["the same"] < size / 10, sent
    assert min(sent["another"], sent["none"]) > size, sent


@pytest.mark.slow
@pytest.mark.parametrize("sudo", [False, True])
def test_an_ordinary_user_is_raised_where_sudo_asks_no_question(sudo: bool) -> None:
    with ordinary_user(sudo=sudo) as user, ssh_server(user=user.name, prefix=user.prefix()) as other:
        with _link(other) as link:
            assert link.user == user.uid
            assert link.run(["id", "-u"]).text == f"{user.uid}\n"
            assert (link.raised is link) is not sudo
            assert link.raised.run(["id", "-u"]).text == ("0\n" if sudo else f"{user.uid}\n")
            assert link.raised.run([find_probe(link), "--version"]).status == 0
            assert link.which("sshd") == "/usr/sbin/sshd"
            process = link.raised.start(["sleep", "600"])
            assert process.running
        assert eventually(lambda: not other.processes()), other.processes()


class _LinkWithSudo(SshLink):
    """A link to a board whose sudo has not answered within the time limit."""

    def __init__(self) -> None:
        self._raised = None
        self.user, self.agent_pid = 1000, 1

    def which(self, tool: str) -> str | None:
        return f"/usr/bin/{tool}"

    def run(self, argv: Sequence[str], timeout_s: float | None = None, input: bytes = b"") -> Completed:
        raise Stalled("sudo has not finished")


def test_a_sudo_that_does_not_answer_is_no_reason_to_measure_without_privileges() -> None:
    with pytest.raises(Stalled):
        _ = _LinkWithSudo().raised
