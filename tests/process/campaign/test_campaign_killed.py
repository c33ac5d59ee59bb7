# SPDX-License-Identifier: GPL-2.0-or-later
"""kill -9 at random points of a campaign: what was complete is kept, what was cut is marked, and the rest is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.kills import killed

POINTS = 8
"""Of the 50 that ``make bench`` goes through."""


@pytest.mark.slow
def test_a_bench_that_is_killed_again_and_again_ends_its_campaign(tmp_path: Path, probe_binary: str) -> None:
    """All that must hold is asserted after each kill and at the end; here, that the kills hit something."""
    seen = killed(tmp_path, str(probe_binary), POINTS, seed=1)
    assert seen.kept > 0 and seen.cut > 0
