# SPDX-License-Identifier: GPL-2.0-or-later
"""The link to a deterministic guest: each command is one boot, and its result a function of the guest.

A result is therefore read once, and what a profile needs by one boot for all of it (``survey``).  The act is measured
by a boot of its own each time.  A setting is written by each guest before its work.
"""

from __future__ import annotations

import errno
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from fastenough.link import INJECTOR, MONITOR
from fastenough.link.base import HEAD, Completed, Link, Process, path_matches, printed_files
from fastenough.model import FastenoughError, NotApplicable
from fastenough.virtual.deterministic import (
    EMULATOR_FILE,
    Background,
    Beginning,
    Command,
    DeterministicGuest,
    GuestRun,
    Results,
    Watcher,
)
from fastenough.virtual.monitor import MONITOR as MONITOR_PATH
from fastenough.virtual.monitor import build_monitor
from fastenough.virtual.probe import PROBE

_COMMAND_S = 600.0
"""Time limit of the bench for a boot that runs short commands."""
_PER_GUEST_S = 120.0
"""Time limit of the bench for each second of the guest's time: under load a second took up to three minutes."""
_MODEL_SLOWER = 8.0
"""Factor of these limits for a guest with a cost model; five times was measured."""
_APPLETS = ("busybox", "--list")
_CHOSEN = re.compile(rb"\[([^\]]*)\]")
_ENDED_BY_BENCH = "--until-interrupt"
_NO_SIGNALS = "a deterministic board measures one task for a stated duration, and without an instrument"
_NO_INJECTOR = f"{INJECTOR} does not run on a deterministic board; use a virtual board"


