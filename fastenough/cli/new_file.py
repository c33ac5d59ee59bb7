# SPDX-License-Identifier: GPL-2.0-or-later
"""A file that a command writes anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fastenough.files import Untrusted, replacing
from fastenough.model import BadInput


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new file, there when the block ends without an exception; raises BadInput if it exists or cannot be written."""
    if path.is_symlink() or path.exists():
        raise BadInput(f"{path} exists; name a new file")
    try:
        with replacing(path) as target:
            yield target
    except Untrusted as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{error.filename or path}: {error.strerror}; name a new file in a writable folder") from error
