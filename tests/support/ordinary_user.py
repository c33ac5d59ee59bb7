# SPDX-License-Identifier: GPL-2.0-or-later
"""An ordinary user made for a test, with or without sudo, and gone afterwards."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.privileges import require_root

ROOT = Path(__file__).resolve().parents[2]
_TRIAL = "import numpy, scipy"
_TRUSTED = (
    f"{_TRIAL}, sys; from fastenough.files import require_trusted; from fastenough.link import guard; "
    "[require_trusted(path) for path in (sys.executable, guard.__file__)]"
)
"""What sudo starts for a user may be changed by root and that user only."""
_BUSY, _BUSY_S = 4, 60.0
"""Exit status while another bench measures, and how long that may last."""
TOOLS = ("useradd", "userdel", "setpriv", "prlimit", "sudo")


@dataclass(frozen=True)
class User:
    name: str
    home: Path
    python: str

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.name).pw_uid

    def environment(self) -> dict[str, str]:
        """The home is where state and settings go; no variable of the tests' own reaches the user."""
        packages = sysconfig.get_path("purelib")
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "PYTHONPATH": f"{ROOT}:{packages}"}

    def prefix(self) -> list[str]:
        """Put before a command: it runs as this user, without real-time priority."""
        return [
            "prlimit",
            "--rtprio=0:0",
            "--memlock=65536:65536",
            "setpriv",
            f"--reuid={self.name}",
            f"--regid={self.name}",
            "--init-groups",
        ]

    def argv(self, *arguments: str) -> list[str]:
        return [*self.prefix(), self.python, "-m", "fastenough", *arguments]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The result of a command, repeated while a test beside this one measures on the same machine."""
        until_s = time.monotonic() + _BUSY_S
        while (done := self._call_once(*arguments)).returncode == _BUSY and time.monotonic() < until_s:
            time.sleep(0.5)
        return done

    def _call_once(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*arguments),
            cwd=self.home,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*arguments),
            cwd=self.home,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _python(name: str, home: Path, trial: str) -> str:
    """One that this user may run, and sudo for this user: the virtual environment may stand on one in root's home."""
    for python in filter(os.path.exists, (sys.executable, "/usr/bin/python3")):
        user = User(name, home, python)
        tried = subprocess.run(
            [*user.prefix(), python, "-c", trial], cwd=home, env=user.environment(), capture_output=True, check=False
        )
        if tried.returncode == 0:
            return python
    pytest.skip("no Python here that an ordinary user may run, with the checkout readable, and root's own for sudo")


@contextmanager
def ordinary_user(*, sudo: bool) -> Iterator[User]:
    """While inside, the user is there; its home too, and, with ``sudo``, a rule that asks for no password."""
    require_root("it makes a user")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not there: {', '.join(missing)}")
    name = f"fetest{secrets.token_hex(4)}"
    home = Path(tempfile.mkdtemp(prefix="fastenough-user-"))
    rule = Path("/etc/sudoers.d") / name
    subprocess.run(["useradd", "-M", "-d", str(home), "-s", "/bin/sh", name], check=True)
    try:
        shutil.chown(home, name, name)
        if sudo:
            rule.touch(mode=0o440)
            rule.write_text(f"{name} ALL=(ALL) NOPASSWD: ALL\n")
        yield User(name, home, _python(name, home, _TRUSTED if sudo else _TRIAL))
    finally:
        rule.unlink(missing_ok=True)
        subprocess.run(["userdel", name], check=True, capture_output=True)
        shutil.rmtree(home)
