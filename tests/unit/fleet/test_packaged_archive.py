# SPDX-License-Identifier: GPL-2.0-or-later
"""The Debian package has all files that an archive needs, also in an object store."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pyarrow

from tests.support.cli_calls import ROOT


def test_the_package_keeps_what_reaches_s3() -> None:
    rules = (ROOT / "packaging" / "debian" / "rules").read_text().replace("\\\n", "")
    (unused,) = re.findall("^UNUSED = (.*)$", rules, re.MULTILINE)
    folder = Path(pyarrow.__file__).parent
    removed = subprocess.run(["find", folder, *shlex.split(unused)], check=True, capture_output=True, text=True).stdout
    names = {Path(line).name for line in removed.splitlines()}
    assert {name for name in names if "_s3" in name} <= {"_s3fs.pyx"}
    assert any("_flight" in name for name in names)
