# SPDX-License-Identifier: GPL-2.0-or-later
"""The output folder of a report, checked before the measurement."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.model import BadInput

REPORT_FILE = "report.json"
FILES = ("index.html", REPORT_FILE)
FOLDERS = ("figures", "tables")


def require_replaceable(folder: Folder) -> None:
    """Raises Untrusted or OSError if the folder has something that a report does not replace."""
    for name in FILES:
        folder.require_replaceable(name)
    for name in FOLDERS:
        with contextlib.suppress(FileNotFoundError):
            folder.below(name).close()


def require_writable(out_dir: Path) -> None:
    """Raises BadInput if no report can be written there; creates nothing."""
    with refusing(out_dir):
        folder, whole = Folder.nearest(out_dir)
        with folder:
            folder.require_room()
            if whole:
                require_replaceable(folder)


@contextlib.contextmanager
def refusing(out_dir: Path) -> Iterator[None]:
    """Turns write errors into BadInput."""
    try:
        yield
    except Untrusted as error:
        raise BadInput(f"--out-dir {out_dir}: {error}") from error
    except OSError as error:
        raise BadInput(
            f"cannot write the report to {out_dir}: {error.strerror}; choose another directory with --out-dir"
        ) from error
