# SPDX-License-Identifier: GPL-2.0-or-later
"""What chatters, lies or never ends on the gauge's port: one line says so, soon, and nothing grows without bound."""

from __future__ import annotations

import contextlib
import os
import pty
import threading
import time
import tty
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastenough.gauge.line import Line
from fastenough.gauge.protocol import (
    Damaged,
    Identity,
    RunningCounts,
    Take,
    number,
    parse_identity,
    parse_take,
    with_crc,
)
from fastenough.gauge.session import Gauge
from fastenough.model import BadInput, FastenoughError
from tests.support.gauge_simulation import Impostor, gauge_command

pytestmark = pytest.mark.check

UNO = Identity("0", "atmega328p", 3, 62_500, 4, 24, False)
IDENTITY = "gauge=fastenough firmware=1 mcu=atmega328p protocol=3 tick_ps=62500 k=4 bits=24 simulated=0"
AT_REST = "state=idle mode=none ticks=5 stream_dropped=0 bytes_dropped=0"
ENOUGH_S = 120
"""Far more than any bound here: a hang is longer."""
LITTLE_MEMORY = ("prlimit", f"--as={2**31}")


def reply(*lines: str) -> bytes:
    return b"".join(with_crc(line) + b"\r\n" for line in (*lines, f"ok lines={len(lines)}"))


