# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm alert``: alerts to Alertmanager or a webhook on the boards of a farm."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import click

from fastenough.cli.commands import Command
from fastenough.cli.farm_boards import farm_argument
from fastenough.cli.options import DURATION, json_option
from fastenough.cli.output import clean
from fastenough.farm.alerts import Alerting, Receiver
from fastenough.farm.config import Farm, read_farm
from fastenough.files import Untrusted, read_regular
from fastenough.history import History
from fastenough.history.tail import TailWatch
from fastenough.model import BadInput, ExitStatus, FastenoughError

WEBHOOK_SETTING = "FASTENOUGH_WEBHOOK"
_MOST_ADDRESS_BYTES = 4096


def _webhook(file: Path | None) -> str:
    """The address, from a file or the environment: it is often the only secret of a webhook."""
    if file is None:
        return os.environ.get(WEBHOOK_SETTING, "").strip()
    try:
        return read_regular(file, _MOST_ADDRESS_BYTES).decode().strip()
    except (OSError, Untrusted, UnicodeDecodeError) as error:
        raise BadInput(f"--webhook-file {file}: cannot read the address: {error}") from error


def _receivers(alertmanager: tuple[str, ...], webhook_file: Path | None, site: str) -> list[Receiver]:
    receivers = [Receiver(url, True, site) for url in alertmanager]
    webhook = _webhook(webhook_file)
    if webhook:
        receivers.append(Receiver(webhook, False, site))
    if not receivers:
        raise BadInput(
            f"no receiver: give --alertmanager URL, --webhook-file FILE, or {WEBHOOK_SETTING} in the environment"
        )
    return receivers


@click.command("alert", cls=Command, example="fastenough farm alert FARM.toml --alertmanager http://127.0.0.1:9093")
@farm_argument
@click.option(
    "--alertmanager",
    multiple=True,
    metavar="URL",
    help="Address of an Alertmanager, as in http://127.0.0.1:9093; may be repeated.",
)
@click.option(
    "--webhook-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File with the address of a webhook  [default: {WEBHOOK_SETTING} in the environment, if set]",
)
@click.option("--site", default="", metavar="URL", help="Address of the farm's website, for links in alerts.")
@click.option("--every", "every_ns", type=DURATION, default="1m", show_default=True, help="Interval between checks.")
@click.option("--once", is_flag=True, help="Check once; the exit status is 4 if a receiver does not accept alerts.")
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
    """Send alerts on the boards of a farm.

    Sends one alert for each new maximum, tail change, FAIL, silent board and refused recording, and repeats it until
    the receiver accepts it.  A receiver that does not accept alerts is reported once; with --json as a line of JSON.
    """
    farm = read_farm(file)
    receivers = _receivers(alertmanager, webhook_file, site)
    with closing(History.at(farm.database)) as history:
        alerting, printed = Alerting(history, receivers, _tails(farm)), ["not checked yet"] if as_json else []
        while True:
            now, faults = _reread_farm(file, farm)
            if now != farm:
                farm, alerting.tails = now, _tails(now)
            faults += _check(alerting)
            if faults != printed:
                _print_faults(faults, as_json)
            printed = faults
            if once:
                return ExitStatus.BROKEN if faults else ExitStatus.DONE
            time.sleep(every_ns / 1e9)


def _tails(farm: Farm) -> TailWatch:
    return TailWatch([board.name for board in farm.boards], farm.false_changes)


def _reread_farm(file: Path, farm: Farm) -> tuple[Farm, list[str]]:
    """The farm's file as it is now; its former contents and the reason if it cannot be read."""
    try:
        return read_farm(file), []
    except BadInput as error:
        return farm, [str(error)]


def _check(alerting: Alerting) -> list[str]:
    try:
        return alerting.look(int(time.time()))
    except FastenoughError as error:
        return [str(error)]


def _print_faults(faults: list[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"faults": faults}), flush=True)
    else:
        line = "; ".join(faults) or "all receivers accept alerts again"
        print(f"fastenough: {clean(line)}", file=sys.stderr, flush=True)
