# SPDX-License-Identifier: GPL-2.0-or-later
"""What the bench records is what a gauge written from the document alone was told to measure, value by value."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from fastenough.campaign.instrument import InstrumentRun, OpenInstrument
from fastenough.campaign.transcript import Transcript
from fastenough.gauge.calibration import Calibration, SelfTest
from fastenough.gauge.line import Line
from fastenough.gauge.run import GaugeRun, Periodic, Response, RunHead, missed_periods
from fastenough.gauge.session import Gauge
from fastenough.model import BadInput, FastenoughError, Outcome
from fastenough.recording import Histogram, Recording, read_recording
from tests.support.gauge_simulation import gauge_command
from tests.support.paper_gauge import Faults, PaperGauge, bucket
from tests.support.presence import present

pytestmark = pytest.mark.check

RESPONSE = Response(10**5, 10**6, 10**9)
FINE_K = 10


def latency(drawn: random.Random) -> int:
    return 500 + round(drawn.expovariate(1 / 3000))


@contextlib.contextmanager
def made(paper: PaperGauge) -> Iterator[PaperGauge]:
    try:
        yield paper
    finally:
        paper.close()


def measured(
    paper: PaperGauge,
    path: Path,
    request: Response | Periodic = RESPONSE,
    between: Callable[[int], None] = lambda poll: None,
    clock: Calibration | None = None,
) -> Recording:
    """Three intervals; ``between`` is called before each is read."""
    with Gauge(paper.port) as gauge, path.open("wb") as stream:
        run = GaugeRun(gauge, request, RunHead("run", "linux-user", calibration=clock), stream, 10**8)
        run.begin()
        try:
            for poll in range(3):
                run.wait(0.1)
                between(poll)
                run.poll()
        except FastenoughError as error:
            run.end(Outcome.FAILED, [str(error)])
        else:
            run.end()
    return read_recording(path)


def exactly(recording: Recording, paper: PaperGauge, k: int = FINE_K) -> None:
    """Each bucket and each sum is that of the truth, of which nothing is missing."""
    for series, values in paper.truth.items():
        if series >= len(recording.series):
            continue
        total = recording.totals[series]
        truth: dict[int, int] = {}
        for value in values:
            truth[bucket(value, k)] = truth.get(bucket(value, k), 0) + 1
        assert dict(zip(total.index.tolist(), total.count.tolist(), strict=True)) == truth
        assert (total.sum, total.sum_sq) == (sum(values), sum(value * value for value in values))
        assert (total.minimum, total.maximum) == (min(values), max(values))


@pytest.mark.parametrize("request_", [RESPONSE, Periodic(10**6, 10**9)], ids=["response", "periodic"])
def test_what_is_measured_is_what_is_recorded(tmp_path: Path, request_: Response | Periodic) -> None:
    draw = latency if request_ is RESPONSE else (lambda drawn: round(drawn.gauss(0, 300)))
    with made(PaperGauge(draw, rate=1000)) as paper:
        recording = measured(paper, tmp_path / "run", request_)
    assert recording.outcome is Outcome.COMPLETED
    exactly(recording, paper)


@pytest.mark.parametrize("off_ppm", [-5000.0, 0.0, 5000.0])
def test_the_expected_period_is_told_in_ticks_as_long_as_they_are(tmp_path: Path, off_ppm: float) -> None:
    """A board that keeps 10 ms, seen by a gauge whose resonator is off by 0.5 %, must not seem 50 us off."""
    tick_ps = 62_500 * (1 + off_ppm / 1e6)
    with made(PaperGauge(lambda drawn: 0)) as paper:
        measured(paper, tmp_path / "run", Periodic(10**7, 10**9), clock=Calibration(tick_ps, 10.0, 2.0))
        assert abs(paper.asked["period"] * tick_ps / 1000 - 10**7) <= tick_ps / 2000


PERIOD = 16_000
"""Ticks of 1 ms."""


@pytest.mark.parametrize(
    ("deviations", "missed"),
    [
        ([], 0),
        ([3, -3, PERIOD // 2, -PERIOD // 2], 0),
        ([PERIOD * 9 // 10, -PERIOD * 9 // 10], 0),
        ([100 * PERIOD + 1], 100),
        ([100 * PERIOD - 1, 2], 100),
        ([PERIOD - 1], 1),
        ([100 * PERIOD + 1, 30 * PERIOD + 1, 5], 130),
        ([PERIOD * 13 // 10, -PERIOD * 3 // 10], 1),
        ([PERIOD * 17 // 10, -PERIOD * 7 // 10], 1),
        ([100 * PERIOD, *[-PERIOD] * 100], 0),
        ([100 * PERIOD, *[-PERIOD] * 60], 40),
        ([-1] * 100_000 + [3 * PERIOD + 1], 3),
    ],
)
def test_due_edges_that_did_not_come_are_missed(deviations: list[int], missed: int) -> None:
    assert missed_periods(Histogram.from_values(deviations, FINE_K), PERIOD) == missed


def test_a_stall_of_many_periods_is_as_many_missed_periods(tmp_path: Path) -> None:
    """Else it is one value among thousands, however long it is."""
    made_so_far: list[int] = []

    def draw(drawn: random.Random) -> int:
        made_so_far.append(100 * PERIOD + 1 if len(made_so_far) == 60 else drawn.randrange(-50, 50))
        return made_so_far[-1]

    with made(PaperGauge(draw)) as paper:
        recording = measured(paper, tmp_path / "run", Periodic(10**6, 10**9))
    assert recording.outcome is Outcome.COMPLETED
    assert max(made_so_far) > PERIOD
    assert recording.missed(0) == 100


def test_a_board_that_falls_silent_before_the_end_loses_a_period(tmp_path: Path) -> None:
    """Else a board that died within the last time-out would have had no long period."""
    out, drawn_so_far = tmp_path / "run", count()

    def draw(drawn: random.Random) -> int:
        return 100 * PERIOD + 1 if next(drawn_so_far) == 10 else drawn.randrange(-50, 50)

    with made(PaperGauge(draw)) as paper:

        def silence(command: str) -> None:
            if command.startswith("take n=1"):
                paper.silence_board()

        paper.faults.before_reply = silence
        options = ("--period", "1ms", "--timeout", "1s", "-D", "1500ms", "--out", str(out), "--json")
        (series,) = json.loads(gauge_command("run", "periodic", paper.port, *options).stdout)["series"]
    recording = read_recording(out)
    assert (recording.lost(0), recording.missed(0)) == (series["lost"], series["missed"]) == (1, 100)


def once(prefix: str, damage: Callable[[bytes], bytes]) -> Faults:
    """The first reply to such a command comes changed."""
    said: list[str] = []

    def out(reply: bytes) -> bytes:
        changed = said[-1].startswith(prefix) and not any(word.startswith(prefix) for word in said[:-1])
        return damage(reply) if changed else reply

    return Faults(out=out, before_reply=said.append)


TORN = {
    "its line end lost": lambda reply: reply[:-1],
    "its line end changed": lambda reply: reply[:-1] + b"J",
    "its end mark lost": lambda reply: reply[:-8],
    "all but its begin lost": lambda reply: reply[:2],
    "a zero in its first place": lambda reply: b"\0" + reply[1:],
    "a zero in its end mark": lambda reply: reply[:-12] + b"\0" + reply[-11:],
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is what lasts 0.3 s, so that the tests are quick; what was said in time but late is asked for again."""
    monkeypatch.setattr(Line, "silence_s", 0.3)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("command", ["take", "stats", "stop"])
