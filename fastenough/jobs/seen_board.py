# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bench that looks at a running board adds to the recordings that a service there has made meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastenough.board import Booted, configuration_in, marks_in
from fastenough.facts import collect, profile_sha256
from fastenough.recording import Head, LoadStated
from fastenough.recording.building import Added


@dataclass(frozen=True)
class BoardAnnotations:
    """``load``: what is stated that the board does besides.  ``marks``: that all of its recordings get."""

    name: str
    booted: Booted
    load: LoadStated | None = None
    marks: tuple[str, ...] = ()

    @cached_property
    def _profile(self) -> dict[str, Any]:
        return collect(self.booted.link)

    def added(self, head: Head) -> Added:
        """No profile for what was recorded before the board was booted as it is now: it may have been another kernel.

        Marks forbid conclusions, and hold for the machine, whatever it has booted.
        """
        marks = tuple(dict.fromkeys((*self.booted.marks, *marks_in(self._profile), *self.marks)))
        if head.boot_id is None or head.boot_id != self._profile["boot_id"]:
            return Added(self.name, None, self.load, marks=marks)
        return Added(
            self.name,
            configuration_in(self._profile),
            self.load,
            self._profile,
            profile_sha256(self._profile),
            marks=marks,
        )
