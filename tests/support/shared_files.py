# SPDX-License-Identifier: GPL-2.0-or-later
"""Run pytest with files that other such processes share: each file is run by the process that comes to it first.

``python -P tests/support/shared_files.py CLAIMS ARGUMENTS``: CLAIMS is a directory that these processes have in common,
ARGUMENTS are those of pytest, the same for all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest


class SharedFiles:
    """Takes file after file until none is left."""

    def __init__(self, claims: Path) -> None:
        self._claims = claims
        self._own: dict[Path, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """The loop of pytest over the tests of the files that no other process has taken.

        What a test leaves for the next one depends on that one, so the next file is taken when the last test of a file
        begins.
        """
        if session.testsfailed or session.config.option.collectonly:
            return None
        items = self._items(session)
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        return (item for item in session.items if self._is_own(item.path))

    def _is_own(self, path: Path) -> bool:
        if path not in self._own:
            try:
                (self._claims / sha256(bytes(path)).hexdigest()).touch(exist_ok=False)
            except FileExistsError:
                self._own[path] = False
            else:
                self._own[path] = True
        return self._own[path]


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[2:], plugins=[SharedFiles(Path(sys.argv[1]))]))
