# SPDX-License-Identifier: GPL-2.0-or-later
"""A place of a labgrid coordinator: ``labgrid:PLACE``.  labgrid switches and boots it; the link is ssh.

Its configurations are the states of its strategy, if the environment file of ``LG_ENV`` has one.  Each act is a process
of its own with a deadline (labgrid_act.py), killed as a group when it has ended or its time is over.

A request to stop ends a transition and the wait for the board at once.  The other acts are short and end first: a power
cycle would leave the board without power, and a place that is being acquired could not be released.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from fastenough.board.base import (
    AS_BOOTED,
    Board,
    Booted,
    configuration_in,
    installed_module,
    kernel_profile,
    name_fault,
    require_configuration,
)
from fastenough.board.configuration import Sleep
from fastenough.board.console import Console
from fastenough.board.files import file_for
from fastenough.link import BoardGone
from fastenough.link.agent import AgentLink
from fastenough.link.ssh import OWN_FILE, Address, SshLink, open_ssh, parse_address
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.settings import BoardBusy, journal_of, locked
from fastenough.words import LINE_CHARS, output_lines

if TYPE_CHECKING:
    from fastenough.board.labgrid_act import LabgridAnswer

COORDINATOR_SETTING = "LG_COORDINATOR"
"""Environment variable that names the coordinator, HOST:PORT; labgrid's own."""
ENVIRONMENT_SETTING = "LG_ENV"
"""Environment variable that names labgrid's environment file, with the strategies; labgrid's own."""
POWER_CYCLED = "power-cycled"
"""The configuration of a board without a strategy that is power-cycled first."""
_ACT = Path(__file__).with_name("labgrid_act.py")
_PLACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_ACT_S = 60.0
_TRANSITION_S = 600.0
_BOOT_S = 180.0
_RETRY_S = 1.0
_UPTIME_MARGIN_S = 10.0
"""Maximum error of a board's uptime: its clock may not be calibrated yet."""
_QUIET = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "NONE"}
_MOST_REASON_CHARACTERS = 500
_MOST_OUTPUT_BYTES = 16 << 20
_POLL_S = 0.2
_FAILED = {"states": BadInput, "transition": FastenoughError}
"""Errors of failed acts; NotApplicable for all others."""


def _sleep(seconds: float) -> bool:
    """Sleep until the time has passed: no stop can be requested."""
    time.sleep(seconds)
    return False


def _act(place: str, what: str, limit_s: float = _ACT_S, *, sleep: Sleep = _sleep) -> LabgridAnswer:
    """Run one act of labgrid, such as ``transition rt``, and return its answer.

    Raises the error in ``_FAILED``, else NotApplicable, with the reason; BoardGone if the act does not end in time,
    KeyboardInterrupt when a stop is requested.
    """
    coordinator = os.environ.get(COORDINATOR_SETTING, "127.0.0.1:20408")
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output, _lifeline() as lifeline:
        process = subprocess.Popen(
            [sys.executable, "-P", str(_ACT), coordinator, place, *what.split()],
            stdin=lifeline,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, **_QUIET},
        )
        try:
            _await(process, (output, errors), limit_s, sleep)
        except FastenoughError as error:
            raise BoardGone(f"labgrid:{place}: {what} {error}") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for file in (output, errors):
            file.seek(0)
        answer = _answer(output.read(), errors.read())
    if "fault" in answer:
        reason = " ".join(output_lines(str(answer["fault"]).encode()))[:_MOST_REASON_CHARACTERS]
        raise _FAILED.get(what.split(maxsplit=1)[0], NotApplicable)(f"labgrid:{place}: {what} failed: {reason}")
    return answer


def _await(process: subprocess.Popen[bytes], files: Sequence[IO[bytes]], limit_s: float, sleep: Sleep) -> None:
    """Wait for the process.

    Raise FastenoughError if it takes too long or writes too much into a file, KeyboardInterrupt when a stop is
    requested.
    """
    deadline_mono_s = time.monotonic() + limit_s
    while True:
        _pause(sleep)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(_POLL_S, max(0.0, deadline_mono_s - time.monotonic())))
        if any(os.fstat(file.fileno()).st_size > _MOST_OUTPUT_BYTES for file in files):
            raise FastenoughError(f"wrote more than {_MOST_OUTPUT_BYTES >> 20} MB")
        if process.poll() is not None:
            return
        if time.monotonic() >= deadline_mono_s:
            raise FastenoughError(f"has not ended within {limit_s:g} s")


def _pause(sleep: Sleep, seconds: float = 0.0) -> None:
    """Sleep; raise KeyboardInterrupt when a stop is requested."""
    if sleep(seconds):
        raise KeyboardInterrupt


@contextmanager
def _lifeline() -> Iterator[int]:
    """Context with a file descriptor for a standard input that closes when this process ends, for whatever reason."""
    descriptors = os.pipe()
    try:
        yield descriptors[0]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(output: bytes, errors: bytes) -> LabgridAnswer:
    """Return the act's answer, or the last line of its standard error if there is none."""
    try:
        return cast("LabgridAnswer", dict(json.loads(output)))
    except ValueError:
        return {"fault": (output_lines(errors) or ["labgrid gave no reason"])[-1]}