def test_a_reply_that_was_cut_is_asked_for_again(tmp_path: Path, command: str, torn: str) -> None:
    """Wherever it was cut; nothing is lost, and nothing counted twice."""
    with made(PaperGauge(latency)) as paper:

        def begin(poll: int) -> None:
            paper.faults = once(command, TORN[torn]) if poll == 1 else paper.faults

        recording = measured(paper, tmp_path / "run", between=begin)
    assert recording.end is not None
    assert recording.outcome is Outcome.COMPLETED, recording.end.reasons
    assert present(recording.end.counters["replies_damaged"], "replies_damaged") >= 1
    exactly(recording, paper)


@pytest.mark.usefixtures("impatient")
def test_what_arrived_before_the_gauge_fell_silent_is_kept(tmp_path: Path) -> None:
    """Counters that do not come must not throw away the histogram that has come."""
    with made(PaperGauge(latency)) as paper:

        def begin(poll: int) -> None:
            if poll == 2:
                paper.faults = Faults(out=lambda reply: b"" if paper.commands[-1] == "stats" else reply)

        recording = measured(paper, tmp_path / "run", between=begin)
    assert recording.outcome is Outcome.FAILED
    taken = [command for command in paper.commands if command.startswith("take")]
    assert len(recording.intervals) == len(taken)


def test_a_gauge_that_stops_by_itself_fails_the_run(tmp_path: Path) -> None:
    """Else a run of an hour whose gauge measured for a minute would be complete."""
    with made(PaperGauge(latency)) as paper:

        def stop(poll: int) -> None:
            if poll == 1:
                paper.halt()

        recording = measured(paper, tmp_path / "run", between=stop)
    assert recording.outcome is Outcome.FAILED
    assert recording.end is not None
    assert "stopped measuring by itself" in recording.end.reasons[0]
    exactly(recording, paper)


@pytest.mark.parametrize("left", [b"he", b"x" * 300, b"response min=10 max=20 timeout=1"])
def test_what_another_program_left_half_said_is_no_other_instrument(left: bytes) -> None:
    heard: list[bytes] = []

    def into(data: bytes) -> bytes:
        heard.append(data)
        return left + data if len(heard) == 1 else data

    with made(PaperGauge(latency, faults=Faults(into=into))) as paper, Gauge(paper.port) as gauge:
        assert gauge.identity.mcu == "atmega328p"


def test_noise_between_two_runs_of_a_plan_ends_no_plan() -> None:
    asked: list[bytes] = []

    def into(data: bytes) -> bytes:
        asked.append(data)
        return data.replace(b"id", b"ie") if len(asked) == 1 else data

    with made(PaperGauge(latency)) as paper, Gauge(paper.port) as gauge:
        paper.faults = Faults(into=into)
        assert not gauge.reconnect(1.0)
        assert gauge.repeated_requests == 1


@pytest.mark.parametrize(("off_ppm", "is_another"), [(0.0, False), (5000.0, True)])
def test_a_gauge_that_returns_has_the_clock_that_was_calibrated(off_ppm: float, is_another: bool) -> None:
    """Without a serial number, only its clock tells it from another one of the same kind."""
    transcript = cast(Transcript, None)
    with made(PaperGauge(latency)) as paper, Gauge(paper.port) as gauge:
        clock = Calibration(62_500 * (1 + off_ppm / 1e6), 10.0, 300.0)
        opened = OpenInstrument(gauge, clock, SelfTest(True, {0: 3}, {0: 3}), paper.port)
        InstrumentRun(opened, RESPONSE, "linux-user", transcript)
        gauge.close()
        with pytest.raises(BadInput) if is_another else contextlib.nullcontext():
            InstrumentRun(opened, RESPONSE, "linux-user", transcript)
