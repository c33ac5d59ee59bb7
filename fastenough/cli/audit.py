# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit``: what in this system costs latency or hides it, why, and what would change it."""

from __future__ import annotations

import click

from fastenough.cli.audit_findings import print_audit, summary
from fastenough.cli.looking import looked_at
from fastenough.cli.output import print_json
from fastenough.cli.parameters import json_option
from fastenough.jobs.audit import audit_board
from fastenough.model import ExitStatus


@click.command()
@click.option("--board", default="local", show_default=True, help="Which board to look at.")
@click.option("--all", "everything", is_flag=True, help="Also what is fine, and why something cannot be known.")
@json_option
def command(board: str, everything: bool, as_json: bool) -> ExitStatus:
    """Say what in this system costs latency or hides it, why, and what would change it.

    It looks at facts and changes nothing; status 0 when it could look.  What is not known is never called fine.
    """
    with looked_at(board) as (link, _):
        found = audit_board(board, link)
    if as_json:
        print_json({"board": found.board, "machine": found.machine, "conclusion": summary(found),
                    "findings": found.findings})
    else:
        print_audit(found, everything)
    return ExitStatus.DONE
