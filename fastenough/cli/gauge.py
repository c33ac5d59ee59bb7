# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough gauge``: the external instrument."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from serial.tools import list_ports

from fastenough.cli.output import print_json
from fastenough.cli.parameters import DURATION, json_option
from fastenough.link.gauge import Gauge, GaugeLost
from fastenough.link.gauge_calibration import read_self_test
from fastenough.link.gauge_flash import BOARDS, find_firmware, flash
from fastenough.link.gauge_protocol import Refused
from fastenough.link.gauge_run import GaugeRun, Periodic, Response, RunHead
from fastenough.model import BadInput, ExitStatus, Outcome
from fastenough.recording import Histogram, read_recording

IMPLEMENTATIONS = ["linux-user", "linux-kernel", "xenomai-user", "xenomai-kernel", "evl-user", "evl-kernel"]
_CALIBRATION_S = 2.0

port_argument = click.argument("port", required=False)


def find_port(named: str | None) -> str:
    """The port named, or the only one there is; raises BadInput."""
    if named:
        return named
    ports = [port.device for port in list_ports.comports() if port.vid is not None]
    if len(ports) != 1:
        found = "no USB serial port is there" if not ports else f"there are several ports: {', '.join(sorted(ports))}"
        raise BadInput(f"{found}; plug the gauge in, or name its port, as in: fastenough gauge id /dev/ttyACM0")
    return ports[0]


@contextlib.contextmanager
def _gauge(port: str | None) -> Iterator[Gauge]:
    try:
        with Gauge(find_port(port)) as gauge:
            yield gauge
    except Refused as error:
        raise BadInput(f"the gauge declines: {error}") from error


@click.group()
def command() -> None:
    """The external instrument: flash it, look at it, measure with it."""


@command.command("id")
@port_argument
@json_option
def identify(port: str | None, as_json: bool) -> None:
    """Who answers at PORT."""
    with _gauge(port) as gauge:
        identity = asdict(gauge.identity)
    if as_json:
        print_json({"port": gauge.port} | identity)
    else:
        print(f"gauge on {gauge.port}: {identity['mcu']}, firmware {identity['firmware']}, "
              f"resolution {identity['tick_ps'] / 1000:g} ns")


@command.command("flash")
@click.argument("board", type=click.Choice(list(BOARDS)))
@port_argument
@click.option("--dry-run", is_flag=True, help="Talk to the board, write nothing.")
@json_option
def flash_command(board: str, port: str | None, dry_run: bool, as_json: bool) -> None:
    """Bring the firmware onto BOARD at PORT."""
    image = find_firmware(BOARDS[board].mcu)
    where = find_port(port)
    flash(BOARDS[board], where, image, dry_run)
    if as_json:
        print_json({"board": board, "port": where, "image": str(image), "written": not dry_run})
    else:
        print(f"{board} at {where}: {'nothing written (dry run)' if dry_run else 'firmware written'}")


@command.command("selftest")
@port_argument
@json_option
def self_test(port: str | None, as_json: bool) -> int:
    """The instrument's own latency, with a wire from its output to its input."""
    with _gauge(port) as gauge:
        result = gauge.self_test()
        tick_ns = gauge.identity.tick_ps / 1000
    if as_json:
        print_json(result)
    elif result.passed:
        print(f"the gauge's own offset is {max(result.maximum.values()) * tick_ns:g} ns, steady")
    else:
        print("the self-test failed: is output wired to input, and nothing else to either?")
    return ExitStatus.DONE if result.passed else ExitStatus.BROKEN


def _request(probe: str, times: dict[str, int | None]) -> Response | Periodic:
    if probe == "response":
        if times["period"] is not None:
            raise BadInput("--period belongs to periodic; response takes --min, --max and --timeout")
        return Response(times["min"] or 3_000, times["max"] or 7_071_000, times["timeout"] or 1_000_000_000)
    if times["period"] is None:
        raise BadInput("periodic wants --period, the period the board is expected to keep, as in --period 1ms")
    return Periodic(times["period"], times["timeout"] or 1_000_000_000)


