# SPDX-License-Identifier: GPL-2.0-or-later
"""Parser of the gauge's protocol (docs/gauge.md), without input and output.

Times are integers in ticks of the instrument; ``Identity.tick_ps`` is the nominal length of a tick.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fastenough.model import FastenoughError
from fastenough.recording import Histogram
from fastenough.recording.histogram import bucket_index

PROTOCOL = 3
MAX_LINE_LENGTH = 256
MAX_LINES = 4096
"""Limits that no reply exceeds: the histogram of a Mega 2560 has 2,688 rows."""
_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_WORD = re.compile(r"[\w.+-]{1,40}", re.ASCII)
_BUCKET_BITS = 16
_MOST_K = 16
"""Finest histogram of a recording."""
_COUNTER_BITS = {"bytes_dropped": 16}


class Damaged(FastenoughError):
    """A reply was incomplete or corrupted in transmission."""


class Refused(FastenoughError):
    """The instrument refused a command; the message is its reason."""

    @property
    def command_damaged(self) -> bool:
        """True if the command was corrupted in transmission, by noise or by another program's incomplete command."""
        return str(self) in ("damaged line", "line too long")


class Restarted(FastenoughError):
    """The instrument restarted during a measurement, by its reset button or its supply."""


def crc16(data: bytes) -> int:
    """CRC-16/XMODEM."""
    return binascii.crc_hqx(data, 0)


def with_crc(line: str) -> bytes:
    """A line with its CRC as transmitted, without line end."""
    return f"{line} *{crc16(line.encode()):04X}".encode()


def checked_text(line: bytes) -> str:
    """The text of a line with a mandatory CRC; raises Damaged."""
    body, mark, checksum = line.rpartition(b" *")
    text = body.decode("ascii", errors="replace")
    if not mark or len(checksum) != 4 or checksum != b"%04X" % crc16(body) or not text.isprintable():
        raise Damaged(f"the line {line[:60]!r} is damaged")
    return text


