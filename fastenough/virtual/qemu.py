# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU process: the machine, its sockets, its console, and the error if it does not start.

labgrid's QEMU driver waits without limit for a QEMU that ended at once, and its child outlives a killed bench;
only its QMP client is used here.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, BinaryIO

from labgrid.util.qmp import QMPError, QMPMonitor

from fastenough.model import FastenoughError
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.machines import GuestMachine
from fastenough.words import output_lines

_BARE = ("-nodefaults", "-nographic", "-no-reboot")
PACED = ("-accel", "tcg,thread=multi")
"""The guest's CPUs run at full speed; its clock is that of this machine."""
COUNTED = ("-accel", "tcg,thread=single", "-icount", "shift=0")
"""Each instruction takes 1 ns of the guest's clock: times in the guest are counts of instructions."""
_TAIL_LINES = 4
_LAST_LINES = 12
_LOG_TAIL_BYTES = 65536
_KERNEL_ERROR = re.compile(r"Kernel panic|BUG: |Oops|Internal error|Unable to handle|sysrq: ")
_POLL_S = 0.02
_END_S = 1.0
_STATE_TIMEOUT_S = 60.0
_CHUNK = 1 << 20


class Qemu:
    """A guest; its sockets are in ``directory``, which must have a short path."""

    def __init__(
        self,
        kernel: Kernel,
        initramfs: Path,
        directory: Path,
        *,
        cpus: int = 2,
        memory_mb: int = 768,
        pace: tuple[str, ...] = PACED,
        restore: bool = False,
        arguments: str = "",
    ) -> None:
        machine = kernel.machine
        appended = (f"console={machine.console} quiet panic=-1", machine.kernel_arguments, arguments)
        self.pin_port = machine.pins(directory)
        self._directory = directory
        self._console_log = directory / "console.log"
        self._state_socket = directory / "state.sock"
        with (directory / "qemu.log").open("wb") as log:
            self._popen = subprocess.Popen(
                [
                    "setpriv",
                    "--pdeathsig",
                    "KILL",
                    machine.program,
                    *machine.arguments,
                    *_BARE,
                    *pace,
                    "-smp",
                    str(cpus),
                    "-m",
                    f"{memory_mb}M",
                    "-kernel",
                    str(kernel.image),
                    "-initrd",
                    str(initramfs),
                    *(("-dtb", str(kernel.device_tree)) if machine.device_tree else ()),
                    "-append",
                    " ".join(filter(None, appended)),
                    *self._wiring(machine),
                    *self.pin_port.arguments,
                    *(("-incoming", f"unix:{self._state_socket}") if restore else ()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            stream = self.connect("qmp", timeout_s=20.0).makefile("rwb")
            self._qmp = QMPMonitor(stream, stream)
        except BaseException:
            self.close()
            raise

    def _wiring(self, machine: GuestMachine) -> list[str]:
        def server(name: str) -> str:
            return f"path={self._directory}/{name}.sock,server=on,wait=off"

        return [
            "-qmp",
            f"unix:{self._directory}/qmp.sock,server=on,wait=off",
            "-chardev",
            f"socket,id=console,{server('console')},logfile={self._console_log}",
            *machine.serial,
            "-chardev",
            f"socket,id=agent,{server('agent')}",
            *machine.agent,
        ]

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    def connect(self, name: str, timeout_s: float) -> socket.socket:
        """A socket of the guest; raises FastenoughError with the output of QEMU if it has ended."""
        path = self._directory / f"{name}.sock"
        deadline_mono_s = time.monotonic() + timeout_s
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(path))
                return connection
            except OSError as error:
                connection.close()
                if not self.is_running or time.monotonic() > deadline_mono_s:
                    raise self.start_error("QEMU did not start") from error
                time.sleep(_POLL_S)

    def start_error(self, failure: str) -> FastenoughError:
        """The error with the guest's panic, or else the last lines of its console or of QEMU."""
        lines = [line for log in ("qemu.log", "console.log") for line in _log_lines(self._directory / log)]
        panic = [line for line in lines if "Kernel panic" in line]
        return FastenoughError(f"{failure}; last output: {' | '.join(panic[-1:] or lines[-_TAIL_LINES:]) or 'nothing'}")

    def last_words(self) -> list[str]:
        """Exit status of QEMU, if it has ended, and the last kernel messages, from the first error on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_END_S)
        log_lines = _log_lines(self._console_log)
        first_error = next((number for number, line in enumerate(log_lines) if _KERNEL_ERROR.search(line)), None)
        sentences = [] if self.is_running else [f"QEMU {_end_text(self._popen.returncode)}"]
        if log_lines and (sentences or first_error is not None):
            lines = (
                log_lines[-_LAST_LINES:] if first_error is None else log_lines[first_error : first_error + _LAST_LINES]
            )
            sentences.append(f"last kernel messages: {' | '.join(lines)}")
        return sentences

    def monitor(self, command: str, **arguments: Any) -> Any:
        """A QMP command; raises FastenoughError if QEMU refuses it or has ended."""
        try:
            return self._qmp.execute(command, arguments)
        except (QMPError, OSError, TypeError, ValueError) as error:  # labgrid's QMPError takes no answer of QEMU's
            raise FastenoughError(f"QEMU refused {command}: {error}") from error

    def find(self, kind: str) -> str:
        """The QOM path of the machine's first device of that type."""
        for entry in self.monitor("qom-list", path="/machine/unattached"):
            if entry["type"] == f"child<{kind}>":
                return f"/machine/unattached/{entry['name']}"
        raise FastenoughError(f"the QEMU machine has no {kind}")

    def save(self, stream: BinaryIO) -> str:
        """Write the whole state of the guest to a stream and continue it; returns its hash (SHA-256).

        Raises OSError if the stream cannot be written, FastenoughError if QEMU fails.
        """
        self._state_socket.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self._state_socket))
            server.listen(1)
            server.settimeout(_STATE_TIMEOUT_S)
            self.monitor("stop")
            try:
                self.monitor("migrate", uri=f"unix:{self._state_socket}")
                digest = _receive_state(server, stream)
                if self._migration_status() != "completed":
                    raise FastenoughError("cannot save the state of the guest; see the messages of QEMU")
            finally:
                self._migration_status()
                self.monitor("cont")
                self._state_socket.unlink()
        return digest

    def _migration_status(self) -> str:
        """The final status of saving the state."""
        while (status := self.monitor("query-migrate").get("status", "failed")) not in {"completed", "failed"}:
            time.sleep(_POLL_S)
        return str(status)

    def restore(self, snapshot: Path, timeout_s: float) -> None:
        """Load a saved state into QEMU and start the guest; raises FastenoughError with the output of QEMU."""
        deadline_mono_s = time.monotonic() + timeout_s
        try:
            with self.connect("state", timeout_s) as connection, snapshot.open("rb") as stream:
                connection.settimeout(timeout_s)
                connection.sendfile(stream)
        except OSError as error:
            raise self.start_error("cannot restore the snapshot") from error
        while self.monitor("query-status")["status"] == "inmigrate":
            if time.monotonic() > deadline_mono_s:
                raise self.start_error("cannot restore the snapshot")
            time.sleep(_POLL_S)
        self.monitor("cont")

    def close(self) -> None:
        """Kill the guest."""
        self._popen.kill()
        self._popen.wait()
        self.pin_port.close()


def _receive_state(server: socket.socket, stream: BinaryIO) -> str:
    """Copy the data of a connection to a stream; returns the hash."""
    digest = hashlib.sha256()
    connection, _ = server.accept()
    with connection:
        connection.settimeout(_STATE_TIMEOUT_S)
        while part := connection.recv(_CHUNK):
            stream.write(part)
            digest.update(part)
    return digest.hexdigest()


def _end_text(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"


def _log_lines(log: Path) -> list[str]:
    """The last lines of a log; empty if there is no such file."""
    if not log.is_file():
        return []
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _LOG_TAIL_BYTES))
        return output_lines(stream.read(_LOG_TAIL_BYTES))
