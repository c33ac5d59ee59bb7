# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of the project where it is packaged agrees with the project."""

from __future__ import annotations

import hashlib
import re
import runpy
from pathlib import Path

import pytest
from tools import ROOT

from fastenough import __version__

PACKAGING = ROOT / "packaging"
VERSIONS = {
    "pyproject.toml": r'^version = "(.*)"', "meson.build": r"version: '([\d.]+)', license", "target/module/dkms.conf":
    r'^PACKAGE_VERSION="(.*)"', "packaging/debian/changelog": r"\Afastenough \((.*)-\d+\)",
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


@pytest.mark.parametrize("path", [RECIPE, PACKAGING / "buildroot" / "fastenough.mk", PACKAGING / "debian" / "rules"],
                         ids=lambda path: path.parent.name)
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


def test_what_the_website_draws_with_is_in_the_source_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "setup"))
    program = runpy.run_path(str(ROOT / "setup" / "package"))
    (tmp_path / "tree").mkdir()
    program["pack_uplot"](tmp_path / "tree")
    assert list(tmp_path.glob(f"fastenough_{__version__}.orig-uplot.tar.gz"))
    assert "\n\tcp -r uplot build/npm/node_modules\n" in (PACKAGING / "debian" / "rules").read_text()
    installed = re.findall(r"'build/npm/node_modules/([^']+)'", (ROOT / "meson.build").read_text())
    assert installed and [name for name in installed if not (tmp_path / "tree" / name).is_file()] == []


def test_a_package_without_its_figures_is_not_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "setup"))
    program = runpy.run_path(str(ROOT / "setup" / "package"))
    program["require_uplot"].__globals__["UPLOT"] = tmp_path
    with pytest.raises(SystemExit):
        program["require_uplot"]()
    assert capsys.readouterr().err.count("\n") == 1
