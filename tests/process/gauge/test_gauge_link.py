# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench's side of the gauge, with the real firmware on a pseudo-terminal; bad instruments; unplugging."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastenough.gauge.line import Line
from fastenough.gauge.protocol import (
    Counters,
    Damaged,
    Identity,
    Refused,
    checked_text,
    crc16,
    parse_counters,
    parse_identity,
    parse_reply,
    parse_take,
    with_crc,
)
from fastenough.gauge.run import GaugeRun, Response, RunHead
from fastenough.gauge.session import Gauge
from fastenough.gauge.stream import Frame, Splitter, latencies, parse_frame
from fastenough.model import BadInput, Outcome
from fastenough.recording import read_recording
from tests.support.gauge_simulation import ROOT, Build, Follower, Impostor, RealtimeGauge, Relay, gauge_command
from tests.support.json_documents import require_valid
from tests.support.presence import present
from tests.support.processes import eventually, recorded


def one_line(done: subprocess.CompletedProcess[str], status: int) -> str:
    assert done.returncode == status, done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_a_run_accounts_for_every_edge(instrument: RealtimeGauge, tmp_path: Path) -> None:
    board = Follower(instrument.pins)
    with Gauge(instrument.port) as gauge, (tmp_path / "run").open("wb") as stream:
        run = GaugeRun(
            gauge,
            Response(1_000_000, 2_000_000, 500_000_000),
            RunHead("run", "linux-user", ["emulated"]),
            stream,
            200_000_000,
        )
        run.begin()
        for _ in range(5):
            board.hear(25)
            run.poll()
        board.deaf = 1
        board.hear(10)  # the time-out is over then
        assert run.end() is Outcome.COMPLETED
    counted = run.counters
    assert counted
    recording = read_recording(tmp_path / "run")
    stored = sum(total.total for total in recording.totals.values())
    lost = sum(recording.lost(series) for series in (0, 1))
    assert stored > 100
    assert lost == 1
    assert counted.common["sent"] == stored + lost
    assert board.seen == counted.common["sent"] + counted.common["resync_edges"]
    assert board.answered == board.seen - 1
    assert recording.end and recording.end.outcome == "completed"
    ended = instrument.end()
    assert ended["edges_out"] == board.seen
    assert ended["edges_in"] == board.answered


