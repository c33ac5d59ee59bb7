# SPDX-License-Identifier: GPL-2.0-or-later
"""A board behind OpenSSH's client: our one file is copied there, started as the agent, and gone at once.

The file is removed as soon as the agent runs; the probe is started from the agent's own process (/proc/PID/exe).
Needed there: a shell, uname, id, head, cat, wc, chmod, mkdir, rm, rmdir (busybox will do), and /proc.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from fastenough.link.agent import AgentLink, Pace, Stream
from fastenough.link.base import BoardGone, Link, Stalled
from fastenough.link.ssh_upload import AgentUpload
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.words import LINE_CHARS, said_lines

CONFIG_SETTING = "FASTENOUGH_SSH_CONFIG"
"""Environment variable that names another file than ~/.ssh/config."""
OWN_FILE = "fastenough-probe"
"""The command that the agent on the board takes for its own file."""
PACE = Pace(ping_s=5.0, silence_s=20.0, patience_s=30.0)
_ADDRESS = re.compile(
    r"(?P<user>[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}@)?(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}"
    r"|\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9_.-]{1,32})?\])(?P<port>:[0-9]{1,5})?",
    re.ASCII,
)
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ClearAllForwardings": "yes",
    "RemoteCommand": "none",
    "PermitLocalCommand": "no",
    "EscapeChar": "none",
}
_LAST_WORDS_S = 2.0
_SAID_MOST = 16384
_COMPLAINTS_MOST = 8 << 20
"""Bytes of a board's banner and of what is written there to standard error, all together."""
_NO_MATTER = "Warning: Permanently added"


@dataclass(frozen=True)
class Address:
    """Where a board is: what OpenSSH's client is given."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{f'{self.user}@' if self.user else ''}{host}{f':{self.port}' if self.port else ''}"

    def words(self) -> list[str]:
        """For the command line of ssh, options first."""
        return [
            *(("-l", self.user) if self.user else ()),
            *(("-p", str(self.port)) if self.port else ()),
            "--",
            self.host,
        ]


def parse_address(text: str) -> Address:
    """``[USER@]HOST[:PORT]``; raises BadInput for what is none."""
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"][1:]) if found and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= 65535):
        raise BadInput(
            f"{text[:LINE_CHARS]!r} is not a board address; write ssh://USER@HOST:PORT (USER and PORT are optional)"
        )
    return Address(found["host"].strip("[]"), found["user"][:-1] if found["user"] else None, port)


def start_piped(argv: Sequence[str]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """A process to talk with, and the file that takes what it complains of."""
    said = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the stream
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, bufsize=0, start_new_session=True
    ), said


def stream_of(process: subprocess.Popen[bytes], said: IO[bytes], why: Callable[[], str]) -> Stream:
    """Standard input and output of a process, as a transport."""
    reader, writer = process.stdout, process.stdin
    assert reader is not None
    assert writer is not None

    def end() -> None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

    def free() -> None:
        process.wait()
        for file in (reader, writer, said):
            with contextlib.suppress(OSError):
                file.close()

    return Stream(reader.fileno(), writer.fileno(), end, free, why)


class _Connection:
    """One ssh at work, before an agent talks through it."""

    def __init__(self, address: Address, command: str) -> None:
        if shutil.which("ssh") is None:
            raise NotApplicable("ssh is missing; install it: apt-get install openssh-client")
        config = os.environ.get(CONFIG_SETTING)
        self.address = address
        self.process, self._said = start_piped(
            [
                "ssh",
                *(("-F", config) if config else ()),
                "-T",
                "-a",
                "-x",
                *(word for name, value in _OPTIONS.items() for word in ("-o", f"{name}={value}")),
                *address.words(),
                command,
            ]
        )
        with contextlib.suppress(ProcessLookupError):  # what the board writes beyond that ends it by SIGXFSZ
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (_COMPLAINTS_MOST, _COMPLAINTS_MOST))

    def stream(self) -> Stream:
        return stream_of(self.process, self._said, self.why)

    def end(self) -> None:
        """It and what it has started; nothing happens when it has ended."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> list[str]:
        """The last lines of ssh's complaints, without control characters."""
        with contextlib.suppress(OSError, ValueError):
            size = os.fstat(self._said.fileno()).st_size
            said = os.pread(self._said.fileno(), _SAID_MOST, max(0, size - _SAID_MOST))
            return [line for line in said_lines(said) if not line.startswith(_NO_MATTER)]
        return []

    def why(self) -> str:
        """A sentence that says why the board cannot be reached."""
        lines = self.said()
        if self.process.poll() == -signal.SIGXFSZ:
            return f"ssh://{self.address} is gone: it wrote more than {_COMPLAINTS_MOST >> 20} MB of messages"
        return f"ssh://{self.address} is gone: {lines[-1] if lines else 'ssh has ended'}"

    def refusal(self, late: str) -> FastenoughError:
        """The error to be told when no agent came up, with what to do; ``late`` is said where ssh said nothing."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_WORDS_S)
        self.end()
        text = "\n".join(self.said())
        by_hand = f"ssh {' '.join(word for word in self.address.words() if word != '--')}"
        if "IDENTIFICATION HAS CHANGED" in text:
            return BadInput(
                f"ssh://{self.address}: its host key has changed; if that is expected, remove the old "
                f"one with ssh-keygen -R, then verify the new one: {by_hand}"
            )
        if "Host key verification failed" in text:
            return BadInput(f"ssh://{self.address}: unknown host key; connect once manually and verify it: {by_hand}")
        if "Permission denied" in text:
            return BadInput(
                f"ssh://{self.address}: no usable SSH key; install yours with ssh-copy-id, then test: {by_hand}"
            )
        if self.process.returncode == -signal.SIGXFSZ:
            late = f"it wrote more than {_COMPLAINTS_MOST >> 20} MB of messages"
        why = late or (self.said() or ["ssh has ended"])[-1]
        return BoardGone(f"ssh://{self.address} cannot be reached: {why}")


class _OwnFile(AgentLink):
    """An agent whose file is the probe's too."""

    def which(self, tool: str) -> str | None:
        return tool if tool == OWN_FILE else super().which(tool)


