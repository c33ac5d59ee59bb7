# SPDX-License-Identifier: GPL-2.0-or-later
"""A release: probes that work, with their checksums, and the same bytes each time and wherever it is made."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from fastenough import __version__
from fastenough.board.files import MACHINES
from tests.support.packaging_programs import release
from tests.support.tools import require

pytestmark = [pytest.mark.slow, pytest.mark.untimed]

ONE = release.architectures()["armhf"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(ONE.compiler, ONE.runner)
    out = tmp_path_factory.mktemp("release")
    release.make(out, [ONE])
    return out


def _unpacked(made: Path, into: Path) -> Path:
    with tarfile.open(made / f"fastenough-{__version__}-probes.tar.xz") as tar:
        tar.extractall(into)
    return into / f"fastenough-{__version__}-probes"


def _agree(folder: Path) -> bool:
    return (
        subprocess.run(
            ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=False, capture_output=True
        ).returncode
        == 0
    )


@pytest.mark.matrix
def test_the_same_bytes_wherever_it_is_made(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "a-folder-of-another-length"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setenv("TZ", "Pacific/Apia")
    old = os.umask(0o077)
    try:
        release.make(tmp_path / "again", [ONE])
    finally:
        os.umask(old)
    for file in made.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_the_checksums_are_those_of_the_files(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    assert _agree(copy)
    probes = _unpacked(made, tmp_path)
    assert _agree(probes)
    for folder, file in ((copy, f"fastenough-{__version__}.tar.xz"), (probes, "fastenough-probe-armv7l")):
        changed = bytearray((folder / file).read_bytes())
        changed[len(changed) // 2] ^= 1
        (folder / file).write_bytes(changed)
        assert not _agree(folder)


def test_buildroots_hashes_are_of_the_sources_and_the_licence_in_them(made: Path) -> None:
    """As its manual has them: kind, sum and name, two blanks apart."""
    name = f"fastenough-{__version__}"
    with tarfile.open(made / f"{name}.tar.xz") as tar:
        licence = tar.extractfile(f"{name}/COPYING")
        assert licence is not None
        expected = {f"{name}.tar.xz": (made / f"{name}.tar.xz").read_bytes(), "COPYING": licence.read()}
    told = [line.split("  ") for line in (made / "fastenough.hash").read_text().splitlines()]
    assert told == [["sha256", hashlib.sha256(content).hexdigest(), file] for file, content in expected.items()]


def test_a_bench_takes_a_boards_probe_from_the_unpacked_archive(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastenough.board.files import FILES_SETTING, file_for  # noqa: PLC0415 - used here only

    probes = _unpacked(made, tmp_path)
    monkeypatch.setenv(FILES_SETTING, str(probes))
    for machine in ("armv7l", "armv8l"):
        assert file_for(machine) == (probes / "fastenough-probe-armv7l").read_bytes()
    assert os.access(probes / "fastenough-probe-armv7l", os.X_OK)


def test_every_kind_of_board_that_can_be_built_for_is_in_it() -> None:
    released = {name for one in release.architectures().values() for name in release.names(one)}
    assert {machine for machine, known in MACHINES.items() if known.cross} | {"mipsel", "amd64-musl"} == released
    assert len(release.architectures()) >= 8


def test_the_sources_are_the_whole_committed_tree(made: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=release.ROOT, text=True, capture_output=True, check=True
    ).stdout.split("\n")
    with tarfile.open(made / f"fastenough-{__version__}.tar.xz") as tar:
        files = {member.name.partition("/")[2] for member in tar if not member.isdir()}
    assert files == set(filter(None, listed))


def test_a_probe_that_does_not_work_is_not_released(tmp_path: Path) -> None:
    broken = tmp_path / "probe"
    broken.write_text("no program")
    broken.chmod(0o755)
    with pytest.raises(RuntimeError, match="armhf does not work"):
        release.try_out(broken, ONE)


def test_an_architecture_that_is_unknown_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert release.main([str(tmp_path), "z80"]) == 2
    assert "there is no architecture z80; use some of amd64-musl, amd64, arm64" in capsys.readouterr().err
