# SPDX-License-Identifier: GPL-2.0-or-later
"""A JSON list in a file that only its owner may read or write."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastenough.files import Untrusted, refusal_text
from fastenough.folder import Folder
from fastenough.model import BadInput

Entry = dict[str, object]
_MOST_FILE_BYTES = 16 << 20


@dataclass(frozen=True)
class SecretFile:
    """The file, which is made with its first entry.  ``kind``: what the entries are, as in ``tokens``."""

    path: Path
    kind: str

    def entries(self) -> list[Entry]:
        """All, in their order; none if there is no file.  Raises BadInput for a file that others may read."""
        try:
            with Folder.at(self.path.parent) as folder:
                return self._read(folder)
        except FileNotFoundError:
            return []
        except (OSError, Untrusted) as error:
            raise self._fault(error) from error

    @contextmanager
    def changed(self) -> Iterator[list[Entry]]:
        """All entries; the file is rewritten if the block ends without an exception.  Changes are serialised."""
        try:
            with Folder.at(self.path.parent, make=True) as folder, folder.turn(lambda: None):
                entries = self._read(folder)
                yield entries
                content = {"format": f"fastenough-{self.kind}", "version": 1, self.kind: entries}
                folder.replace(self.path.name, json.dumps(content, indent=1).encode() + b"\n", 0o600)
        except (OSError, Untrusted) as error:
            raise self._fault(error) from error

    def _read(self, folder: Folder) -> list[Entry]:
        try:
            status = folder.status(self.path.name)
        except FileNotFoundError:
            return []
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.geteuid():
            raise BadInput(
                f"{self.path} is accessible to other users; check its content, then run: chmod 600 {self.path}"
            )
        try:
            entries = json.loads(folder.read(self.path.name, _MOST_FILE_BYTES))[self.kind]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self.damaged() from error
        if not isinstance(entries, list):
            raise self.damaged()
        return entries

    def damaged(self) -> BadInput:
        """The error for a file with other content."""
        return BadInput(f"{self.path} is not a valid file of {self.kind}; move it away, and add the {self.kind} again")

    def _fault(self, error: OSError | Untrusted) -> BadInput:
        return BadInput(f"{self.path}: {refusal_text(error, 'use a file in a folder of your own')}")
