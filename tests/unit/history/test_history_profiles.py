# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences of two profiles of a board."""

from __future__ import annotations

import pytest

from fastenough.history.profiles import profile_differences

RELEASE = {"release": "6.1.0-30-amd64"}


@pytest.mark.parametrize(
    ("was", "now", "names"),
    [
        (RELEASE, RELEASE | {"build_id": "ab12"}, []),
        (RELEASE | {"build_id": "ab12"}, RELEASE, []),
        (RELEASE | {"build_id": "ab12"}, RELEASE | {"build_id": "cd34"}, ["kernel.build_id"]),
        (RELEASE, {"release": "6.1.0-31-amd64", "build_id": "cd34"}, ["kernel.release"]),
    ],
)
def test_a_build_id_that_an_older_version_did_not_read_is_no_change(
    was: dict[str, str], now: dict[str, str], names: list[str]
) -> None:
    differences = profile_differences({"kernel": was}, {"kernel": now})
    assert [(difference.key, difference.latency) for difference in differences] == [(name, True) for name in names]
