# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds of a checkout in the cache of the bench; the build itself is a stand-in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.virtual import meson_build

MONTH_S = 30 * 86_400


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of builds in an empty cache."""

    def run(command: Sequence[str]) -> None:
        if "setup" in command:
            Path(command[2]).mkdir(parents=True)
        else:
            (Path(command[2]) / command[3]).write_text("program")

    monkeypatch.setattr(meson_build, "_run", run)
    monkeypatch.setenv("FASTENOUGH_CACHE", str(tmp_path))
    return tmp_path / "virtual" / "built"


def _age(folder: Path, age_s: float) -> None:
    then = folder.stat().st_mtime - age_s
    os.utime(folder, (then, then))


def test_a_build_that_was_not_used_for_a_month_is_removed_by_the_next_one(built: Path) -> None:
    paths = [meson_build.build(name, (name,), ("probe",))[0] for name in ("old", "recent", "used")]
    kernel = built / f"{'a' * 12}-{'b' * 12}"
    kernel.mkdir()
    for folder, age_s in ((paths[0].parent, 1), (paths[1].parent, -60), (paths[2].parent, 1), (kernel, 1)):
        _age(folder, MONTH_S + age_s)
    assert meson_build.build("used", ("used",), ("probe",)) == [paths[2]]
    meson_build.build("new", (), ("probe",))
    assert [path.exists() for path in paths] == [False, True, True]
    assert kernel.is_dir(), "copies of kernels are removed by the builds of kernels"
