# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps and trends in a series that is watched while it grows: one announcement per change, later moved or withdrawn.

:mod:`fastenough.analysis.surveillance` shows that the level changed, :mod:`fastenough.analysis.trend` whether it did so
gradually.  All that is announced follows from the values up to its place: more values never change the past.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import special
from fastenough.analysis.changes import ranks
from fastenough.analysis.surveillance import Alarm, first_alarm
from fastenough.analysis.trend import line_through, mann_kendall

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LEVEL = 0.01
"""Of the trend test."""
_MOST_POINTS = 400
"""Longer series are fitted by the medians of so many stretches."""
_ENDS = 24
"""Places at which a gradual change may begin or end."""
_LEAST_TREND = 28
"""Values: a faster change is a step."""
_REFIT = 14
"""Values from an announcement until its place is fitted again; a quarter of its age later on."""
_LEAST_GAIN = 10.0
"""Two changes are announced only if their criterion is so much less than that of one (Kass and Raftery 1995)."""
_BESIDE = 8
"""The place of a step is sought within so many values of where the ranks put it."""


@dataclass(frozen=True)
class LevelChange:
    """A change of level from the value at ``first`` on.  ``last`` equals ``first`` for a step; a trend lasts until
    ``last``.  ``before`` and ``after``: levels at its two ends, in the unit of the values.

    ``noted``: place of the value that showed it; ``withdrawn``: of the value that made it improbable, if any.
    """

    first: int
    last: int
    before: float
    after: float
    noted: int
    withdrawn: int | None = None

    @property
    def gradual(self) -> bool:
        return self.last > self.first

    @property
    def rises(self) -> bool:
        return self.after > self.before


def level_changes(values: FloatArray, mean_between: float) -> list[LevelChange]:
    """Changes of the values (T,) in the order in which they were noted; ``mean_between`` as in `first_alarm`."""
    announced: list[LevelChange] = []
    start, since = 0, 0
    while start < values.size:
        alarm = first_alarm(values[start:], mean_between)
        until = values.size if alarm is None else start + alarm.place
        since = _refit(announced, values, since, (start, until))
        if alarm is None:
            break
        since = _announce(announced, values[: until + 1], since, alarm)
        start = until + 1
    return announced


def _refit(announced: list[LevelChange], values: FloatArray, since: int, span: tuple[int, int]) -> int:
    """Move, divide or withdraw the newest change at the places of ``span`` at which that is due; returns the first
    place to which the newest change is fitted."""
    for place in _refit_places(announced[-1].noted, span) if announced else ():
        newest = announced[-1]
        if newest.withdrawn is not None:
            return since
        fits = _Fits.of(values[since : place + 1])
        pair = fits.pair_in_direction(newest.rises)
        if pair is not None:
            since = _divide(announced, values[: place + 1], since, pair)
            return _refit(announced, values, since, (place + 1, span[1]))
        fitted = fits.change
        moved = None if fitted is None else _placed(values[: place + 1], since, fitted, newest.noted)
        is_same_direction = moved is not None and moved.rises is newest.rises
        announced[-1] = moved if moved is not None and is_same_direction else replace(newest, withdrawn=place)
    return since


def _divide(announced: list[LevelChange], values: FloatArray, since: int, pair: _Pair) -> int:
    """Replace the newest change by two, of which the second is noted at the last value.

    Returns the first place to which the second one is fitted.
    """
    between = since + pair.first.last
    second = replace(pair.second, first=pair.second.first - pair.first.last, last=pair.second.last - pair.first.last)
    announced[-1] = _placed(values[: since + pair.second.first], since, pair.first, announced[-1].noted)
    announced.append(_placed(values, between, second, values.size - 1))
    return between