class DeterministicLink:
    """Link to the guests of one kernel with its arguments.

    ``measured``: the guest of started commands, if it differs from the others by its cost model.  ``background``: what
    runs beside the next started command.  ``results``: of the last started command, None before its end.
    """

    near = True

    def __init__(
        self,
        guest: DeterministicGuest,
        name: str,
        measured: DeterministicGuest | None = None,
        own_directory: Path | None = None,
    ) -> None:
        self.name = name
        self.own_directory = own_directory
        self.background: Background | None = None
        self.results: Results | None = None
        self._guest = guest
        self._measured = measured or guest
        self._beginning = Beginning()
        self._watcher: Watcher | None = None
        self._originals: dict[str, bytes] = {}
        self._started: _Started | None = None
        self._known: dict[Command, Completed] = {}
        self._patterns: frozenset[str] = frozenset()
        self._files: dict[str, bytes] = {}
        self._programs: frozenset[str] = frozenset()

    @property
    def arch(self) -> str:
        """The architecture of the guests, by Debian's name."""
        return self._guest.arch

    @property
    def raised(self) -> Link:
        return self

    def survey(self, patterns: Sequence[str], command_lines: Sequence[str]) -> None:
        """Read, in one boot, the files that match and the output of the commands that the guest has."""
        plain = sorted(pattern for pattern in patterns if not pattern.endswith(".gz"))
        read = Command(("sh", "-c", f"{HEAD} {' '.join(plain)} 2>/dev/null"))
        compressed = [path for path in patterns if path.endswith(".gz")]
        lines = [("cat", path) for path in compressed] + [tuple(line.split()) for line in command_lines]
        commands = [Command(_APPLETS), read, *map(Command, lines)]
        done = self._guest.boot(commands).results(_COMMAND_S).commands
        self._known.update(zip(commands, done, strict=True))
        self._programs = frozenset(done[0].text.split()) | {"busybox", "chrt", PROBE.rpartition("/")[2]}
        self._files = printed_files(done[1].stdout, plain)
        self._files |= {path: cat.stdout for path, cat in zip(compressed, done[2:], strict=False) if not cat.status}
        if self._measured.cost_model is not None and EMULATOR_FILE in self._files:
            self._files[EMULATOR_FILE] += f"cost_model: {self._measured.cost_model.text}\n".encode()
        self._patterns = frozenset(patterns)

    def run(self, argv: Sequence[str], timeout_s: float = _COMMAND_S, input: bytes = b"") -> Completed:
        """Run a command in a boot of its own; its time limit is that of a boot."""
        if self.which(argv[0]) is None:
            raise FileNotFoundError(2, "no such command", argv[0])
        command = Command(tuple(argv), input)
        if command not in self._known:
            (self._known[command],) = self._guest.boot([command]).results(_COMMAND_S).commands
        return self._known[command]

    def start(
        self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None, limit_s: float = 0.0
    ) -> Process:
        """Boot a guest that runs the command beside the background; its output comes when the guest has ended.

        Raises NotApplicable for a command that the bench would have to end, and while another one runs.
        """
        if self.which(argv[0]) is None:
            raise FileNotFoundError(2, "no such command", argv[0])
        if _ENDED_BY_BENCH in argv or (self._started is not None and self._started.running):
            raise NotApplicable(_NO_SIGNALS)
        slower = 1.0 if self._measured.cost_model is None else _MODEL_SLOWER
        self.results, limit_s = None, slower * (_COMMAND_S + _PER_GUEST_S * limit_s)
        background = self.background
        if argv[0] == MONITOR_PATH:
            background = Background((), (), 0.0, self._monitor_files())
        run = self._measured.boot([Command(tuple(argv), input)], background, self._beginning, self._watcher)
        self._started = _Started(self, run, limit_s)
        return self._started

    @contextmanager
    def watch(self, argv: Sequence[str]) -> Iterator[Callable[[], Completed]]:
        """Context in which the monitor records beside the started command; the function returns what it did.

        The function raises FastenoughError if no command was started, or if its guest had no results.
        """
        self.results = None
        self._watcher = Watcher(tuple(argv), self._monitor_files())

        def finished() -> Completed:
            if self.results is None or self.results.watcher is None:
                raise FastenoughError("the guest has no results of the monitor")
            return self.results.watcher

        try:
            yield finished
        finally:
            self._watcher = None

    def _monitor_files(self) -> dict[str, bytes]:
        return {MONITOR_PATH.lstrip("/"): build_monitor(self.arch)[MONITOR_PATH]}

    def set_phase(self, phase_ns: int) -> None:
        """Let the next started commands begin so much of the guest's time later than with the phase 0."""
        self._beginning = replace(self._beginning, phase_ns=phase_ns)

    def costs(self) -> bytes | None:
        """What the cost model counted for the last started command; None without a model or results."""
        return None if self.results is None else self.results.costs

    def interrupt(self) -> None:
        """End the started command, if any, with its guest."""
        if self._started is not None:
            self._started.signal(signal.SIGINT)

    def read(self, path: str) -> bytes:
        if path in self._files:
            return self._files[path]
        if any(fnmatchcase(path, pattern) for pattern in self._patterns):
            raise FileNotFoundError(2, "no such file", path)
        done = self.run(["cat", path])
        if done.status:
            raise FileNotFoundError(2, "no such file", path)
        return done.stdout

    def write(self, path: str, content: bytes) -> None:
        """Let each later guest write the content first, or write nothing if it is the value of a guest without it.

        Raises OSError if the guest's kernel refuses the content, FileNotFoundError without the file.
        """
        original = self._originals.setdefault(path, self.read(path))
        settings = {name: setting for name, setting in self._beginning.settings.items() if name != path}
        if content.strip() == _value(original):
            self._beginning, self._files[path] = replace(self._beginning, settings=settings), original
            return
        commands = [Command(("sh", "-c", f"cat >{shlex.quote(path)}"), content), Command(("cat", path))]
        written, output = self._guest.boot(commands, None, self._beginning).results(_COMMAND_S).commands
        if written.status:
            raise OSError(errno.EINVAL, written.stderr.decode(errors="replace").strip() or "refused", path)
        self._beginning = replace(self._beginning, settings={**settings, path: content})
        self._files[path] = output.stdout

    def exists(self, path: str) -> bool:
        return path in self._files or self.run(["test", "-e", path]).status == 0

    def glob(self, pattern: str) -> list[str]:
        if pattern not in self._patterns:
            listing = self.run(["sh", "-c", f"for path in {pattern}; do [ -e $path ] && echo $path; done"])
            return sorted(listing.text.splitlines())
        return sorted(path for path in self._files if path_matches(path, pattern))

    def scratch_name(self) -> str:
        """A constant name: each guest runs one piece of work."""
        return "/var/tmp/fastenough-0"

    def which(self, tool: str) -> str | None:
        """Raises NotApplicable for the monitor's injector."""
        if tool == INJECTOR:
            raise NotApplicable(_NO_INJECTOR)
        if tool in (MONITOR, MONITOR_PATH):
            return MONITOR_PATH
        name = tool.removeprefix("/bin/")
        return f"/bin/{name}" if name in self._programs else None


def _value(content: bytes) -> bytes:
    """The value in a file of the kernel, which may list the possible ones with the current one in brackets."""
    listed = _CHOSEN.search(content)
    return listed[1] if listed else content.strip()


class _Started:
    """A command in a guest that runs from its boot to its power-off without the bench (see ``Process``)."""

    pid = 0

    def __init__(self, link: DeterministicLink, run: GuestRun, limit_s: float) -> None:
        self._link = link
        self._run = run
        self._limit_s = limit_s
        self._done: Completed | None = None
        self._is_interrupted = False

    @property
    def running(self) -> bool:
        return self._run.running

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        """Yield the lines of standard output once the guest has ended; the time limit is that of the guest."""
        yield from self._completed().stdout.splitlines(keepends=True)

    def signal(self, number: int) -> None:
        """End the guest, whatever the signal; the command then has the status of one that SIGINT ended."""
        if self.running:
            self._is_interrupted = True
            self._run.end()

    def wait(self, timeout_s: float | None = None) -> int:
        return self._completed().status

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def stderr(self) -> bytes:
        return self._completed().stderr

    def _completed(self) -> Completed:
        if self._done is None:
            try:
                self._link.results = self._run.results(self._limit_s)
                (self._done,) = self._link.results.commands
            except FastenoughError:
                if not self._is_interrupted:
                    raise
                self._done = Completed(128 + signal.SIGINT, b"", b"")
        return self._done
