# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: one file per command, one line here for each."""

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
from fastenough.cli.lazy import LazyGroup
from fastenough.cli.output import clean, tame
from fastenough.model import BadInput, ExitStatus, FastenoughError, NotApplicable

COMMANDS = {
    "assess": ("fastenough.cli.assess", "Measure how this Linux wakes up real-time tasks under load, and judge it."),
    "run": ("fastenough.cli.run", "Run PROBE with PARAMETERS such as interval=200us priority=98, or a whole --plan."),
    "campaign": (
        "fastenough.cli.campaign",
        "A plan's runs as a whole: what they will be, how they stand, and making them.",
    ),
    "monitor": ("fastenough.cli.monitor", "Watch the real-time tasks of this machine, and say who delays them."),
    "list-probes": (
        "fastenough.cli.probes",
        "Name the probes and loads; of one PROBE, its parameters with their units.",
    ),
    "list": ("fastenough.cli.listing", "List the runs in the store, oldest first."),
    "show": ("fastenough.cli.show", "Show one RUN: its id, the unique beginning of it, or 'last'."),
    "compare": (
        "fastenough.cli.compare",
        "Compare up to three OTHERS with the run BASE: what follows, and each difference with its interval.",
    ),
    "ab": ("fastenough.cli.ab", "A/B-test a setting: pairs of runs of PROBE without and with it."),
    "hunt": ("fastenough.cli.hunt", "Search for the load under which PROBE is worst, and keep it as a load file."),
    "audit": (
        "fastenough.cli.audit",
        "Say what in this system costs latency or hides it, why, and what would change it.",
    ),
    "bound": (
        "fastenough.cli.bound",
        "Say which scheduling latency the kernel's own blocking allows, beside the longest seen.",
    ),
    "web": ("fastenough.cli.web", "Show the boards and runs of a store, or of a farm, as web pages."),
    "check": (
        "fastenough.cli.check",
        "Gate RUNS (without any, the newest campaign) against a baseline and a file of limits.",
    ),
    "farm": ("fastenough.cli.farm", "Many boards, watched for years: switched, measured and pulled by themselves."),
    "import": ("fastenough.cli.imports", "Import FILES that other tools wrote into the store, as runs."),
    "export": (
        "fastenough.cli.exports",
        "Write RUNS (ids, or the beginnings of ids) in a form that other programs read.",
    ),
    "report": (
        "fastenough.cli.report",
        "Report on RUNS (ids, or the beginnings of ids); without any, on the newest campaign.",
    ),
    "advise": (
        "fastenough.cli.advise",
        "Say which way to build a task that must keep a limit: which kernel, user space or a module, or hardware.",
    ),
    "reference": (
        "fastenough.cli.reference",
        "Show a published reference system NAME, with its source and what "
        "follows from its figures; without, list them.",
    ),
    "store": (
        "fastenough.cli.store",
        "Rebuild the index, verify that no recording has changed, or export every sample.",
    ),
    "doctor": ("fastenough.cli.doctor", "Say what can be measured here and what is missing, with the fix."),
    "gauge": ("fastenough.cli.gauge", "The external instrument: flash it, look at it, measure with it."),
    "bench": ("fastenough.cli.bench", "The virtual bench: a board, its pins and the gauge, with no hardware."),
    "calibrate": (
        "fastenough.cli.calibrate",
        "Inject known latencies and show that they are found: sizes in order, none missed (else status 4).",
    ),
    "completion": ("fastenough.cli.completion", "Print what makes SHELL complete the words of fastenough."),
}
"""Command name to the module that defines it as ``command``, loaded only when used, and the first sentence of its help:
the list of all commands is shown without loading any."""
CALLED = "FASTENOUGH_CALLED"
"""Environment variable: how the user called a program of this name that is not installed; bin/fastenough sets it."""
_CALL = re.compile(r"[\w./+-]{1,200}")


@click.group(cls=LazyGroup, lazily=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fastenough")
@click.pass_obj
def cli(signals: _Signals) -> None:
    """Is this Linux fast enough for this real-time job, and how sure can we be?"""
    signals.listen()


class _Signals:
    """The first signal ends the command as Ctrl-C does; its number says which exit status stands for that.

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


def _defect(error: Exception) -> str:
    """Nobody's input and nobody's machine is to blame; the trace goes where it can be sent from."""
    what = f"{type(error).__name__}: {error}"[:300]
    try:
        file, path = tempfile.mkstemp(prefix="fastenough-defect-", suffix=".txt")
        with os.fdopen(file, "w", errors="backslashreplace") as stream:
            traceback.print_exception(error, file=stream)
        where = f"with {path}"
    except OSError:
        where = "with what you did"
    return f"this is a defect of fastenough ({what}); please report it {where}"


def _explain(error: Exception) -> int:
    """Every error a person can fix is one line, with its exit status; above it what it notes, ready to be pasted."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            print(error.format_message(), file=sys.stderr)
            return ExitStatus.BAD_INPUT
        case click.ClickException():
            message, status = f"{error.format_message()} (see fastenough --help)", ExitStatus.BAD_INPUT
        case NotApplicable():
            message, status = f"not applicable: {error}", ExitStatus.NOT_APPLICABLE
        case BadInput():
            message, status = str(error), ExitStatus.BAD_INPUT
        case FastenoughError():
            message, status = str(error), ExitStatus.BROKEN
        case UnicodeEncodeError():
            message, status = f"{error.object}: this is no text in UTF-8; name it otherwise", ExitStatus.BAD_INPUT
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
