# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm alert``: tell Alertmanager or a webhook what happens on a farm's boards."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import click

from fastenough.cli.farm_run import farm_argument
from fastenough.cli.output import clean
from fastenough.cli.parameters import DURATION, json_option
from fastenough.farm.alerts import Alerting, Receiver
from fastenough.farm.config import read_farm
from fastenough.files import Untrusted, read_regular
from fastenough.history import History
from fastenough.model import BadInput, ExitStatus, FastenoughError

WEBHOOK_SETTING = "FASTENOUGH_WEBHOOK"
_MOST_ADDRESS_BYTES = 4096


def _webhook(file: Path | None) -> str:
    """Out of a file or the environment: the address of a webhook is often all that keeps others out."""
    if file is None:
        return os.environ.get(WEBHOOK_SETTING, "").strip()
    try:
        return read_regular(file, _MOST_ADDRESS_BYTES).decode().strip()
    except (OSError, Untrusted, UnicodeDecodeError) as error:
        raise BadInput(f"--webhook-file {file}: no address can be read there: {error}") from error


def _receivers(alertmanager: tuple[str, ...], webhook_file: Path | None, site: str) -> list[Receiver]:
    found = [Receiver(url, True, site) for url in alertmanager]
    webhook = _webhook(webhook_file)
    if webhook:
        found.append(Receiver(webhook, False, site))
    if not found:
        raise BadInput(
            f"nobody is told: give --alertmanager URL, --webhook-file FILE, or {WEBHOOK_SETTING} in the environment"
        )
    return found


@click.command("alert")
@farm_argument
@click.option("--alertmanager", multiple=True, metavar="URL", help="An Alertmanager, as in http://127.0.0.1:9093.")
@click.option(
    "--webhook-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File with the address of a webhook; without, it is {WEBHOOK_SETTING} of the environment, if any.",
)
@click.option("--site", default="", metavar="URL", help="The farm's website, which alerts then link to.")
@click.option("--every", "every_ns", type=DURATION, default="1m", show_default=True, help="How often to look.")
@click.option("--once", is_flag=True, help="Look once; the exit status is 4 where a receiver takes nothing.")
@json_option
def command(
    *,
    file: Path,
    alertmanager: tuple[str, ...],
    webhook_file: Path | None,
    site: str,
    every_ns: int,
    once: bool,
    as_json: bool,
) -> ExitStatus:
    """Tell of each new maximum, changed tail, FAIL and silent board of FARM.toml, once, until it is accepted.

    Where a receiver takes nothing, that is said once; with --json as a line of JSON for each change of it.
    """
    farm = read_farm(file)
    receivers = _receivers(alertmanager, webhook_file, site)
    with closing(History.at(farm.database)) as history:
        alerting, told = Alerting(history, receivers), ["not looked yet"] if as_json else []
        while True:
            faults = _looked(alerting)
            if faults != told:
                _tell(faults, as_json)
            told = faults
            if once:
                return ExitStatus.BROKEN if faults else ExitStatus.DONE
            time.sleep(every_ns / 1e9)


def _looked(alerting: Alerting) -> list[str]:
    try:
        return alerting.look(int(time.time()))
    except FastenoughError as error:
        return [str(error)]


def _tell(faults: list[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"faults": faults}), flush=True)
    else:
        said = "; ".join(faults) or "all alerts are accepted again"
        print(f"fastenough: {clean(said)}", file=sys.stderr, flush=True)
