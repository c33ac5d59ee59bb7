# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: one file per command, one line here for each."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Any

import click

from fastenough import __version__
from fastenough.cli.output import clean, tame
from fastenough.model import BadInput, ExitStatus, FastenoughError, NotApplicable

COMMANDS = {
    "assess": "fastenough.cli.assess",
    "run": "fastenough.cli.run",
    "list-probes": "fastenough.cli.probes",
    "list": "fastenough.cli.listing",
    "show": "fastenough.cli.show",
    "compare": "fastenough.cli.compare",
    "report": "fastenough.cli.report",
    "store": "fastenough.cli.store",
    "doctor": "fastenough.cli.doctor",
    "gauge": "fastenough.cli.gauge",
    "bench": "fastenough.cli.bench",
    "calibrate": "fastenough.cli.calibrate",
}
"""Command name to the module that defines it as ``command``; loaded only when used."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
    """Every error a person can fix is one line, with its exit status."""
    match error:
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
    print(f"fastenough: {clean(message)}", file=sys.stderr)
    return status


def _call(argv: Sequence[str] | None, signals: _Signals) -> int:
    """Run one command; its exit status."""
    try:
        status = int(cli.main(args=argv, prog_name="fastenough", standalone_mode=False, obj=signals)
                     or ExitStatus.DONE)
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


def main(argv: list[str] | None = None) -> Any:
    """One command, from the names of the process to its exit status."""
    tame()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries remark to programmers is no news to who measures
    signals = _Signals()
    status = _call(argv, signals)
    _leave(128 + signals.first if signals.first else status)