@dataclass(frozen=True)
class LabgridBoard:
    """A place of labgrid.

    ``boot_s``: time limit from power-on or transition until the board can be reached.  ``keep_acquired``: do not
    release the place, because another process of the same user has acquired it.  ``sleep``: sleep, and return whether a
    stop is requested.
    """

    place: str
    boot_s: float = _BOOT_S
    keep_acquired: bool = False
    sleep: Sleep = _sleep

    @property
    def name(self) -> str:
        return f"labgrid:{self.place}"

    @cached_property
    def _states(self) -> tuple[str, ...]:
        """States of its strategy; raises BadInput for an invalid environment."""
        if not os.environ.get(ENVIRONMENT_SETTING):
            return ()
        return tuple(map(str, _act(self.place, "states")["states"]))

    def configurations(self) -> tuple[str, ...]:
        return AS_BOOTED, *(self._states or (POWER_CYCLED,))

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        require_configuration(self, configuration)
        resources = _act(self.place, "acquire")
        journal: Path | None = None
        try:
            service = resources.get("service")
            if not service:
                raise NotApplicable(
                    f"{self.name} has no NetworkService, so its address is unknown; export one for it, "
                    "or define one in the LG_ENV file"
                )
            address = address_of(service)
            journal = journal_of(f"ssh://{address}")
            with ExitStack() as stack:
                with self._locked(journal, configuration):
                    link, console = self._up(configuration, address, resources.get("console"), stack)
                profile = kernel_profile(link)
                if fault := name_fault(profile.get("kernel") or {}, configuration):
                    raise FastenoughError(f"{self.name}: {fault}")
                yield Booted(
                    link,
                    configuration_in(profile, configuration),
                    OWN_FILE,
                    last_words=partial(_last_words, link, console),
                    module=partial(installed_module, link),
                    kernel=profile.get("kernel") or {},
                )
        finally:
            if not self.keep_acquired:
                self._release(journal)

    def _locked(self, journal: Path, configuration: str) -> AbstractContextManager[object]:
        """Context in which the board may be switched; entering it raises BoardBusy if another bench measures there."""
        return contextlib.nullcontext() if configuration == AS_BOOTED or self.keep_acquired else locked(journal)

    def _up(
        self, configuration: str, address: Address, port: Mapping[str, Any] | None, stack: ExitStack
    ) -> tuple[SshLink, Console]:
        """Switch the board to the configuration; return the link to it and its console."""
        _pause(self.sleep)
        if configuration in self._states:  # before the console is read here: the strategy needs it
            _act(self.place, f"transition {configuration}", _TRANSITION_S, sleep=self.sleep)
        console = stack.enter_context(closing(Console(port)))
        cycle_mono_s = None
        if configuration == POWER_CYCLED:
            cycle_mono_s = time.monotonic()
            _act(self.place, "cycle")
        return stack.enter_context(closing(self._connect(address, console, cycle_mono_s))), console

    def _release(self, journal: Path | None) -> None:
        """Release the place, unless another bench of this user measures there."""
        with contextlib.suppress(FastenoughError, OSError), ExitStack() as stack:
            try:
                if journal is not None:
                    stack.enter_context(locked(journal))
            except BoardBusy:
                return
            except FastenoughError:  # without a usable journal, no bench measures there
                pass
            _act(self.place, "release")

    def _connect(self, address: Address, console: Console, cycle_mono_s: float | None) -> SshLink:
        """Return the link once the board has booted, after the time of a power cycle if there was one.

        An outlet may cut the power seconds after its answer, so the board may be reached before.  Raise BoardGone with
        the last console output, FastenoughError if the board was not restarted, KeyboardInterrupt when a stop is
        requested.
        """
        deadline_mono_s, pause_s = time.monotonic() + self.boot_s, 0.0
        while True:
            _pause(self.sleep, pause_s)
            pause_s = _RETRY_S
            try:
                with ExitStack() as stack:
                    link = stack.enter_context(closing(open_ssh(address, file_for)))
                    up_s = 0.0 if cycle_mono_s is None else _uptime_s(link) - (time.monotonic() - cycle_mono_s)
                    if up_s <= _UPTIME_MARGIN_S:
                        stack.pop_all()
                        return link
            except BoardGone as error:
                if time.monotonic() > deadline_mono_s:
                    raise BoardGone("; ".join((str(error), *console.last_words()))) from error
            else:
                if time.monotonic() > deadline_mono_s:
                    raise FastenoughError(
                        f"{self.name}: the power cycle did not restart it: it had been up for {up_s:.0f} s before; "
                        "check which outlet its power port names"
                    )


def stoppable(board: Board, sleep: Sleep) -> Board:
    """Return the board; if labgrid switches it, its boot ends when a stop is requested.

    ``sleep``: sleep, and return whether a stop is requested.  A board that has it already is returned itself, with its
    known states.
    """
    return replace(board, sleep=sleep) if isinstance(board, LabgridBoard) and board.sleep != sleep else board


def _uptime_s(link: SshLink) -> float:
    """Return the time since the board's kernel started."""
    try:
        return float(link.read("/proc/uptime").split()[0])
    except (OSError, ValueError, IndexError) as error:
        raise FastenoughError(f"{link.name}: cannot read /proc/uptime: {error}") from error


def _last_words(link: SshLink, console: Console) -> list[str]:
    """Return the last console output if the board is gone; it does not explain other errors."""
    try:
        agents = (link, link.raised)
    except BoardGone:
        return console.last_words()
    return console.last_words() if any(isinstance(agent, AgentLink) and agent.gone for agent in agents) else []


def address_of(service: Mapping[str, Any]) -> Address:
    """Return the address in an exporter's NetworkService, which is untrusted until it is parsed."""
    host, user, port = service.get("address"), service.get("username"), service.get("port")
    bracketed = f"[{host}]" if ":" in str(host) else host
    return parse_address(f"{f'{user}@' if user else ''}{bracketed}{f':{port}' if port else ''}")


def open_board(which: str) -> LabgridBoard:
    """Return the board of a place; raise BadInput for an invalid name."""
    if _PLACE.fullmatch(which) is None:
        raise BadInput(f"{which[:LINE_CHARS]!r} is not a valid labgrid place; write labgrid:PLACE")
    return LabgridBoard(which)
