# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough gauge``: the external instrument."""

from __future__ import annotations

from dataclasses import asdict

import click

from fastenough.cli.commands import Group
from fastenough.cli.gauge_measure import run_command
from fastenough.cli.gauge_opening import opened, port_argument
from fastenough.cli.output import print_json, print_table
from fastenough.cli.parameters import DURATION, json_option
from fastenough.gauge.calibration import Calibration
from fastenough.gauge.flash import BOARDS, find_firmware
from fastenough.gauge.ports import find_port, ports
from fastenough.model import ExitStatus


@click.group(cls=Group)
def command() -> None:
    """Flash, identify, test and run the instrument.

    The gauge is an external instrument that measures a board from outside (docs/gauge.md).
    """


command.add_command(run_command)


@command.command("list", example="fastenough gauge list")
@json_option
def list_command(as_json: bool) -> None:
    """List the serial ports.

    Shows the serial numbers, by which a gauge can be named.
    """
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
        print("no USB serial port; connect the gauge")


@command.command("id", example="fastenough gauge id /dev/ttyACM0")
@port_argument
@json_option
def identify(port: str | None, as_json: bool) -> None:
    """Identify the gauge at a port.

    Prints its processor, firmware and resolution.
    """
    with opened(port) as gauge:
        identity = asdict(gauge.identity)
    if as_json:
        print_json({"port": gauge.port} | identity)
    else:
        print(
            f"gauge on {gauge.port}: {identity['mcu']}, firmware {identity['firmware']}, "
            f"resolution {identity['tick_ps'] / 1000:g} ns{', simulated' if identity['simulated'] else ''}"
        )


@command.command("stop", example="fastenough gauge stop")
@port_argument
@json_option
def stop(port: str | None, as_json: bool) -> None:
    """Stop a measurement of the gauge.

    For a gauge that still measures after its program was killed.
    """
    with opened(port) as gauge:
        stopped = gauge.was_measuring
    if as_json:
        print_json({"port": gauge.port, "stopped": stopped})
    else:
        print(f"gauge on {gauge.port}: {'measurement stopped' if stopped else 'was not measuring'}")


@command.command("flash", example="fastenough gauge flash uno /dev/ttyACM0")
@click.argument("board", type=click.Choice(list(BOARDS)))
@port_argument
@click.option("--dry-run", is_flag=True, help="Connect to the board, write nothing.")
@json_option
def flash_command(board: str, port: str | None, dry_run: bool, as_json: bool) -> None:
    """Write the firmware to a board.

    Writes the firmware of the gauge to BOARD at PORT.
    """
    image = find_firmware(BOARDS[board])
    where = find_port(port)
    BOARDS[board].flash(where, image, dry_run)
    if as_json:
        print_json({"board": board, "port": where, "image": str(image), "written": not dry_run})
    else:
        print(f"{board} at {where}: {'nothing written (dry run)' if dry_run else 'firmware written'}")


@command.command("selftest", example="fastenough gauge selftest --json >selftest.json")
@port_argument
@json_option
def self_test(port: str | None, as_json: bool) -> int:
    """Measure the latency of the instrument itself.

    Requires a wire from its output to its input.
    """
    with opened(port) as gauge:
        result = gauge.self_test()
        tick_ns = gauge.identity.tick_ps / 1000
    if as_json:
        print_json({"serial": gauge.serial} | asdict(result))
    elif result.passed:
        print(f"self-test passed: constant offset of {max(result.maximum.values()) * tick_ns:g} ns")
    else:
        print("self-test failed: connect the output to the input, and nothing else to either")
    return ExitStatus.DONE if result.passed else ExitStatus.BROKEN


@command.command("calibrate", example="fastenough gauge calibrate --json >calibration.json")
@port_argument
@click.option("-D", "--duration", "duration_ns", type=DURATION, default="5m", show_default=True, help="Measuring time.")
@click.option(
    "--pps", is_flag=True, help="Compare with a pulse per second on the gauge's input instead of this machine's clock."
)
@json_option
def calibrate(port: str | None, duration_ns: int, pps: bool, as_json: bool) -> None:
    """Measure the length of the gauge's tick.

    The output with --json is the input of 'gauge run --calibration'.
    """
    with opened(port) as gauge:
        measured = gauge.calibrate_by_pps(duration_ns / 1e9) if pps else gauge.calibrate(duration_ns / 1e9)
        nominal_ps = gauge.identity.tick_ps
    if as_json:
        print_json({"serial": gauge.serial} | asdict(measured))
    else:
        print(_clock(measured, nominal_ps))


def _clock(measured: Calibration, nominal_ps: int) -> str:
    return (
        f"a tick is {measured.tick_ps:.3f} ps, {measured.off_ppm(nominal_ps):+.1f} ppm from {nominal_ps} ps; "
        f"uncertainty {measured.total_ppm:.1f} ppm: comparison {measured.uncertainty_ppm:.1f}, "
        f"{measured.reference} {measured.reference_ppm or 0:.1f}"
    )
