# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of the project where it is packaged agrees with the project."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from fastenough import __version__
from tests.support.tools import ROOT

pytestmark = pytest.mark.untimed

PACKAGING = ROOT / "packaging"
VERSIONS = {
    "pyproject.toml": r'^version = "(.*)"',
    "meson.build": r"version: '([\d.]+)', license",
    "target/module/dkms.conf": r'^PACKAGE_VERSION="(.*)"',
    "packaging/debian/changelog": r"\Afastenough \((.*)-\d+\)",
    "packaging/buildroot/fastenough.mk": r"^FASTENOUGH_VERSION = (.*)$",
}
RECIPE = next((PACKAGING / "yocto").glob("*.bb"))


@pytest.mark.parametrize("path", VERSIONS)
def test_one_version_everywhere(path: str) -> None:
    assert re.findall(VERSIONS[path], (ROOT / path).read_text(), re.MULTILINE) == [__version__]


def test_the_recipe_is_called_as_its_version_and_knows_the_licence() -> None:
    assert RECIPE.name == f"fastenough_{__version__}.bb"
    # MD5 is what such recipes compare a licence by.
    digest = hashlib.md5((ROOT / "COPYING").read_bytes(), usedforsecurity=False).hexdigest()
    assert f"file://COPYING;md5={digest}" in RECIPE.read_text()


@pytest.mark.parametrize(
    "path",
    [RECIPE, PACKAGING / "buildroot" / "fastenough.mk", PACKAGING / "debian" / "rules"],
    ids=lambda path: path.parent.name,
)
def test_only_options_that_there_are_are_set(path: Path) -> None:
    there = set(re.findall(r"^option\('(\w+)'", (ROOT / "meson_options.txt").read_text(), re.MULTILINE))
    of_meson = {"werror", "python.purelibdir", "python.platlibdir"}
    used = set(re.findall(r"-D([\w.]+)=", path.read_text()))
    assert used and used <= there | of_meson


def test_who_could_not_be_tried_says_so() -> None:
    for path in (RECIPE, PACKAGING / "buildroot" / "fastenough.mk"):
        assert "NOT YET BUILT" in path.read_text()


def test_buildroots_package_begins_as_its_check_package_demands() -> None:
    lines = (PACKAGING / "buildroot" / "fastenough.mk").read_text().splitlines()
    assert lines[:6] == ["#" * 80, "#", "# fastenough", "#", "#" * 80, ""]
    told = (PACKAGING / "buildroot" / "Config.in").read_text().splitlines()
    helping = [line.removeprefix("\t  ") for line in told if line.startswith("\t  ")]
    assert helping and max(map(len, helping)) <= 62


def test_every_program_that_is_installed_is_in_a_package_or_said_not_to_be() -> None:
    """What ``install: true`` puts into bin; a package that leaves one out fails to build anyway, with minutes lost."""
    installed = re.compile(r"executable\('([\w-]+)'(?:(?!executable\().)*install: true", re.DOTALL)
    built = {name for path in (ROOT / "target").rglob("meson.build") for name in installed.findall(path.read_text())}
    packaged = "\n".join(path.read_text() for path in (PACKAGING / "debian").glob("*.install"))
    assert {"fastenough-probe", "fastenough-monitor"} <= built
    assert [name for name in built if f"usr/bin/{name}\n" not in packaged] == []
    assert [name for name in built if f"usr/share/man/man8/{name}.8\n" not in packaged] == []


def test_what_the_website_draws_with_is_a_copy_of_its_package() -> None:
    """Beside the wheel and the package, its licence and its source; the hashes of the package are in setup/npm."""
    package, assets = ROOT / "build" / "npm" / "node_modules" / "uplot", ROOT / "fastenough" / "web" / "assets"
    copies = {
        "LICENSE": assets / "uPlot.LICENSE",
        "dist/uPlot.iife.min.js": assets / "uPlot.iife.min.js",
        "dist/uPlot.min.css": assets / "uPlot.min.css",
        "dist/uPlot.iife.js": PACKAGING / "debian" / "missing-sources" / "uPlot.iife.js",
    }
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in copies.values()]
    assert hashes == ["8f989229699b4fe2", "19c8d4c6ad88929a", "df630c6a8d6f8eea", "1b71fc5e6b5b5729"]
    assert [
        name for name, path in copies.items() if package.is_dir() and (package / name).read_bytes() != path.read_bytes()
    ] == []


