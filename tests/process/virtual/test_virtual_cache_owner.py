# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual bench's cache beside other users: root writes into no folder of theirs and follows no link there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastenough.model import BadInput
from fastenough.virtual.packages import cache_dir, cache_lock
from tests.support.privileges import needs_root

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
pytestmark = [pytest.mark.untimed, needs_root("files of another user")]


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "theirs"
    folder.mkdir()
    monkeypatch.setenv("FASTENOUGH_CACHE", str(folder))
    return folder


def give(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def test_a_cache_of_another_user_is_refused_and_left_alone(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(theirs)
    for missing in ("", "deeper/still"):
        monkeypatch.setenv("FASTENOUGH_CACHE", str(theirs / missing))
        told = f"other users can change {theirs}; name a private place"
        with pytest.raises(BadInput, match=told) as no, cache_lock():
            pass
        assert "\n" not in str(no.value)
    assert list(theirs.iterdir()) == []


def test_what_another_user_put_into_the_cache_is_refused(theirs: Path, tmp_path: Path) -> None:
    """As in a sticky folder, where anybody may make the folder or a link before root does."""
    theirs.chmod(0o1777)
    victim = tmp_path / "victim"
    victim.mkdir()
    (theirs / "virtual").symlink_to(victim)
    give(theirs / "virtual")
    with pytest.raises(BadInput, match=r"other users can change .*virtual"), cache_lock():
        pass
    assert list(victim.iterdir()) == []


def test_the_lock_follows_no_link(theirs: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (theirs / "virtual").mkdir()
    (theirs / "virtual" / "lock").symlink_to(victim)
    with pytest.raises(BadInput, match="name a writable place"), cache_lock():
        pass
    assert victim.read_text() == "kept"


def test_a_checkout_of_another_user_is_no_place_for_the_cache(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for folder in ("fastenough", "target/module"):
        (checkout / folder).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", ROOT / folder, checkout / folder], check=True)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from fastenough.virtual.packages import cache_dir; print(cache_dir())"
    )

    def place() -> Path:
        environment = {name: value for name, value in os.environ.items() if name != "FASTENOUGH_CACHE"}
        return Path(
            subprocess.run(
                [sys.executable, "-I", "-c", code, str(checkout)],
                text=True,
                check=True,
                env={**environment, "XDG_CACHE_HOME": str(tmp_path)},
                capture_output=True,
            ).stdout.strip()
        )

    assert place() == checkout / "cache" / "virtual"
    give(checkout)
    assert place() == tmp_path / "fastenough" / "virtual"


def test_a_cache_of_ones_own_is_used(theirs: Path) -> None:
    with cache_lock() as cache:
        assert cache == cache_dir() == theirs / "virtual"
