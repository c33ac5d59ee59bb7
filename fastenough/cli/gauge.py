# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough gauge``: the external instrument."""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

import click

from fastenough import words
from fastenough.campaign.standalone_gauge import StatedBoard, StoredRun
from fastenough.cli.commands import Command, Group, Option
from fastenough.cli.options import DURATION, json_option, store_option
from fastenough.cli.output import print_json, print_table
from fastenough.gauge.calibration import Calibration, SelfTest, read_calibration, read_self_test, select_calibration
from fastenough.gauge.flash import BOARDS, find_firmware
from fastenough.gauge.ports import find_port, ports
from fastenough.gauge.protocol import Refused
from fastenough.gauge.run import GaugeRun, Periodic, Response, RunHead
from fastenough.gauge.session import Gauge
from fastenough.implementations import IMPLEMENTATIONS
from fastenough.model import EMULATED, BadInput, ExitStatus, FastenoughError, Outcome
from fastenough.recording import Histogram, Recording, read_recording
from fastenough.recording.building import LineStream
from fastenough.store import Store

port_argument = click.argument("port", required=False)


@contextlib.contextmanager
def open_gauge(port: str | None) -> Iterator[Gauge]:
    """The gauge at a port or with a serial number, or the only gauge; raises BadInput if it refuses a request."""
    try:
        with Gauge(find_port(port)) as gauge:
            yield gauge
    except Refused as error:
        raise BadInput(f"refused by the gauge: {error}") from error


_CALIBRATION_S = 2.0


def _request(probe: str, times: dict[str, int | None]) -> Response | Periodic:
    if probe == "response":
        if times["period"] is not None:
            raise BadInput("--period is an option of periodic; response has --min, --max and --timeout")
        return Response(times["min"] or 3_000, times["max"] or 7_071_000, times["timeout"] or 1_000_000_000)
    if times["period"] is None:
        raise BadInput("periodic requires --period, the nominal period of the board, as in --period 1ms")
    return Periodic(times["period"], times["timeout"] or 1_000_000_000)


def _measure(run: GaugeRun, duration_ns: int, interval_ns: int) -> Outcome:
    """Poll once per interval until the time is over, and write the end, also after an interrupt or an error."""
    end_ns = time.monotonic_ns() + duration_ns
    try:
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            run.wait(min(left_ns, interval_ns) / 1e9)
            run.poll()
        run.complete_cycle()
    except KeyboardInterrupt:
        return run.end(Outcome.ABORTED, ["interrupted by the user"])
    except FastenoughError as error:
        return run.end(Outcome.FAILED, [str(error)])
    return run.end()


class SeriesSummary(TypedDict):
    """Samples of a series, and their statistics in ns; None without samples.

    ``missed``: due edges of a period that did not come.
    """

    series: str
    count: int
    lost: int
    missed: int
    min_ns: float | None
    mean_ns: float | None
    p99_ns: float | None
    max_ns: float | None


def _summary(recording: Recording) -> list[SeriesSummary]:
    return [
        {
            "series": series.name,
            "count": total.total,
            "lost": recording.lost(series.id),
            "missed": recording.missed(series.id),
            "min_ns": _ns(total.minimum, series.unit_ns),
            "mean_ns": _ns(total.mean, series.unit_ns),
            "p99_ns": _ns(_p99(total), series.unit_ns),
            "max_ns": _ns(total.maximum, series.unit_ns),
        }
        for series in recording.series
        for total in [recording.totals[series.id]]
    ]


