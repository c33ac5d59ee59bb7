# SPDX-License-Identifier: GPL-2.0-or-later
"""Of very many steps a figure draws as many as can be seen, and none lower than it is."""

from __future__ import annotations

import numpy as np
import pytest

from fastenough.report import plot


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_many_steps_are_drawn_as_their_tallest(scale: str) -> None:
    _, axes = plot.new_figure("")
    axes.set_xscale(scale)
    axes.set_xlim(0.5, 300_000)
    random = np.random.default_rng(4)
    us = np.unique(random.integers(0, 400_000, 150_000))
    heights, edges = plot.stairs(us, random.integers(1, 10**6, us.size))
    fewer, at = plot.drawable(heights, edges, axes)
    assert 200 < fewer.size <= 2000
    assert (at[0], at[-1], fewer.max()) == (edges[0], edges[-1], heights.max())
    drawn = fewer[np.searchsorted(at, edges[:-1], side="right") - 1]
    assert np.all(drawn >= heights)
    assert set(fewer) <= set(heights)


def test_few_steps_stay_as_they_are() -> None:
    _, axes = plot.new_figure("")
    heights, edges = plot.stairs(np.array([1, 5, 900]), np.array([3, 2, 1]))
    assert plot.drawable(heights, edges, axes) == (heights, edges)