def _refit_places(noted: int, span: tuple[int, int]) -> Iterator[int]:
    place = noted + _REFIT
    while place < span[1]:
        if place >= span[0]:
            yield place
        place += max(_REFIT, (place - noted) // 4)


def _announce(announced: list[LevelChange], values: FloatArray, since: int, alarm: Alarm) -> int:
    """Record the change that an alarm at the last value shows; returns the first place to which the newest change is
    fitted.

    The alarm belongs to the newest change if a single change explains all values since the one before as well.
    """
    newest = announced[-1] if announced else None
    current = newest if newest is not None and newest.withdrawn is None else None
    if current is not None and current.rises is alarm.rises:
        fits = _Fits.of(values[since:])
        if not fits.needs_two:
            announced[-1] = _placed(values, since, fits.placed(fits.single), current.noted)
            return since
    if current is not None:
        since = current.last
    fits = _Fits.of(values[since:])
    change = _placed(values, since, fits.change or fits.placed(fits.step), values.size - 1)
    if newest is not None and newest.withdrawn is not None and change.first <= newest.noted:
        announced[-1] = replace(change, noted=newest.noted)  # the withdrawn change is confirmed
    else:
        announced.append(change)
    return since


@dataclass(frozen=True)
class _Ramp:
    """Where a level begins to change and where it has changed; ``criterion``: BIC, less is better."""

    first: int
    last: int
    criterion: float


@dataclass(frozen=True)
class _Pair:
    """Two changes, sorted by begin; ``directions``: whether each rises; ``criterion``: BIC of both together."""

    first: _Ramp
    second: _Ramp
    directions: tuple[bool, bool]
    criterion: float


@dataclass(frozen=True)
class _Fits:
    """Changes fitted to ``points``: normal scores of values, or of medians of equal stretches of ``length`` values.

    The first ``left_out`` values are in no stretch.
    """

    points: FloatArray
    length: int
    left_out: int

    @classmethod
    def of(cls, values: FloatArray) -> _Fits:
        length = -(-values.size // _MOST_POINTS)
        left_out = values.size % length
        medians = np.median(values[left_out:].reshape(-1, length), axis=1)
        scores = np.asarray(special.ndtri((ranks(medians) - 0.5) / medians.size))
        return cls(scores, length, left_out)

    @cached_property
    def step(self) -> _Ramp:
        """The best step."""
        return _best_step(self.points)

    @cached_property
    def single(self) -> _Ramp:
        """The best step or gradual change."""
        return _best_single(self.points, self.step)

    @cached_property
    def pair(self) -> _Pair:
        """The best two changes."""
        return _best_pair(self.points)

    @property
    def needs_two(self) -> bool:
        """Whether two changes explain the values far better than one."""
        return self.single.criterion > self.pair.criterion + _LEAST_GAIN

    @property
    def change(self) -> _Ramp | None:
        """The change that explains the values best, in places of these; None if they are explained as well by none."""
        points, best = self.points, self.single
        if best.criterion >= _criterion(float(((points - points.mean()) ** 2).sum()), points.size, 1):
            return None
        if best.last > best.first and mann_kendall(points[best.first : best.last + 1]).chance > _LEVEL:
            best = self.step
        return self.placed(best)

    def pair_in_direction(self, rises: bool) -> _Pair | None:
        """The two changes in places of the values, if they are needed, both in this direction and apart."""
        pair = self.pair
        if not self.needs_two or pair.directions != (rises, rises) or pair.second.first <= pair.first.last:
            return None
        return replace(pair, first=self.placed(pair.first), second=self.placed(pair.second))

    def placed(self, ramp: _Ramp) -> _Ramp:
        """The change in places of the values."""
        first, last = (place * self.length + self.left_out for place in (ramp.first, ramp.last))
        return replace(ramp, first=first, last=last)


def _criterion(squares: float, n: int, parameters: int) -> float:
    return float(n * np.log(max(squares, 1e-9) / n) + parameters * np.log(n))


def _best_single(points: FloatArray, step: _Ramp) -> _Ramp:
    """The best step, or a gradual change that is better."""
    ramps = _ramps(points.size)
    if not ramps.firsts.size:
        return step
    squares = _squares_left(ramps.rows, points - points.mean())
    best = int(squares.argmin())
    gradual = _Ramp(int(ramps.firsts[best]), int(ramps.lasts[best]), _criterion(float(squares[best]), points.size, 4))
    return min(step, gradual, key=lambda ramp: ramp.criterion)


def _best_step(points: FloatArray) -> _Ramp:
    n = points.size
    length = np.arange(1, n)
    sums = np.cumsum(points - points.mean())[:-1]
    gained = sums**2 * n / (length * (n - length))
    place = int(gained.argmax())
    squares = float(((points - points.mean()) ** 2).sum() - gained[place])
    return _Ramp(place + 1, place + 1, _criterion(squares, n, 3))


class _Changes(NamedTuple):
    """First and last places (R,), and rows (R, n) from 0 to 1 between them, without their mean."""

    firsts: IntArray
    lasts: IntArray
    rows: FloatArray


def _ramps(n: int) -> _Changes:
    """Gradual changes, none if there are too few places."""
    ends = np.unique(np.linspace(0, n - 1, _ENDS).astype(np.int64))
    firsts, lasts = np.meshgrid(ends, ends, indexing="ij")
    wide = lasts - firsts >= _LEAST_TREND
    firsts, lasts = firsts[wide], lasts[wide]
    rows = np.clip((np.arange(n) - firsts[:, None]) / (lasts - firsts)[:, None], 0.0, 1.0)
    return _Changes(firsts, lasts, rows - rows.mean(axis=1, keepdims=True))


def _steps(n: int) -> _Changes:
    """Steps; one at each place near the end, where the alarm came."""
    spread = np.concatenate([np.linspace(1, n - 1, 2 * _ENDS), np.arange(max(1, n - 2 * _ENDS), n)])
    places = np.unique(spread.astype(np.int64))
    rows = (np.arange(n) >= places[:, None]).astype(np.float64)
    return _Changes(places, places, rows - rows.mean(axis=1, keepdims=True))


def _squares_left(rows: FloatArray, centred: FloatArray) -> FloatArray:
    """Sums of squares (R,) that a multiple of each row leaves."""
    return np.asarray(centred @ centred - (rows @ centred) ** 2 / (rows**2).sum(axis=1))


def _best_pair(points: FloatArray) -> _Pair:
    """The step or gradual change, with another step, that explains points best."""
    centred = points - points.mean()
    steps, ramps = _steps(points.size), _ramps(points.size)
    pairs = [_least_pair(steps, steps, centred, 5)]
    if ramps.firsts.size:
        pairs.append(_least_pair(ramps, steps, centred, 6))
    return min(pairs, key=lambda pair: pair.criterion)


def _least_pair(some: _Changes, others: _Changes, centred: FloatArray, parameters: int) -> _Pair:
    """The two changes whose multiples leave the least sum of squares."""
    row_squares, other_squares = (some.rows**2).sum(axis=1)[:, None], (others.rows**2).sum(axis=1)[None, :]
    row_products, other_products = (some.rows @ centred)[:, None], (others.rows @ centred)[None, :]
    both = some.rows @ others.rows.T
    determinant = row_squares * other_squares - both**2
    gained = (
        other_squares * row_products**2 - 2 * both * row_products * other_products + row_squares * other_products**2
    )
    usable = determinant > 1e-6 * row_squares * other_squares
    share = np.where(usable, gained, 0.0) / np.where(usable, determinant, 1.0)
    row, other = np.unravel_index(int(share.argmax()), share.shape)
    criterion = _criterion(float(centred @ centred - share[row, other]), centred.size, parameters)
    by_row = other_squares[0, other] * row_products[row, 0] - both[row, other] * other_products[0, other]
    by_other = row_squares[row, 0] * other_products[0, other] - both[row, other] * row_products[row, 0]
    changes = sorted(
        [
            (int(some.firsts[row]), int(some.lasts[row]), bool(by_row > 0)),
            (int(others.firsts[other]), int(others.lasts[other]), bool(by_other > 0)),
        ]
    )
    (first, last, rises), (next_first, next_last, next_rises) = changes
    ramps = _Ramp(first, last, criterion), _Ramp(next_first, next_last, criterion)
    return _Pair(*ramps, (rises, next_rises), criterion)


def _placed(values: FloatArray, since: int, ramp: _Ramp, noted: int) -> LevelChange:
    """A change among the values from ``since`` on, with its levels."""
    values_since = values[since:]
    if ramp.last > ramp.first:
        line = line_through(values_since[ramp.first : ramp.last + 1])
        return LevelChange(since + ramp.first, since + min(ramp.last, values_since.size - 1), *line, noted)
    place = _best_split(values_since, ramp.first)
    before, after = float(np.median(values_since[:place])), float(np.median(values_since[place:]))
    return LevelChange(since + place, since + place, before, after, noted)


def _best_split(values: FloatArray, near: int) -> int:
    """Where values deviate least, as ratios, from the medians of both sides."""
    logarithms = np.log(np.maximum(values, 1.0))
    places: Sequence[int] = range(max(1, near - _BESIDE), min(values.size, near + _BESIDE + 1))
    return min(places, key=lambda place: _spread(logarithms[:place]) + _spread(logarithms[place:]))


def _spread(logarithms: FloatArray) -> float:
    return float(np.abs(logarithms - np.median(logarithms)).sum())
