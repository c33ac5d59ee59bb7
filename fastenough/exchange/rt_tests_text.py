# SPDX-License-Identifier: GPL-2.0-or-later
"""Text of the tests of rt-tests whose threads wake each other, and of those similar to cyclictest.

pmqtest, ptsematest, svsematest, sigwaittest print two lines for each pair, signaltest and cyclicdeadline one for each
thread.  Without -q they redraw the screen; the last screen counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from fastenough.exchange import rt_tests_cycles
from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.rt_tests_pairs import FROM, TO
from fastenough.exchange.source import GrowingValues, LineReader, Source
from fastenough.recording.head import RecordedSetting

_MOVED = re.compile(r"\x1b\[\d*[A-Z]")
_SENDER = re.compile(
    r"#(\d+): ID\d+, P(\d+), CPU(\d+), I(\d+); #(\d+): ID\d+, P(\d+), CPU(\d+)(, TO \d+)?, "
    r"Cycles (\d+)\s*"
)
_RECEIVER = re.compile(r"#(\d+) -> #(\d+), Min\s+(\d+), Cur\s+(\d+), Avg\s+(\d+), Max\s+(\d+)\s*")
_THREAD = re.compile(
    r"T:\s*(\d+) \(\s*\d+\) (?:P:\s*(?P<priority>\d+)|I:\s*(?P<interval>\d+)) C:\s*(\d+) Min:\s*(\d+) "
    r"Act:\s*(\d+) Avg:\s*(\d+) Max:\s*(\d+)\s*"
)
_NOT_READY = re.compile(r"#\d+ -> #\d+ \(not yet ready\)\s*")
"""A pair without a value yet, in the first screens of svsematest and sigwaittest."""
_TASK = re.compile(r"(?:ID|\(\s*)(\d+)")
_SAID_BEFORE = 200
"""Number of lines searched for the first value."""


@dataclass
class _Pair:
    sender: re.Match[str]
    receiver: re.Match[str] | None = None


def _lines(source: Source) -> list[str]:
    return [_MOVED.sub("", line) for line in source.lines]


def _is_live(source: Source) -> bool:
    """Whether the file holds a live display: only its screens move the cursor."""
    return _MOVED.search(source.text) is not None


class _RtTestsText:
    what = "pmqtest, ptsematest, svsematest, sigwaittest, signaltest, cyclicdeadline: text"

    def recognises(self, source: Source) -> bool:
        return any(_SENDER.fullmatch(line) or _THREAD.fullmatch(line) for line in _lines(source)[:_SAID_BEFORE])

    def read(self, source: Source) -> ImportedRun:
        if not source.text.endswith("\n") and not _MOVED.search(source.lines[-1]):
            source.whole()
        threads = [match for line in _lines(source) if (match := _THREAD.fullmatch(line))]
        if not threads:
            return _of_pairs(source)
        test = "cyclicdeadline" if threads[-1]["interval"] else "signaltest"
        last = _last_threads(source, threads)
        return ImportedRun(test, None, "linux-user", tuple(_of_threads(LineReader(source), last, test)))


IMPORTER = _RtTestsText()


def _last_threads(source: Source, threads: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The last screen; signaltest draws only its first thread, and all of them at its end."""
    screens = GrowingValues(LineReader(source))
    for match in threads:
        if match[1] in screens.last and not _is_live(source):
            screens.reading.refuse_second()
        screens.take_task(match[1], int(_TASK.findall(match[0])[0]))
        screens.take(match[1], int(match[4]), -int(match[5]), int(match[8]))
    begins = [place for place, match in enumerate(threads) if match[1] == "0"]
    last = list(threads[begins[-1] :]) if begins else []
    most = max(int(match[1]) for match in threads) + 1
    if len(last) != most or any(int(match[1]) != number for number, match in enumerate(last)):
        source.refuse("its threads are not numbered from 0, or its last screen is incomplete: file truncated")
    return last


