# SPDX-License-Identifier: GPL-2.0-or-later
"""Where meson and ninja are: in the environment this program runs in, else on the machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from fastenough.model import NotApplicable


def tool_path() -> str:
    """A PATH that begins with the folder of this program's interpreter, where its environment has its tools."""
    return f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"


def tool_environment() -> dict[str, str]:
    """The environment in which tools find each other: meson starts ninja by its name."""
    return {**os.environ, "PATH": tool_path()}


def tool(name: str, package: str) -> str:
    """A tool's path; raises NotApplicable with the package that has it."""
    found = shutil.which(name, path=tool_path())
    if found is None:
        raise NotApplicable(f"{name} is missing; mend: apt-get install {package}")
    return found