class SshLink(_OwnFile):
    """A board behind ssh; ``raised`` is a second agent there, by sudo, where sudo asks no question."""

    def __init__(self, connection: _Connection, pace: Pace) -> None:
        self._address = connection.address
        self._raised: AgentLink | None = None
        super().__init__(connection.stream(), f"ssh://{connection.address}", pace=pace)

    @property
    def raised(self) -> Link:
        if self._raised is None:
            self._raised = self._by_sudo() if self.user else self
        return self._raised

    def _by_sudo(self) -> AgentLink:
        """A second agent with root's rights, or this one where there are none to be had."""
        try:
            file = f"/proc/{self.agent_pid}/exe"
            if self.which("sudo") is None or self.run(["sudo", "-n", "--", file, "agent", "check"]).status:
                return self
            command = f"exec sudo -n -- {file} agent stdio"
            return _OwnFile(_Connection(self._address, command).stream(), self.name, pace=self._pace)
        except Stalled:
            return self

    def close(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None and raised is not self:
            raised.close()
        super().close()


def open_ssh(address: Address, file_for: Callable[[str], bytes], pace: Pace = PACE) -> SshLink:
    """The board at an address; ``file_for`` gives our static file for what ``uname -m`` says there.

    Raises BadInput where the person must do something first (host key, own key), BoardGone where the board cannot be
    reached, NotApplicable where there is no file for it or it has no place for the file.
    """
    opening = AgentUpload(file_for)
    connection = _Connection(address, opening.command)
    try:
        if not opening.done(connection.process):
            raise connection.refusal(opening.late)
        return SshLink(connection, pace)
    except BaseException:
        connection.end()
        raise
