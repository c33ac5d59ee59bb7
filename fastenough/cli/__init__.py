# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: one file per command, one line here for each."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from fastenough import __version__
from fastenough.model import BadInput, ExitStatus, FastenoughError, NotApplicable

COMMANDS = {
    "assess": "fastenough.cli.assess",
    "run": "fastenough.cli.run",
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
def cli() -> None:
    """Is this Linux fast enough for this real-time job, and how sure can we be?"""


def _fail(message: str, status: ExitStatus) -> ExitStatus:
    print(f"fastenough: {message}", file=sys.stderr)
    return status


def main(argv: list[str] | None = None) -> Any:
    """Run one command; every error a person can mend is one line, with its exit status."""
    try:
        status = cli.main(args=argv, prog_name="fastenough", standalone_mode=False) or ExitStatus.DONE
    except click.exceptions.Exit as leaving:
        status = leaving.exit_code
    except click.ClickException as error:
        status = _fail(f"{error.format_message()} (see fastenough --help)", ExitStatus.BAD_INPUT)
    except NotApplicable as reason:
        status = _fail(f"not applicable: {reason}", ExitStatus.NOT_APPLICABLE)
    except BadInput as error:
        status = _fail(str(error), ExitStatus.BAD_INPUT)
    except FastenoughError as error:
        status = _fail(str(error), ExitStatus.BROKEN)
    except (KeyboardInterrupt, click.Abort):
        status = 130
    except BrokenPipeError:
        status = 141
    sys.exit(int(status))