@pytest.mark.slow
def test_the_command_writes_a_recording(instrument: RealtimeGauge, tmp_path: Path) -> None:
    board = Follower(instrument.pins)
    record = tmp_path / "gauge.jsonl"
    kept = tmp_path / "selftest.json"
    kept.write_text('{"passed": true, "minimum": {"0": 3, "1": 3}, "maximum": {"0": 3, "1": 4}}')
    done = gauge_command(
        "run",
        "response",
        instrument.port,
        "--record",
        str(record),
        "-D",
        "2s",
        "--interval",
        "500ms",
        "--min",
        "500us",
        "--max",
        "2ms",
        "--self-test",
        str(kept),
        "--emulated",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    said = require_valid("gauge run", done.stdout)
    recording = read_recording(record)
    assert [row["count"] for row in said["series"]] == [recording.totals[series].total for series in (0, 1)]
    assert sum(row["count"] for row in said["series"]) == board.answered
    instrument_head = present(recording.head.instrument, "instrument")
    assert instrument_head["mcu"] == "atmega328p"
    clock = instrument_head["calibration"]
    assert abs(clock["tick_ps"] / 62_500 - 1) * 1e6 <= clock["uncertainty_ppm"] + clock["reference_ppm"]
    assert recording.head.marks == {"emulated"}
    assert instrument_head["self_test"]["maximum"] == {"0": 3, "1": 4}
    assert recording.head.cost_ns == {"gauge_offset_ns": 250.0}
    assert recording.head.interval_ns == 500_000_000
    lengths_ns = [interval.end_mono_ns - interval.begin_mono_ns for interval in recording.intervals]
    assert len(lengths_ns) >= 2, "one a time-out, however long this machine took to read it, and the rest"
    assert all(length_ns >= 500_000_000 for length_ns in lengths_ns[:-2])
    assert one_line(gauge_command("run", "response", instrument.port, "--record", str(record)), 2).endswith(
        "exists; name a new file\n"
    )


@pytest.mark.slow
def test_periods_of_a_board(instrument: RealtimeGauge, tmp_path: Path) -> None:
    board = Follower(instrument.pins)
    ending = threading.Event()

    def toggle() -> None:
        due_ns, level = time.monotonic_ns(), 0
        while not ending.is_set():
            with contextlib.suppress(OSError):
                board.say(f"in {level} {due_ns}\n")
            due_ns, level = due_ns + 2_500_000, level ^ 1
            time.sleep(max(0.0, (due_ns - time.monotonic_ns()) / 1e9))

    toggling = threading.Thread(target=toggle)
    toggling.start()
    record = tmp_path / "gauge.jsonl"
    done = gauge_command(
        "run", "periodic", instrument.port, "--record", str(record), "-D", "2s", "--period", "5ms", "--emulated"
    )
    ending.set()
    toggling.join()
    assert done.returncode == 0, done.stderr
    recording = read_recording(record)
    assert recording.totals[0].total > 100
    assert recording.series[0].period_ns == 5_000_000
    # due times are given exactly; an edge that came too late to be put back is off, but most are not
    assert recording.totals[0].value_at_rank(recording.totals[0].total // 2) <= 64


def test_identity_and_self_test(instrument: RealtimeGauge) -> None:
    said = require_valid("gauge id", gauge_command("id", instrument.port, "--json").stdout)
    assert (said["mcu"], said["tick_ps"], said["k"]) == ("atmega328p", 62_500, 4)
    assert "resolution 62.5 ns" in gauge_command("id", instrument.port).stdout
    failed = gauge_command("selftest", instrument.port)
    assert failed.returncode == 4
    assert "connect the output to the input" in failed.stdout
    said = require_valid("gauge selftest", gauge_command("selftest", instrument.port, "--json").stdout)
    assert not said["passed"]


def test_streamed_samples_are_those_of_the_histogram(instrument: RealtimeGauge) -> None:
    Follower(instrument.pins)
    with Gauge(instrument.port) as gauge:
        gauge.stream(True)
        gauge.start_response(8_000, 16_000, 1_600_000)
        frames = list(gauge.frames(1.5))
        gauge.stop()
        frames += gauge.frames(0.3)
        histograms, counters = gauge.take(), gauge.counters()
    samples = [sample for frame in frames for sample in latencies(frame)]
    assert counters.common["stream_dropped"] == 0
    assert [frame.sequence for frame in frames] == [
        sum(len(before.samples) for before in frames[:at]) for at in range(len(frames))
    ]
    for series, histogram in histograms.items():
        values = [ticks for which, ticks in samples if which == series]
        assert (len(values), sum(values), max(values)) == (histogram.total, histogram.sum, histogram.maximum)


def test_unplugged_in_mid_run_keeps_the_data(instrument: RealtimeGauge, tmp_path: Path) -> None:
    Follower(instrument.pins)
    record = tmp_path / "gauge.jsonl"
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fastenough",
            "gauge",
            "run",
            "response",
            instrument.port,
            "--record",
            str(record),
            "-D",
            "60s",
            "--interval",
            "300ms",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert eventually(lambda: recorded(record, 2), 120)
    instrument.process.kill()
    out, errors = running.communicate(timeout=60)
    assert running.returncode == 4, errors
    recording = read_recording(record)
    assert recording.end and recording.end.outcome == "failed"
    assert "the gauge" in recording.end.reasons[0]
    assert sum(total.total for total in recording.totals.values()) > 0
    assert "samples" in out


@pytest.mark.slow
def test_what_is_damaged_on_its_way_is_asked_for_again(
    instrument: RealtimeGauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row, a statistic, an end mark, a command: nothing is lost, and the run is completed."""
    monkeypatch.setattr(Line, "silence_s", 2.0)
    board = Follower(instrument.pins)
    damage: list[tuple[bytes, bytes]] = []

    def damaged(data: bytes) -> bytes:
        """A byte changed when told."""
        for good, bad in damage:
            if good in data:
                damage.clear()
                return data.replace(good, bad, 1)
        return data

    with Relay(instrument.port, damaged) as port, Gauge(port) as gauge, (tmp_path / "run").open("wb") as stream:
        run = GaugeRun(gauge, Response(1_000_000, 2_000_000, 500_000_000), RunHead("run", "linux-user"), stream, 10**9)
        run.begin()
        for good, bad in (
            (b"\nb 0", b"\nb 1"),
            (b"series=1", b"serier=1"),
            (b"ok lines", b"ok pines"),
            (b"take", b"tale"),
            (b"stats", b"stuts"),
            (b"\nb 1", b"b 1"),
        ):
            damage.append((good, bad))
            polls = 0
            while damage and polls < 20:  # what is read at a time may end within the text
                board.hear(25)
                run.poll()
                polls += 1
            assert not damage
        assert run.end() is Outcome.COMPLETED
    recording = read_recording(tmp_path / "run")
    assert recording.end
    assert recording.end.counters["replies_damaged"] == 6
    stored = sum(total.total for total in recording.totals.values())
    assert [recording.lost(series) for series in (0, 1)] == [0, 0]
    assert run.counters
    assert stored == run.counters.common["sent"] > 0


@pytest.mark.slow
def test_interrupted_run_ends_its_recording(instrument: RealtimeGauge, tmp_path: Path) -> None:
    Follower(instrument.pins)
    record = tmp_path / "gauge.jsonl"
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fastenough",
            "gauge",
            "run",
            "response",
            instrument.port,
            "--record",
            str(record),
            "-D",
            "60s",
            "--interval",
            "300ms",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert eventually(lambda: recorded(record, 2), 120)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    recording = read_recording(record)
    assert recording.end and recording.end.outcome == "aborted"


@pytest.mark.untimed
@pytest.mark.slow
def test_ports_that_are_no_gauge(tmp_path: Path) -> None:
    assert "no such port" in one_line(gauge_command("id", "/dev/ttyNOTHING"), 2)
    plain = tmp_path / "file"
    plain.write_text("")
    assert "cannot be opened as a serial port" in one_line(gauge_command("id", str(plain)), 2)
    silent = Impostor(lambda data: b"")
    assert "no reply" in one_line(gauge_command("id", silent.port), 2)
    noise = Impostor(lambda data: b"\xff\x80\x13\n" * 3)
    assert "unreadable at 500000 baud" in one_line(gauge_command("id", noise.port), 2)


def _other_version(data: bytes) -> bytes:
    identity = "gauge=fastenough firmware=9.9 mcu=atmega328p protocol=7 tick_ps=62500 k=4 bits=24 simulated=0"
    return with_crc(identity) + b"\r\n" + with_crc("ok lines=1") + b"\r\n"


def test_firmware_of_another_version() -> None:
    other = Impostor(_other_version)
    assert "firmware 9.9 speaks protocol 7, this program 3; run: fastenough gauge flash" in one_line(
        gauge_command("id", other.port), 2
    )


def test_a_port_in_use(instrument: RealtimeGauge) -> None:
    with Gauge(instrument.port):
        assert "another program uses it" in one_line(gauge_command("id", instrument.port), 2)


def test_what_the_gauge_refuses(instrument: RealtimeGauge) -> None:
    with Gauge(instrument.port) as gauge:
        with pytest.raises(Refused, match="max must not be below min"):
            gauge.start_response(20, 10, 1000)
        with pytest.raises(Refused, match="period must be a number from 400"):
            gauge.start_periodic(10, 1000)
        gauge.start_response(10, 20, 100_000)
        with pytest.raises(Refused, match="stop first"):
            gauge.start_response(10, 20, 100_000)
        gauge.stop()


@pytest.mark.slow
def test_options_that_do_not_fit(instrument: RealtimeGauge, tmp_path: Path) -> None:
    record = str(tmp_path / "r")
    assert "periodic requires --period" in one_line(
        gauge_command("run", "periodic", instrument.port, "--record", record), 2
    )
    assert "too long for this gauge" in one_line(
        gauge_command("run", "response", instrument.port, "--record", record, "--timeout", "3s"), 2
    )
    assert "not a self-test; run" in one_line(
        gauge_command("run", "response", instrument.port, "--record", record, "--self-test", "/dev/null"), 2
    )
    assert "no such directory" in one_line(
        gauge_command("run", "response", instrument.port, "--record", "/nowhere/at/all"), 2
    )
    assert not Path(record).exists()


def test_flashing_says_what_is_wrong(gauge_build: Build) -> None:
    assert "no such port" in one_line(gauge_command("flash", "uno", "/dev/ttyNOTHING"), 2)
    assert "flashing failed" in one_line(gauge_command("flash", "uno", "/dev/null", "--dry-run"), 4)
    assert "is not one of" in one_line(gauge_command("flash", "duemilanove", "/dev/null"), 2)


def test_a_damaged_line_is_told_from_a_whole_one() -> None:
    whole = with_crc("ticks=12345")
    assert checked_text(whole) == "ticks=12345"
    for at in range(len(whole)):
        for change in (1, 16, 128):
            with pytest.raises(Damaged):
                checked_text(whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1 :])


@given(st.binary(max_size=60))
def test_no_bytes_upset_the_parsers_of_lines_and_frames(data: bytes) -> None:
    with contextlib.suppress(Damaged):
        checked_text(data)
    frame = parse_frame(data)
    assert frame is None or isinstance(frame, Frame)
    splitter = Splitter()
    text = splitter.text(data)
    assert len(text) <= len(data)


UNO = Identity("0", "atmega328p", 3, 62_500, 4, 24, False)
_WORDS = st.lists(
    st.sampled_from(
        [
            "b",
            "0",
            "1",
            "-3",
            "series=0",
            "count=2",
            "min=1",
            "max=x",
            "sum=2",
            "sum_sq=4",
            "ok",
            "lines=1",
            "error",
            "state=idle",
            "mode=none",
            "ticks=9",
            "take=1",
            "of_series=0",
            "stored=7",
            "=",
            "gauge=x",
        ]
    ),
    max_size=7,
).map(" ".join)


@given(st.lists(_WORDS, max_size=6))
def test_no_words_upset_the_parsers_of_replies(lines: list[str]) -> None:
    for parse in (parse_reply, parse_identity, parse_counters, lambda reply: parse_take(reply, UNO)):
        with contextlib.suppress(Damaged, Refused):
            parse(lines)


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4), max_size=20), st.data())
def test_frames_among_text_come_out_again(groups: list[list[int]], data: st.DataObject) -> None:
    """Whole frames come out as they were, text too, also after rubbish at the start."""
    splitter = Splitter()
    text = b""
    stream = b""
    for number, group in enumerate(groups):
        words = data.draw(st.sampled_from([b"", b"ok lines=0\r\n", b"b 0 1 2\r\n"]))
        text += words
        stream += words + b"\0" + _stuffed(_payload(number, group)) + b"\0"
    assert splitter.text(stream) == text
    assert [list(frame.samples) for frame in splitter.frames] == groups


def _payload(number: int, group: list[int]) -> bytes:
    body = b"S" + number.to_bytes(2, "little") + b"".join(value.to_bytes(4, "little") for value in group)
    return body + crc16(body).to_bytes(2, "little")


def _stuffed(payload: bytes) -> bytes:
    return b"".join(bytes([len(part) + 1]) + part for part in payload.split(b"\0"))


def test_lost_counts_by_mode() -> None:
    response = Counters(True, "response", 0, {}, {0: {"stored": 5, "timeouts": 1, "cut": 2, "unkept": 3}})
    periodic = Counters(True, "periodic", 0, {}, {0: {"stored": 5, "timeouts": 1, "lost": 4, "unkept": 3}})
    assert (response.lost(0), periodic.lost(0), response.stored(0), response.lost(1)) == (6, 7, 5, 0)


def test_times_beyond_the_instrument_are_refused(instrument: RealtimeGauge) -> None:
    with Gauge(instrument.port) as gauge, pytest.raises(BadInput, match="too long"):
        Response(1000, 2000, 10**10).start(gauge, gauge.identity.tick_ps)
