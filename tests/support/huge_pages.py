# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine's setting for huge pages, which the tests of settings change."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def other_value() -> str:
    """A value of the setting that is not in effect."""
    return "never" if "[never]" not in HUGE_PAGES.read_text() else "madvise"


@contextmanager
def only_user() -> Iterator[None]:
    """Wait until no other test uses the setting; check at the end that it is as it was at the start.

    Tests run in several lots at once, each with its own journals: who took another test's value for the original one
    would restore it last.
    """
    with HUGE_PAGES.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = file.read()
        yield
        assert HUGE_PAGES.read_text() == before
