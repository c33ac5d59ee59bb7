# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: one module per command, one line here for each."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FrameType
from typing import Any

import click

from fastenough import __version__
from fastenough.cli.commands import LazyGroup
from fastenough.cli.output import MOST_TEXT_WIDTH, clean, tame
from fastenough.model import BadInput, ExitStatus, FastenoughError, NotApplicable

SECTIONS = {
    "Measure": {
        "assess": ("fastenough.cli.assess", "Measure this machine under load and report."),
        "run": ("fastenough.cli.run", "Run one probe, or the runs of a plan."),
        "campaign": ("fastenough.cli.campaign", "Plan, run, inspect and resume sets of runs."),
        "plan-test": ("fastenough.cli.plan_test", "Compute how long to measure for a verdict."),
        "list-probes": ("fastenough.cli.probes", "List probes, their parameters, and loads."),
        "calibrate": ("fastenough.cli.calibrate", "Inject known latencies and check they are detected."),
    },
    "Understand": {
        "list": ("fastenough.cli.listing", "List the runs in the store, oldest first."),
        "show": ("fastenough.cli.show", "Show one run."),
        "report": ("fastenough.cli.report", "Write a report on stored runs."),
        "compare": ("fastenough.cli.compare", "Compare runs with a base run."),
        "advise": ("fastenough.cli.advise", "Choose a kernel and an implementation for a limit."),
        "reference": ("fastenough.cli.reference", "Show published reference systems."),
        "pack": ("fastenough.cli.pack", "Pack runs and their verdict as evidence."),
        "verify": ("fastenough.cli.verify", "Check an evidence pack and recompute its verdict."),
        "fleet": ("fastenough.cli.fleet", "Judge a type of board by all its boards."),
    },
    "Tune": {
        "audit": ("fastenough.cli.audit", "Find settings that cost latency or hide it."),
        "ab": ("fastenough.cli.ab", "A/B-test a setting."),
        "hunt": ("fastenough.cli.hunt", "Search for the load that causes the worst latency."),
        "bound": ("fastenough.cli.bound", "Compute a latency bound from a trace."),
        "bisect": ("fastenough.cli.bisect", "Find the kernel commit that made a path longer."),
    },
    "Watch": {
        "monitor": ("fastenough.cli.monitor", "Watch real-time tasks and name what delays them."),
        "farm": ("fastenough.cli.farm", "Measure and watch many boards."),
        "web": ("fastenough.cli.web", "Show runs or boards as web pages."),
        "check": ("fastenough.cli.check", "Check runs against a baseline and limits."),
    },
    "Boards": {
        "doctor": ("fastenough.cli.doctor", "List what limits measurements here, with fixes."),
        "gauge": ("fastenough.cli.gauge", "Flash, identify, test and run the instrument."),
        "bench": ("fastenough.cli.bench", "Start and stop the virtual bench."),
    },
    "Data": {
        "store": ("fastenough.cli.store", "Rebuild the index, verify recordings, export samples."),
        "import": ("fastenough.cli.imports", "Import results of other tools as runs."),
        "export": ("fastenough.cli.exports", "Export runs for other programs."),
        "completion": ("fastenough.cli.completion", "Print a shell completion script."),
    },
}
"""Heading to commands: name to the module that defines the command, and the first sentence of its help."""
COMMANDS = {name: entry for commands in SECTIONS.values() for name, entry in commands.items()}
CALLED = "FASTENOUGH_CALLED"
"""Environment variable: how the user called a program of this name that is not installed; bin/fastenough sets it."""
_CALL = re.compile(r"[\w./+-]{1,200}")


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    example="fastenough assess --limit 100us",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MOST_TEXT_WIDTH},
)
@click.version_option(__version__, prog_name="fastenough")
@click.pass_obj
def cli(signals: _Signals) -> None:
    """Measure whether this Linux meets a real-time deadline.

    Each result has a confidence bound.  Too few data, lost samples, or CPU time taken by the host of a virtual machine
    never give a PASS.  COMMAND --help shows the options of a command.
    """
    signals.listen()


