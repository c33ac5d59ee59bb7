# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough gauge``: the external instrument."""

from __future__ import annotations

from dataclasses import asdict

import click

from fastenough.cli.gauge_measure import run_command
from fastenough.cli.gauge_opening import opened, port_argument
from fastenough.cli.output import print_json, print_table
from fastenough.cli.parameters import DURATION, json_option
from fastenough.gauge.calibration import Calibration
from fastenough.gauge.flash import BOARDS, find_firmware
from fastenough.gauge.ports import find_port, ports
from fastenough.model import ExitStatus


@click.group()
def command() -> None:
    """The external instrument: flash it, look at it, measure with it."""


command.add_command(run_command)


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """The serial ports there are, with the serial numbers by which gauges can be named."""
    found = ports()
    if as_json:
        print_json(found)
    elif found:
        print_table(
            "",
            ("port", "serial number", "product"),
            ((port.device, port.serial or "–", port.product or "–") for port in found),
            texts=3,
        )
    else:
        print("no USB serial port is there; plug the gauge in")


@command.command("id")
@port_argument
@json_option
def identify(port: str | None, as_json: bool) -> None:
    """Who answers at PORT."""
    with opened(port) as gauge:
        identity = asdict(gauge.identity)
    if as_json:
        print_json({"port": gauge.port} | identity)
    else:
        print(
            f"gauge on {gauge.port}: {identity['mcu']}, firmware {identity['firmware']}, "
            f"resolution {identity['tick_ps'] / 1000:g} ns{', simulated' if identity['simulated'] else ''}"
        )


@command.command("stop")
@port_argument
@json_option
def stop(port: str | None, as_json: bool) -> None:
    """End what a program that was killed has left the gauge at PORT measuring."""
    with opened(port) as gauge:
        stopped = gauge.was_measuring
    if as_json:
        print_json({"port": gauge.port, "stopped": stopped})
    else:
        print(f"gauge on {gauge.port}: {'it was measuring, and is stopped' if stopped else 'it was at rest'}")


@command.command("flash")
@click.argument("board", type=click.Choice(list(BOARDS)))
@port_argument
@click.option("--dry-run", is_flag=True, help="Talk to the board, write nothing.")
@json_option
def flash_command(board: str, port: str | None, dry_run: bool, as_json: bool) -> None:
    """Bring the firmware onto BOARD at PORT."""
    image = find_firmware(BOARDS[board])
    where = find_port(port)
    BOARDS[board].flash(where, image, dry_run)
    if as_json:
        print_json({"board": board, "port": where, "image": str(image), "written": not dry_run})
    else:
        print(f"{board} at {where}: {'nothing written (dry run)' if dry_run else 'firmware written'}")


@command.command("selftest")
@port_argument
@json_option
def self_test(port: str | None, as_json: bool) -> int:
    """The instrument's own latency, with a wire from its output to its input."""
    with opened(port) as gauge:
        result = gauge.self_test()
        tick_ns = gauge.identity.tick_ps / 1000
    if as_json:
        print_json({"serial": gauge.serial} | asdict(result))
    elif result.passed:
        print(f"the gauge's own offset is {max(result.maximum.values()) * tick_ns:g} ns, steady")
    else:
        print("the self-test failed: is output wired to input, and nothing else to either?")
    return ExitStatus.DONE if result.passed else ExitStatus.BROKEN


@command.command("calibrate")
@port_argument
@click.option("-D", "--duration", "duration_ns", type=DURATION, default="5m", show_default=True)
@click.option("--pps", is_flag=True, help="Against a pulse per second on the gauge's input, not this machine's clock.")
@json_option
def calibrate(port: str | None, duration_ns: int, pps: bool, as_json: bool) -> None:
    """Measure the length of the gauge's tick; the output with --json is what 'gauge run --calibration' takes."""
    with opened(port) as gauge:
        measured = gauge.calibrate_by_pps(duration_ns / 1e9) if pps else gauge.calibrate(duration_ns / 1e9)
        nominal_ps = gauge.identity.tick_ps
    if as_json:
        print_json({"serial": gauge.serial} | asdict(measured))
    else:
        print(_clock(measured, nominal_ps))


def _clock(measured: Calibration, nominal_ps: int) -> str:
    return (
        f"a tick is {measured.tick_ps:.3f} ps, {measured.off_ppm(nominal_ps):+.1f} ppm off {nominal_ps} ps; "
        f"uncertain by {measured.total_ppm:.1f} ppm: the comparison {measured.uncertainty_ppm:.1f}, "
        f"{measured.reference} {measured.reference_ppm or 0:.1f}"
    )
