# SPDX-License-Identifier: GPL-2.0-or-later
"""An interrupted set-up leaves the machine as it was, and the next one completes it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.tools import ROOT

pytestmark = pytest.mark.quick

FOREIGN = "#!/bin/sh\nexit 101\n"


class SetUp:
    """A copy of setup/install with programs in place of apt-get and others, and its policy for services."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.policy = folder / "policy-rc.d"
        self.script = folder / "setup" / "install"
        self.script.parent.mkdir()
        shutil.copy(ROOT / "setup" / "debian-run.txt", self.script.parent)
        (folder / "bin").mkdir()
        self.program("id", "echo 0")
        self.program("dpkg-query", "echo not-installed")
        self.program("systemctl", "")

    def program(self, name: str, body: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def start(self, step: str) -> subprocess.Popen[bytes]:
        """Start one step in a new process group, as a terminal does."""
        text = (ROOT / "setup" / "install").read_text().replace("/usr/sbin/policy-rc.d", str(self.policy))
        self.script.write_text(f"{text[: text.index(chr(10) + 'install_packages' + chr(10))]}\n{step}\n")
        return subprocess.Popen(
            ["env", "--default-signal", "sh", str(self.script), "run"],
            env={"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@pytest.fixture
def set_up(tmp_path: Path) -> SetUp:
    return SetUp(tmp_path)


def _wait_for(path: Path, *, there: bool) -> None:
    deadline = time.monotonic() + 20
    while path.exists() != there:
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_installation_lets_services_start(set_up: SetUp, number: int) -> None:
    begun = set_up.folder / "begun"
    set_up.program("apt-get", f'[ "$1" = update ] || {{ : >{begun}; exec sleep 60; }}')
    with set_up.start("install_packages") as process:
        _wait_for(begun, there=True)
        assert os.access(set_up.policy, os.X_OK)
        os.killpg(process.pid, number)
    _wait_for(set_up.policy, there=False)


@pytest.mark.parametrize("status", [0, 100])
def test_an_installation_ends_its_policy_for_services(set_up: SetUp, status: int) -> None:
    seen = set_up.folder / "seen"
    set_up.program("apt-get", f'[ "$1" = update ] || {{ {set_up.policy} || echo $? >{seen}; exit {status}; }}')
    with set_up.start("install_packages") as process:
        process.wait(60)
    assert (process.returncode, seen.read_text()) == (status, "101\n")
    assert not set_up.policy.exists()


@pytest.mark.parametrize("foreign", [False, True], ids=["of a killed set-up", "of the administrator"])
def test_only_a_policy_of_a_killed_set_up_is_removed(set_up: SetUp, foreign: bool) -> None:
    set_up.program("apt-get", f'[ "$1" = update ] || cp {set_up.policy} {set_up.folder}/written')
    set_up.start("install_packages").wait(60)
    set_up.policy.write_text(FOREIGN if foreign else (set_up.folder / "written").read_text())
    set_up.program("dpkg-query", "echo installed")
    with set_up.start("install_packages") as process:
        process.wait(60)
    assert process.returncode == 0
    assert set_up.policy.exists() == foreign


@pytest.mark.parametrize("complete", [False, True])
def test_an_environment_without_pip_is_made_again(set_up: SetUp, complete: bool) -> None:
    programs = set_up.folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pip") if complete else ("python",):
        (programs / name).touch(0o755)
    set_up.program("python3", f'[ "$1" = -c ] || echo "$@" >>{set_up.folder}/calls')
    with set_up.start("make_environment") as process:
        process.wait(60)
    calls = set_up.folder / "calls"
    assert (process.returncode, calls.exists()) == (0, not complete)
    assert complete or calls.read_text() == "-m venv --clear .venv\n"


@pytest.mark.parametrize("complete", [False, True])
def test_npm_packages_are_installed_again_if_npm_did_not_end(set_up: SetUp, complete: bool) -> None:
    shutil.copytree(ROOT / "setup" / "npm", set_up.folder / "setup" / "npm")
    installed = set_up.folder / "build" / "npm"
    (installed / "node_modules").mkdir(parents=True)
    shutil.copy(ROOT / "setup" / "npm" / "package-lock.json", installed)
    if complete:
        (installed / "node_modules" / ".package-lock.json").touch()
    set_up.program("npm", f": >{set_up.folder}/called")
    with set_up.start("install_npm test") as process:
        process.wait(60)
    assert (process.returncode, (set_up.folder / "called").exists()) == (0, not complete)