def _measure(run: GaugeRun, duration_ns: int, interval_ns: int) -> Outcome:
    """Polls once an interval until the time is over; interrupted, the recording still gets its end."""
    end_ns = time.monotonic_ns() + duration_ns
    try:
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            time.sleep(min(left_ns, interval_ns) / 1e9)
            run.poll()
    except KeyboardInterrupt:
        return run.end(Outcome.ABORTED, ["interrupted by the user"])
    except GaugeLost as error:
        return run.end(Outcome.FAILED, [str(error)])
    return run.end()


def _summary(path: Path) -> list[dict[str, Any]]:
    recording = read_recording(path)
    return [{"series": series.name, "count": total.total, "lost": recording.lost(series.id),
             "min_ns": _ns(total.minimum, series.unit_ns), "mean_ns": _ns(total.mean, series.unit_ns),
             "p99_ns": _ns(_p99(total), series.unit_ns), "max_ns": _ns(total.maximum, series.unit_ns)}
            for series in recording.series for total in [recording.totals[series.id]]]


def _p99(histogram: Histogram) -> int | None:
    return histogram.value_at_rank(-(-histogram.total * 99 // 100)) if histogram.total else None


def _ns(ticks: float | None, tick_ns: float) -> float | None:
    return None if ticks is None else ticks * tick_ns


def _print_summary(rows: list[dict[str, Any]], record: Path) -> None:
    for row in rows:
        if row["count"]:
            figures = ", ".join(f"{name} {row[name + '_ns'] / 1000:.3f}" for name in ("min", "mean", "p99", "max"))
            print(f"{row['series']}: {row['count']} samples, {row['lost']} lost; µs: {figures}")
        else:
            print(f"{row['series']}: no samples, {row['lost']} lost")
    print(f"recording: {record}")


@command.command("run")
@click.argument("probe", type=click.Choice(["response", "periodic"]))
@port_argument
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), required=True,
              help="File for the recording; must not exist.")
@click.option("-D", "--duration", "duration_ns", type=DURATION, default="10s", show_default=True)
@click.option("--interval", "interval_ns", type=DURATION, default="1s", show_default=True,
              help="How often the histogram is read.")
@click.option("--min", "min_ns", type=DURATION, help="Shortest wait before a stimulus.  [default: 3us]")
@click.option("--max", "max_ns", type=DURATION, help="Longest wait before a stimulus.  [default: 7071us]")
@click.option("--timeout", "timeout_ns", type=DURATION, help="An answer later than this is lost.  [default: 1s]")
@click.option("--period", "period_ns", type=DURATION, help="Period the board is expected to keep.")
@click.option("--implementation", type=click.Choice(IMPLEMENTATIONS), default="linux-user", show_default=True,
              help="What runs on the board.")
@click.option("--self-test", "self_test_path", type=click.Path(path_type=Path, dir_okay=False),
              help="What 'gauge selftest --json' said of this instrument, for the recording's head.")
@click.option("--emulated", is_flag=True, help="Board or gauge are simulated: no verdict may be given.")
@json_option
def run_command(probe: str, port: str | None, *, record: Path, duration_ns: int, interval_ns: int,
                min_ns: int | None, max_ns: int | None, timeout_ns: int | None, period_ns: int | None,
                implementation: str, self_test_path: Path | None, emulated: bool, as_json: bool) -> int:
    """Measure a board that runs PROBE, with the gauge at PORT, into a recording."""
    request = _request(probe, {"min": min_ns, "max": max_ns, "timeout": timeout_ns, "period": period_ns})
    if record.exists():
        raise BadInput(f"{record} exists; name another file")
    if not record.parent.is_dir():
        raise BadInput(f"{record.parent} is no directory; make it first")
    kept_test = read_self_test(self_test_path) if self_test_path else None
    with _gauge(port) as gauge:
        calibration = gauge.calibrate(_CALIBRATION_S)
        head = RunHead(uuid.uuid4().hex, implementation, ["emulated"] if emulated else [], calibration, kept_test)
        with record.open("wb") as stream:
            run = GaugeRun(gauge, request, head, stream, interval_ns)
            try:
                run.begin()
            except BaseException:
                record.unlink()
                raise
            outcome = _measure(run, duration_ns, interval_ns)
    rows = _summary(record)
    if as_json:
        print_json({"outcome": outcome.value, "recording": str(record), "series": rows})
    else:
        _print_summary(rows, record)
    if outcome is Outcome.ABORTED:
        return 130
    return ExitStatus.DONE if outcome is Outcome.COMPLETED else ExitStatus.BROKEN