def _of_threads(reading: LineReader, threads: Sequence[re.Match[str]], test: str) -> Iterator[ImportedSeries]:
    for match in threads:
        count, low, now, mean, high = (reading.count(match[group], "a number") for group in (4, 5, 6, 7, 8))
        if count and not low <= now <= high:
            reading.refuse(f"thread {match[1]}: a latency lies outside its minimum and maximum: file modified")
        period_us = int(match["interval"] or 0)
        yield ImportedSeries(
            *rt_tests_cycles.EVENTS[test],
            1000,
            count,
            low if count else None,
            high if count else None,
            Decimal(mean) if count else None,
            labels={"thread": int(match[1])},
            period_ns=period_us * 1000 or None,
        )


def _of_pairs(source: Source) -> ImportedRun:
    pairs, series = _last_pairs(LineReader(source)), []
    for number, pair in enumerate(pairs):
        series.append(_of_pair(LineReader(source), number, pair))
    timed_out = any(pair.sender[8] for pair in pairs)
    facts = {} if timed_out else {"test": "ptsematest, svsematest or sigwaittest: the output does not identify it"}
    settings = tuple(
        RecordedSetting("priority", None, int(pair.sender[6]), thread=str(number)) for number, pair in enumerate(pairs)
    )
    return ImportedRun(
        "pmqtest" if timed_out else "rt-tests",
        None,
        "linux-user",
        tuple(series),
        facts=facts,
        settings=settings,
        probe="pmqtest" if timed_out else "handover",
    )


def _last_pairs(reading: LineReader) -> list[_Pair]:
    """The pairs of the last screen, which must have as many as the previous one."""
    pictures: list[list[_Pair]] = [[]]
    for line in reading:
        plain = _MOVED.sub("", line)
        if match := _SENDER.fullmatch(plain):
            if match[1] == "0" and pictures[-1]:
                pictures.append([])
            pictures[-1].append(_Pair(match))
        elif match := _RECEIVER.fullmatch(plain):
            _join(reading, pictures[-1], match)
        elif plain.strip() and pictures[-1] and not _NOT_READY.fullmatch(plain):
            reading.refuse(f"not a line of these tests: {plain[:60]!r}")
    _require_one_output(reading, pictures)
    last = pictures[-1]
    if not last or any(pair.receiver is None for pair in last) or len(last) < max(map(len, pictures)):
        reading.refuse("its last screen of pairs is incomplete: file truncated, or the test was killed")
    return last


def _require_one_output(reading: LineReader, pictures: Sequence[Sequence[_Pair]]) -> None:
    """Raises BadInput unless the screens are of one run: the same threads, and no count or maximum that decreases."""
    if len(pictures) > 1 and not _is_live(reading.source):
        reading.refuse_second()
    screens = GrowingValues(reading)
    for pair in (pair for picture in pictures for pair in picture):
        for place, task in zip((1, 5), _TASK.findall(pair.sender[0]), strict=True):
            screens.take_task(pair.sender[place], int(task))
        screens.take(pair.sender[1], int(pair.sender[9]))
        if pair.receiver is not None:
            screens.take((pair.sender[1], "receiver"), -int(pair.receiver[3]), int(pair.receiver[6]))


def _join(reading: LineReader, pairs: Sequence[_Pair], match: re.Match[str]) -> None:
    """A receiver's line to its sender's."""
    pair = next((pair for pair in pairs if (pair.sender[5], pair.sender[1]) == (match[1], match[2])), None)
    if pair is None or pair.receiver is not None:
        reading.refuse("a line names a missing or repeated pair")
    pair.receiver = match


def _of_pair(reading: LineReader, number: int, pair: _Pair) -> ImportedSeries:
    assert pair.receiver is not None
    count = reading.count(pair.sender[9], "Cycles")
    low, now, mean, high = (reading.count(pair.receiver[group], "a latency") for group in (3, 4, 5, 6))
    if count and not low <= now <= high:
        reading.refuse(f"pair {number}: a latency lies outside its minimum and maximum: file modified")
    return ImportedSeries(
        "handover",
        FROM,
        TO,
        1000,
        count,
        low if count else None,
        high if count else None,
        Decimal(mean) if count else None,
        cpu=int(pair.sender[7]),
        period_ns=int(pair.sender[4]) * 1000 or None,
        labels={"pair": number},
    )