@contextlib.contextmanager
def chattering(said: bytes) -> Iterator[str]:
    """A port that says this for ever, asked or not."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    ending = threading.Event()

    def chatter() -> None:
        with contextlib.suppress(OSError):
            while not ending.is_set():
                os.write(ours, said)

    thread = threading.Thread(target=chatter, daemon=True)
    thread.start()
    try:
        yield os.ttyname(theirs)
    finally:
        ending.set()
        while thread.is_alive():
            with contextlib.suppress(OSError):
                os.read(theirs, 65_536)
            thread.join(0.01)
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    "said",
    [
        b"\xff\x80\x13",
        b"\n",
        b"x" * 1000,
        b"\0",
        b"\0\1\0",
        reply("b 0 1 1")[:20],
        with_crc("b 0 1 1") + b"\n",
        b"9" * 5000 + b"\n",
        reply(IDENTITY.replace("k=4", f"k={'9' * 6000}")),
        reply(IDENTITY.replace("=1 ", "=\x1b[2J ")),
    ],
    ids=[
        "noise",
        "line ends",
        "no line end",
        "zeros",
        "frames",
        "torn",
        "rows",
        "a long line",
        "a huge number",
        "control",
    ],
)
def test_a_port_that_chatters_is_no_gauge(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.gauge.session._BOOT_S", 0.3)
    with chattering(said) as port, pytest.raises(BadInput, match=r"unreadable|no reply"):
        Gauge(port)


def test_what_a_person_sees_of_it() -> None:
    with chattering(with_crc("b 0 1 1") + b"\n") as port:
        done = gauge_command("id", port, before=LITTLE_MEMORY)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and "unreadable" in done.stderr, done.stderr


def test_a_gauge_that_begins_to_chatter_ends_the_run() -> None:
    """Rows that are right, one after another: each attempt is bounded, and so are the attempts."""
    with Gauge(Impostor(Liar(lambda data: reply("take=1", *["b 0 5 1"] * 500)[:-20] * 20)).port) as gauge:
        gauge.start_periodic(16_000, 10**6)
        with pytest.raises(Damaged):
            gauge.take()


class Liar:
    """Says it is a gauge at rest; what else it is asked is answered by lies."""

    def __init__(self, lies: Callable[[bytes], bytes]) -> None:
        self._lies = lies

    def __call__(self, data: bytes) -> bytes:
        if data.startswith(b"id"):
            return reply(IDENTITY)
        if data.startswith(b"stats"):
            return reply(AT_REST)
        return reply() if data.startswith((b"stop", b"stream", b"periodic")) else self._lies(data)


def statistics(count: str = "1", least: str = "5", most: str = "5", total: str = "5") -> str:
    return f"series=0 count={count} min={least} max={most} sum={total} sum_sq=25"


LIES = {
    "endless rows": reply("take=1", *["b 0 5 1"] * 5000),
    "no end mark": reply("take=1", "b 0 5 1", statistics()).rpartition(b"ok")[0],
    "a bucket out of range": reply("take=1", "b 0 336 1", statistics()),
    "a series out of range": reply("take=1", "b 7 5 1", statistics()),
    "a count beyond 32 bits": reply("take=1", f"b 0 5 {2**32}", statistics(str(2**32))),
    "a number of 6000 digits": reply("take=1", f"b 0 5 {'9' * 6000}", statistics()),
    "a sum beyond 64 bits": reply("take=1", "b 0 5 1", statistics(total=str(2**64))),
    "a sum that cannot be": reply("take=1", "b 0 5 1", statistics(total="6")),
    "a minimum in no bucket": reply("take=1", "b 0 5 1", statistics(least="4")),
    "a row twice": reply("take=1", "b 0 5 1", "b 0 5 1", statistics("2", total="10")),
    "rows without statistics": reply("take=1", "b 1 5 1", statistics("0")),
    "an old take": reply("take=0", "b 0 5 1", statistics()),
    "no number": reply("take=x", "b 0 5 1", statistics()),
    "nothing": reply(),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_take_that_cannot_be_is_refused(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Line, "silence_s", 0.3)
    with Gauge(Impostor(Liar(lambda data: LIES[lie])).port) as gauge:
        gauge.start_periodic(16_000, 10**6)
        begun = time.monotonic()
        with pytest.raises(FastenoughError):
            gauge.take()
        assert time.monotonic() - begun < ENOUGH_S


@pytest.mark.parametrize("ticks", ["ticks=5", f"ticks={2**64}", "ticks=-1x", "clock=5"])
def test_a_clock_that_cannot_be_is_refused(ticks: str) -> None:
    with Gauge(Impostor(Liar(lambda data: reply(ticks))).port) as gauge, pytest.raises(FastenoughError):
        gauge.calibrate(0.01)


@given(st.text(max_size=30))
def test_numbers_have_64_bits(text: str) -> None:
    try:
        value = number(text)
    except Damaged:
        assert not (text.isascii() and text.isdigit() and int(text) < 2**64 and len(text) <= 20)
    else:
        assert text.isascii() and -(2**63) <= value < 2**64


@pytest.mark.parametrize(
    "change",
    [
        ("tick_ps=62500", "tick_ps=0"),
        ("k=4", "k=-1"),
        ("k=4", "k=24"),
        ("k=4", "k=17"),
        ("bits=24", "bits=64"),
        ("mcu=atmega328p", "mcu="),
        ("firmware=1", f"firmware={'1' * 50}"),
        ("gauge=fastenough", "gauge=other"),
        ("protocol=3", "protocol=٣"),
    ],
)
def test_an_identity_that_cannot_be(change: tuple[str, str]) -> None:
    assert parse_identity([IDENTITY])
    with pytest.raises(Damaged):
        parse_identity([IDENTITY.replace(*change)])


_ROWS = st.dictionaries(st.tuples(st.integers(0, 1), st.integers(-20, 20)), st.integers(0, 300_000), max_size=8)


@given(st.lists(_ROWS, max_size=6))
def test_running_counts_never_shrink_unseen(readings: list[dict[tuple[int, int], int]]) -> None:
    """Whatever comes, what is accepted adds up."""
    running = RunningCounts(4)
    for reading in readings:
        try:
            found = running.new_samples(Take(1, reading, {}))
        except Damaged:
            continue
        assert not found and not any(reading.values())


def test_a_gauges_own_rows_are_understood() -> None:
    lines = ["take=3", "b 0 5 2", "b 0 -7 1", "series=0 count=3 min=-7 max=5 sum=3 sum_sq=99"]
    found = RunningCounts(4).new_samples(parse_take(lines, UNO))
    assert (found[0].index.tolist(), found[0].count.tolist()) == ([-7, 5], [1, 2])
