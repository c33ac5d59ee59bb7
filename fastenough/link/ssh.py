# SPDX-License-Identifier: GPL-2.0-or-later
"""A board behind OpenSSH's client: one file is copied there, started as the agent, and deleted.

The file is deleted as soon as the agent runs; the probe is started from the agent's own process (/proc/PID/exe).
The board requires a shell, uname, id, head, cat, wc, chmod, mkdir, rm, rmdir (busybox is enough), and /proc.
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
from fastenough.link.base import BoardGone, Link
from fastenough.link.ssh_upload import AgentUpload
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.words import LINE_CHARS, output_lines

CONFIG_SETTING = "FASTENOUGH_SSH_CONFIG"
"""Environment variable for a file to use instead of ~/.ssh/config."""
OWN_FILE = "fastenough-probe"
"""The command name by which the agent on the board starts its own file."""
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
_TAIL_BYTES = 16384
_COMPLAINTS_MOST = 8 << 20
"""Upper limit for the banner and standard error [bytes] of a board, combined."""
_IGNORED = "Warning: Permanently added"


@dataclass(frozen=True)
class Address:
    """Address of a board, as passed to OpenSSH's client."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{f'{self.user}@' if self.user else ''}{host}{f':{self.port}' if self.port else ''}"

    def arguments(self) -> list[str]:
        """Return the arguments for ssh, options first."""
        return [
            *(("-l", self.user) if self.user else ()),
            *(("-p", str(self.port)) if self.port else ()),
            "--",
            self.host,
        ]


def parse_address(text: str) -> Address:
    """Return the address in ``[USER@]HOST[:PORT]``; raise BadInput for an invalid one."""
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"][1:]) if match and match["port"] else None
    if match is None or (port is not None and not 1 <= port <= 65535):
        raise BadInput(
            f"{text[:LINE_CHARS]!r} is not a board address; write ssh://USER@HOST:PORT (USER and PORT are optional)"
        )
    return Address(match["host"].strip("[]"), match["user"][:-1] if match["user"] else None, port)


def start_piped(argv: Sequence[str]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start a process with pipes; return it and the file of its standard error."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the stream
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0, start_new_session=True
    ), errors


def stream_of(process: subprocess.Popen[bytes], errors: IO[bytes], why: Callable[[], str]) -> Stream:
    """Return standard input and output of a process as a transport."""
    reader, writer = process.stdout, process.stdin
    assert reader is not None
    assert writer is not None

    def end() -> None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

    def free() -> None:
        process.wait()
        for file in (reader, writer, errors):
            with contextlib.suppress(OSError):
                file.close()

    return Stream(reader.fileno(), writer.fileno(), end, free, why)


class _Connection:
    """One running ssh, before an agent uses it."""

    def __init__(self, address: Address, command: str) -> None:
        if shutil.which("ssh") is None:
            raise NotApplicable("ssh is missing; install it: apt-get install openssh-client")
        config = os.environ.get(CONFIG_SETTING)
        self.address = address
        self.process, self._errors = start_piped(
            [
                "ssh",
                *(("-F", config) if config else ()),
                "-T",
                "-a",
                "-x",
                *(argument for name, value in _OPTIONS.items() for argument in ("-o", f"{name}={value}")),
                *address.arguments(),
                command,
            ]
        )
        with contextlib.suppress(ProcessLookupError):  # more output to standard error ends ssh by SIGXFSZ
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (_COMPLAINTS_MOST, _COMPLAINTS_MOST))

    def stream(self) -> Stream:
        return stream_of(self.process, self._errors, self.why)

    def end(self) -> None:
        """Kill ssh and its children; without effect when it has ended."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def messages(self) -> list[str]:
        """Return the last lines of ssh's standard error, without control characters."""
        with contextlib.suppress(OSError, ValueError):
            size = os.fstat(self._errors.fileno()).st_size
            tail = os.pread(self._errors.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))
            return [line for line in output_lines(tail) if not line.startswith(_IGNORED)]
        return []

    def why(self) -> str:
        """Return a sentence with the reason why the board cannot be reached."""
        lines = self.messages()
        if self.process.poll() == -signal.SIGXFSZ:
            return f"ssh://{self.address} is gone: it wrote more than {_COMPLAINTS_MOST >> 20} MB of messages"
        return f"ssh://{self.address} is gone: {lines[-1] if lines else 'ssh has ended'}"

    def refusal(self, late: str) -> FastenoughError:
        """Return the error for an agent that did not start, with the fix; ``late`` is the reason if ssh gave none."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_WORDS_S)
        self.end()
        text = "\n".join(self.messages())
        command = f"ssh {' '.join(argument for argument in self.address.arguments() if argument != '--')}"
        if "IDENTIFICATION HAS CHANGED" in text:
            return BadInput(
                f"ssh://{self.address}: its host key has changed; if that is expected, remove the old "
                f"one with ssh-keygen -R, then verify the new one: {command}"
            )
        if "Host key verification failed" in text:
            return BadInput(f"ssh://{self.address}: unknown host key; connect once manually and verify it: {command}")
        if "Permission denied" in text:
            return BadInput(
                f"ssh://{self.address}: no usable SSH key; install yours with ssh-copy-id, then test: {command}"
            )
        if self.process.returncode == -signal.SIGXFSZ:
            late = f"it wrote more than {_COMPLAINTS_MOST >> 20} MB of messages"
        why = late or (self.messages() or ["ssh has ended"])[-1]
        return BoardGone(f"ssh://{self.address} cannot be reached: {why}")


class _OwnFile(AgentLink):
    """An agent whose file is also the probe."""

    def which(self, tool: str) -> str | None:
        return tool if tool == OWN_FILE else super().which(tool)


class SshLink(_OwnFile):
    """A board behind ssh; ``raised`` is a second agent, started by sudo if sudo asks for no password."""

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
        """Return a second agent with root privileges, or this one if sudo is missing or refuses; raise Stalled."""
        file = f"/proc/{self.agent_pid}/exe"
        if self.which("sudo") is None or self.run(["sudo", "-n", "--", file, "agent", "check"]).status:
            return self
        command = f"exec sudo -n -- {file} agent stdio"
        return _OwnFile(_Connection(self._address, command).stream(), self.name, pace=self._pace)

    def close(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None and raised is not self:
            raised.close()
        super().close()


def open_ssh(address: Address, file_for: Callable[[str], bytes], pace: Pace = PACE) -> SshLink:
    """Open the board at an address; ``file_for``: return the static probe for the output of ``uname -m``.

    Raises BadInput if the user must act first (host key, own key), BoardGone if the board cannot be reached,
    NotApplicable if there is no probe for it or no directory for the probe.
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