class _Signals:
    """The first signal ends the command as Ctrl-C does; its number determines the exit status.

    Listened to only once the command's modules are loaded: until then nothing is open that would have to be ended in
    order, and what loads them may take a KeyboardInterrupt for another error.
    """

    def __init__(self) -> None:
        self.first = 0
        atexit.register(self._keep_status)

    def _keep_status(self) -> None:
        """Last of all: Python ends itself by SIGINT where a KeyboardInterrupt came within an ``exec()`` of text, as in
        the making of a dataclass, though it was caught."""
        if self.first:
            os._exit(128 + self.first)

    def listen(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._end)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.first = self.first or number
        if log := sys.modules.get("logging"):
            log.disable()  # SQLAlchemy logs a trace where its closing of a connection is interrupted
        raise KeyboardInterrupt


def _help_of(error: click.ClickException) -> str:
    """The command that prints the help of the command with the error."""
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'fastenough'} --help"


def _defect(error: Exception) -> str:
    """Message for an internal error; the traceback is written to a file that can be sent."""
    what = f"{type(error).__name__}: {error}"[:300]
    try:
        file, path = tempfile.mkstemp(prefix="fastenough-defect-", suffix=".txt")
        with os.fdopen(file, "w", errors="backslashreplace") as stream:
            traceback.print_exception(error, file=stream)
        where = f"with {path}"
    except OSError:
        where = "with the command line"
    return f"internal error ({what}); please report it {where}"


def _explain(error: Exception) -> int:
    """Print the error as one line, after its notes, which are commands ready to paste; returns the exit status."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            print(error.format_message(), file=sys.stderr)
            return ExitStatus.BAD_INPUT
        case click.ClickException():
            message, status = f"{error.format_message()} (see {_help_of(error)})", ExitStatus.BAD_INPUT
        case NotApplicable():
            message, status = f"not applicable: {error}", ExitStatus.NOT_APPLICABLE
        case BadInput():
            message, status = str(error), ExitStatus.BAD_INPUT
        case FastenoughError():
            message, status = str(error), ExitStatus.BROKEN
        case UnicodeEncodeError():
            message, status = f"{error.object}: not valid UTF-8; use another name", ExitStatus.BAD_INPUT
        case BrokenPipeError():
            return 128 + signal.SIGPIPE
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            message, status = f"{where}{error.strerror or error}", ExitStatus.BROKEN
        case _:
            message, status = _defect(error), ExitStatus.BROKEN
    for note in getattr(error, "__notes__", ()):
        print(note, file=sys.stderr)
    print(f"fastenough: {clean(message)}", file=sys.stderr)
    return status


def _call(argv: Sequence[str] | None, signals: _Signals) -> int:
    """Run one command; its exit status."""
    try:
        status = int(cli.main(args=argv, prog_name="fastenough", standalone_mode=False, obj=signals) or ExitStatus.DONE)
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except SystemExit:  # click's own answer to a reader that has gone, with the status that means FAIL
        return 128 + signal.SIGPIPE
    except Exception as error:
        return _explain(error)
    return status


def _leave(status: int) -> None:
    """End; what standard output does not take any more is dropped, so that Python does not stumble over it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    sys.exit(status)


def _spelling(called: str) -> Callable[[str], str]:
    """What writes the commands in hints as the user calls them, such as ``bin/fastenough list``."""
    if not _CALL.fullmatch(called):
        return str
    hint = re.compile(rf"(?<![\w./-])fastenough(?= (?:{'|'.join(COMMANDS)}|--help)\b)")
    return lambda text: hint.sub(called, text)


def _require_umask() -> None:
    """What is made is never for everybody to write: a umask that takes nothing from others is that of no login."""
    mask = os.umask(0o077)
    os.umask(mask if mask & 0o002 else mask | 0o022)


def main(argv: list[str] | None = None) -> Any:
    """One command, from the names of the process to its exit status."""
    if "_FASTENOUGH_COMPLETE" in os.environ:
        sys.exit(import_module("fastenough.cli.completion").answer(cli))
    tame(_spelling(os.environ.get(CALLED, "")))
    _require_umask()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries remark to programmers is no news to who measures
    signals = _Signals()
    status = _call(argv, signals)
    _leave(128 + signals.first if signals.first else status)