def _p99(histogram: Histogram) -> int | None:
    return histogram.value_at_rank(-(-histogram.total * 99 // 100)) if histogram.total else None


def _ns(ticks: float | None, tick_ns: float) -> float | None:
    return None if ticks is None else ticks * tick_ns


def figures(row: SeriesSummary) -> str:
    """Values of a row in µs, to whole ns; minima rounded down, maxima up."""
    values: tuple[tuple[str, float | None, Callable[[float], int]], ...] = (
        ("min", row["min_ns"], math.floor),
        ("mean", row["mean_ns"], round),
        ("p99", row["p99_ns"], math.ceil),
        ("max", row["max_ns"], math.ceil),
    )
    return ", ".join(f"{name} {whole(ns) / 1000:.3f}" for name, ns, whole in values if ns is not None)


def _print_summary(rows: list[SeriesSummary], reasons: list[str], where: str) -> None:
    for row in rows:
        missed = f", {words.counted(row['missed'], 'missed period')}" if row["missed"] else ""
        if row["count"]:
            print(f"{row['series']}: {row['count']} samples, {row['lost']} lost{missed}; µs: {figures(row)}")
        else:
            print(f"{row['series']}: no samples, {row['lost']} lost")
    for reason in reasons:
        print(f"not completed: {reason}")
    print(where)


@dataclass(frozen=True)
class _InstrumentFiles:
    """Paths of the self-test and the calibration of the instrument."""

    self_test: Path | None
    calibration: Path | None

    def read(self, serial: str | None) -> tuple[SelfTest | None, Calibration | None]:
        return (
            read_self_test(self.self_test, serial) if self.self_test else None,
            read_calibration(self.calibration, serial) if self.calibration else None,
        )


class _FileTarget:
    """A file for the recording, instead of the store."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise BadInput(f"{path} exists; name a new file")
        if not path.parent.is_dir():
            raise BadInput(f"{path.parent}: no such directory; create it first")
        self._path = path
        self.where = f"recording: {path}"
        self.location = {"recording": str(path)}

    @contextmanager
    def stream(self) -> Iterator[LineStream]:
        """A stream to the file, which is removed if nothing was written."""
        with self._path.open("xb") as stream:
            try:
                yield stream
            finally:
                if stream.tell() == 0:
                    self._path.unlink()

    def recording(self) -> Recording:
        return read_recording(self._path)


class _StoreTarget:
    """A run in the store."""

    def __init__(self, path: Path, probe: str, stated_board: StatedBoard) -> None:
        self._store = Store(path)
        self._store.settle()
        self._run = StoredRun(self._store, probe, stated_board)
        self._path = path

    @contextmanager
    def stream(self) -> Iterator[LineStream]:
        try:
            yield self._run
        finally:
            self._run.seal()

    @property
    def _id(self) -> str:
        assert self._run.writer is not None
        return self._run.writer.id

    @property
    def where(self) -> str:
        store = "" if self._path == Path("fastenough-data") else f" --store {self._path}"
        return f"see: fastenough show {self._id}{store}"

    @property
    def location(self) -> dict[str, str]:
        return {"run": self._id, "store": str(self._path)}

    def recording(self) -> Recording:
        return self._store.load(self._id)


@click.group(cls=Group)
def command() -> None:
    """Flash, identify, test and run the instrument.

    The gauge is an external instrument that measures a board from outside (docs/gauge.md).
    """


@command.command("list", example="fastenough gauge list")
@json_option
def list_command(as_json: bool) -> None:
    """List the serial ports.

    Shows their serial numbers; the other commands accept a serial number as PORT.
    """
    usb_ports = ports()
    if as_json:
        print_json(usb_ports)
    elif usb_ports:
        print_table(
            "",
            ("port", "serial number", "product"),
            ((port.device, port.serial or "–", port.product or "–") for port in usb_ports),
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
    with open_gauge(port) as gauge:
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
    with open_gauge(port) as gauge:
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

    The board is an Arduino at PORT, or a Pico whose drive is mounted at PORT.
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
    with open_gauge(port) as gauge:
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

    Save the output with --json, and pass the file to 'gauge run --calibration'.
    """
    with open_gauge(port) as gauge:
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


@click.command("run", cls=Command, example="fastenough gauge run response --board local --duration 1m")
@click.argument("probe", type=click.Choice(["response", "periodic"]))
@port_argument
@click.option(
    "--out",
    "record",
    cls=Option,
    former_names=["--record"],
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file for the recording, instead of the store.",
)
@store_option
@click.option(
    "-D", "--duration", "duration_ns", type=DURATION, default="10s", show_default=True, help="Measuring time."
)
@click.option(
    "--interval",
    "interval_ns",
    type=DURATION,
    default="1s",
    show_default=True,
    help="Interval between readings of the histogram.",
)
@click.option("--min", "min_ns", type=DURATION, help="Shortest wait before a stimulus.  [default: 3us]")
@click.option("--max", "max_ns", type=DURATION, help="Longest wait before a stimulus.  [default: 7071us]")
@click.option(
    "--timeout",
    "timeout_ns",
    type=DURATION,
    help="Longest response time; later responses count as lost.  [default: 1s]",
)
@click.option("--period", "period_ns", type=DURATION, help="Nominal period of the board.")
@click.option(
    "--implementation",
    type=click.Choice(list(IMPLEMENTATIONS)),
    default="linux-user",
    show_default=True,
    help="Where the measured task runs on the board.",
)
@click.option(
    "--board", metavar="NAME", help="Name of the board; if it is 'local' (this machine), its profile is collected."
)
@click.option("--configuration", metavar="NAME", help="Configuration of the board, such as its kernel release.")
@click.option("--load", metavar="NAME", help="Load on the board, 'none' for no load; not verified.")
@click.option(
    "--self-test",
    "self_test_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Output of 'gauge selftest --json' of this instrument, for the recording.",
)
@click.option(
    "--calibration",
    "calibration_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Output of 'gauge calibrate --json' of this instrument  [default: a comparison of 2 s]",
)
@click.option(
    "--emulated", is_flag=True, help="Mark the recording as that of a simulated board, which gets no verdict."
)
@json_option
def run_command(
    probe: str,
    port: str | None,
    *,
    record: Path | None,
    store_path: Path,
    duration_ns: int,
    interval_ns: int,
    min_ns: int | None,
    max_ns: int | None,
    timeout_ns: int | None,
    period_ns: int | None,
    implementation: str,
    board: str | None,
    configuration: str | None,
    load: str | None,
    self_test_path: Path | None,
    calibration_path: Path | None,
    emulated: bool,
    as_json: bool,
) -> int:
    """Measure a board with the gauge.

    The board must run the same probe.  PORT is a serial port or the serial number of the gauge.  The result is a run
    of the store, or a recording in a file (--out).
    """
    request = _request(probe, {"min": min_ns, "max": max_ns, "timeout": timeout_ns, "period": period_ns})
    files = _InstrumentFiles(self_test_path, calibration_path)
    files.read(None)
    target = _FileTarget(record) if record else _StoreTarget(store_path, probe, StatedBoard(board, configuration, load))
    with open_gauge(port) as gauge, target.stream() as stream:
        self_test, stored_calibration = files.read(gauge.serial)
        clock = select_calibration(stored_calibration, gauge.calibrate(_CALIBRATION_S))
        head = RunHead(uuid.uuid4().hex, implementation, [EMULATED] if emulated else [], clock, self_test)
        run = GaugeRun(gauge, request, head, stream, interval_ns)
        run.begin()
        outcome = _measure(run, duration_ns, interval_ns)
    recording = target.recording()
    rows, reasons = _summary(recording), list(recording.reasons)
    if as_json:
        print_json({"outcome": outcome.value, "reasons": reasons, **target.location, "series": rows})
    else:
        _print_summary(rows, reasons, target.where)
    if outcome is Outcome.ABORTED:
        return 130
    return ExitStatus.DONE if outcome is Outcome.COMPLETED else ExitStatus.BROKEN


command.add_command(run_command)