def _spdx(path: Path) -> str | None:
    head = path.read_bytes()[:300].decode(errors="replace")
    found = re.search(r"SPDX-License-Identifier: ([\w.-]+(?: WITH [\w-]+)?)", head)
    return found[1] if found else None


def _stated_by_debian(name: str) -> str:
    """The licence that debian/copyright states for a file: its last stanza that matches counts."""
    text = (PACKAGING / "debian" / "copyright").read_text()
    stanzas = re.findall(r"^Files: (.*)\nCopyright: .*\nLicense: (.*)$", text, re.MULTILINE)
    return [str(licence) for patterns, licence in stanzas if any(fnmatch(name, one) for one in patterns.split())][-1]


def test_every_file_has_the_licence_that_debian_states() -> None:
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    licences = {name: licence for name in listed if (licence := _spdx(ROOT / name))}
    assert len(licences) > 500 and "GPL-3.0-or-later" in licences.values()
    assert {
        name: licence
        for name, licence in licences.items()
        if _stated_by_debian(name).removesuffix(" exception").replace(" with ", " WITH ") != licence
    } == {}
    assert {Path(name).parent.as_posix() for name, licence in licences.items() if "GPL-3" in licence} == {"gauge/sim"}


def test_each_licence_has_its_text() -> None:
    assert "Version 2, June 1991" in (ROOT / "COPYING").read_text()
    assert "Version 3, 29 June 2007" in (ROOT / "gauge" / "sim" / "COPYING").read_text()


@pytest.mark.parametrize(
    ("follow", "lines", "percents", "status"),
    [
        (
            "follow_apt",
            ["Reading lists...", "dlstatus:1:50.5:Retrieving", "pmstatus:gcc:80.0:Unpacking gcc"],
            [50, 80],
            0,
        ),
        ("follow_apt", ["dlstatus:1:30.0:Retrieving", "failed:100"], [30], 100),
        (
            "follow_pip 4",
            ["Collecting a==1 (from x)", "  Using cached a", "Collecting b==2", "Installing collected"],
            [45, 90],
            0,
        ),
        ("follow_pip 4", ["ERROR: no", "failed 1"], [], 1),
        ("follow_ninja", ["ninja: Entering", "[1/4] cc a.o", "[2/4] cc b.o", "[4/4] ld c"], [25, 50, 100], 0),
        ("follow_ninja", ["[1/400] cc a.o", "FAILED: b.o", "failed 1"], [], 1),
    ],
)
def test_set_up_shows_how_far_it_is_and_what_failed(
    follow: str, lines: list[str], percents: list[int], status: int
) -> None:
    """A line for each quarter where no terminal is."""
    text = (ROOT / "setup" / "install").read_text()
    helpers = text[text.index("step() {") : text.index("install_packages() {")]
    done = subprocess.run(
        ["sh", "-euc", f"{helpers}\n{follow}"],
        input="\n".join([*lines, ""]),
        text=True,
        capture_output=True,
        check=False,
    )
    assert [int(line.split()[0]) for line in done.stdout.splitlines()] == percents
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
@pytest.mark.parametrize(
    "unit",
    sorted([*(ROOT / "packaging").rglob("*.service"), *(ROOT / "target").rglob("*.service")]),
    ids=lambda unit: unit.stem,
)
def test_a_service_is_given_little(unit: Path) -> None:
    """By systemd's own scale from 0 to 10."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert level is not None, done.stderr
    assert float(level[1]) < 3