def pairs(line: str) -> dict[str, str]:
    """The ``key=value`` words of a line."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def number(text: str) -> int:
    """An integer of at most 64 bits; raises Damaged."""
    if _NUMBER.fullmatch(text) and -(2**63) <= int(text) < 2**64:
        return int(text)
    raise Damaged(f"{text[:40]!r} is not a 64-bit number")


def numbers(line: str) -> dict[str, int]:
    """The ``key=value`` words of a line, all of them integers; raises Damaged."""
    return {key: number(value) for key, value in pairs(line).items()}


def parse_reply(lines: list[str]) -> list[str]:
    """A reply without its end mark; raises Refused or Damaged.

    ``lines`` end with ``ok lines=N`` or ``error WHY``.
    """
    if lines and lines[-1].startswith("error "):
        raise Refused(lines[-1].removeprefix("error "))
    if not lines or lines[-1] != f"ok lines={len(lines) - 1}":
        raise Damaged(f"the reply's end mark {lines[-1] if lines else ''!r} does not fit its {len(lines) - 1} lines")
    return lines[:-1]


@dataclass(frozen=True)
class Identity:
    """Identity of an instrument: firmware, microcontroller, tick, resolution of its histograms, simulated or not."""

    firmware: str
    mcu: str
    protocol: int
    tick_ps: int
    k: int
    bits: int
    simulated: bool

    @property
    def longest_ticks(self) -> int:
        """The longest latency or time-out it can measure."""
        return (1 << self.bits) - 1


def parse_identity(lines: list[str]) -> Identity:
    """Parse the reply to ``id``; raises Damaged."""
    fields = pairs(lines[0]) if lines else {}
    if fields.get("gauge", "fastenough") != "fastenough":
        raise Damaged(f"this is another instrument: {lines[0][:60]!r}")
    try:
        identity = Identity(
            fields["firmware"],
            fields["mcu"],
            number(fields["protocol"]),
            number(fields["tick_ps"]),
            number(fields["k"]),
            number(fields["bits"]),
            fields.get("simulated") == "1",
        )
    except KeyError as error:
        raise Damaged(f"the identity {lines[:1]!r} lacks {error}") from error
    if not (
        _WORD.fullmatch(identity.firmware)
        and _WORD.fullmatch(identity.mcu)
        and 0 < identity.tick_ps < 10**9
        and 0 < identity.k < identity.bits <= 32
        and identity.k <= _MOST_K
    ):
        raise Damaged(f"the identity {lines[:1]!r} cannot be understood")
    return identity


def parse_ticks(lines: list[str]) -> int:
    """Parse the reply to ``time``; raises Damaged."""
    if not lines or "ticks" not in pairs(lines[0]):
        raise Damaged(f"{lines[:1]!r} is not a time")
    return number(pairs(lines[0])["ticks"])


@dataclass(frozen=True)
class Take:
    """A take: its number, the running count of each bucket, exact statistics of the new samples by series."""

    number: int
    rows: Mapping[tuple[int, int], int]
    exact: Mapping[int, Mapping[str, int]]


def _row(line: str, identity: Identity) -> tuple[tuple[int, int], int]:
    words = line.split()
    if len(words) != 4 or words[0] != "b":
        raise Damaged(f"{line[:60]!r} is not a row of a histogram")
    series, bucket, count = map(number, words[1:])
    if series not in (0, 1) or abs(bucket) >= (identity.bits - identity.k + 1) << identity.k or not 0 < count < 2**32:
        raise Damaged(f"{line[:60]!r} is not a row of this gauge's histogram")
    return (series, bucket), count


def parse_take(lines: list[str], identity: Identity) -> Take:
    """Parse the reply to ``take`` or ``hist``; raises Damaged."""
    if not lines or "take" not in pairs(lines[0]):
        raise Damaged(f"{lines[:1]!r} is not a histogram")
    rows: dict[tuple[int, int], int] = {}
    exact: dict[int, dict[str, int]] = {}
    for line in lines[1:]:
        if line.startswith("series="):
            statistics = numbers(line)
            if not {"count", "min", "max", "sum", "sum_sq"} <= statistics.keys() or statistics["series"] in exact:
                raise Damaged(f"{line[:60]!r} lacks a statistic or is repeated")
            exact[statistics.pop("series")] = statistics
        else:
            place, count = _row(line, identity)
            if place in rows:
                raise Damaged(f"the row {line[:60]!r} is repeated")
            rows[place] = count
    return Take(number(pairs(lines[0])["take"]), rows, exact)


def _histogram(k: int, rows: list[tuple[int, int]], exact: Mapping[str, int]) -> Histogram:
    rows = sorted(row for row in rows if row[1])
    total = sum(count for _, count in rows)
    if total != exact["count"]:
        raise Damaged(f"the rows of a series add up to {total}, its count is {exact['count']}")
    if total == 0:
        return Histogram(k)
    least, most = exact["min"], exact["max"]
    if not (
        -(2**32) < least <= most < 2**32
        and total * least <= exact["sum"] <= total * most
        and bucket_index([least, most], k).tolist() == [rows[0][0], rows[-1][0]]
    ):
        raise Damaged(f"the statistics of a series contradict its rows: {dict(exact)}")
    index, count = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Histogram(k, index, count, least, most, exact["sum"], exact["sum_sq"])


@dataclass
class RunningCounts:
    """Computes the new samples of each take from the gauge's running counts.

    The gauge clears nothing, so a take with a damaged reply can be requested again.  Its counts are modulo 2^16, plus
    the wraps since the last acknowledged take.
    """

    k: int
    known: dict[tuple[int, int], int] = field(default_factory=dict)

    def new_samples(self, take: Take) -> dict[int, Histogram]:
        """Histograms by series of the samples since the previous take; raises Damaged for inconsistent counts."""
        growth = {place: count - self.known.get(place, 0) for place, count in take.rows.items()}
        if min(growth.values(), default=0) < 0 or any(
            count for place, count in self.known.items() if place not in take.rows
        ):
            raise Damaged("a bucket of the histogram has shrunk")
        if any(series not in take.exact for series, _ in growth):
            raise Damaged("a series has rows but no statistics")
        histograms = {
            series: _histogram(
                self.k, [(bucket, count) for (of, bucket), count in growth.items() if of == series], exact
            )
            for series, exact in take.exact.items()
        }
        self.known = {place: count % (1 << _BUCKET_BITS) for place, count in take.rows.items()}
        return histograms


@dataclass(frozen=True)
class Counters:
    """The instrument's counters since the start, common and by series; ``ticks`` since power-up."""

    idle: bool
    mode: str
    ticks: int
    common: dict[str, int]
    by_series: dict[int, dict[str, int]]

    def lost(self, series: int) -> int:
        """Number of samples without a value: timed out, cut by a storm of edges, dropped, or not stored."""
        counted = self.by_series.get(series, {})
        return sum(
            counted.get(name, 0)
            for name in (("lost", "unkept") if "lost" in counted else ("timeouts", "cut", "unkept"))
        )

    def stored(self, series: int) -> int:
        return self.by_series.get(series, {}).get("stored", 0)

    def after(self, before: Counters) -> Counters:
        """The same counters without wraps; raises Restarted if time or a counter went back."""
        if self.mode != before.mode:
            raise Restarted(f"the gauge restarted during the run: it measured {before.mode}, and now {self.mode}")
        if self.ticks < before.ticks:
            raise Restarted("the gauge restarted during the run: its time went back")
        by_series = {
            series: _without_wraps(counted, before.by_series.get(series, {}))
            for series, counted in self.by_series.items()
        }
        return replace(self, common=_without_wraps(self.common, before.common), by_series=by_series)


def _without_wraps(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    unwrapped = {}
    for name, value in now.items():
        span = 1 << _COUNTER_BITS.get(name, 32)
        growth = (value - before.get(name, 0)) % span
        if growth >= span // 2:
            raise Restarted(f"the gauge restarted during the run: its counter {name} went back")
        unwrapped[name] = before.get(name, 0) + growth
    return unwrapped


def parse_counters(lines: list[str]) -> Counters:
    """Parse the reply to ``stats``; raises Damaged."""
    first = pairs(lines[0]) if lines else {}
    if not {"state", "mode", "ticks"} <= first.keys():
        raise Damaged(f"{lines[:1]!r} are not counters")
    common: dict[str, int] = {}
    by_series: dict[int, dict[str, int]] = {}
    for line in lines:
        counted = numbers(" ".join(word for word in line.split() if not word.startswith(("state=", "mode="))))
        if min(counted.values(), default=0) < 0:
            raise Damaged(f"{line[:60]!r} has a negative counter")
        if "of_series" in counted:
            by_series[counted.pop("of_series")] = counted
        else:
            common |= counted
    return Counters(first["state"] == "idle", first["mode"], common.pop("ticks"), common, by_series)
