# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench's own machine, measured as booted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from fastenough.board.base import AS_BOOTED, Booted, checked_profile, configuration_in, installed_module
from fastenough.link import Link, LocalLink, find_probe
from fastenough.model import BadInput


@dataclass(frozen=True)
class LocalBoard:
    """The bench's own machine; ``link``: its privileges; ``probe``: path; None: the installed one; empty: none."""

    link: Link = field(default_factory=LocalLink)
    probe: str | None = None
    name: str = "local"

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED,)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        probe = find_probe(self.link) if self.probe is None else self.probe
        profile = checked_profile(self.link, configuration)
        yield Booted(
            self.link,
            configuration_in(profile, configuration),
            probe,
            module=partial(installed_module, self.link),
            kernel=profile.get("kernel") or {},
        )


def open_board(which: str) -> LocalBoard:
    """Return the bench's own machine; raise BadInput for any name after the colon."""
    if which:
        raise BadInput(f"there is only one local board; write 'local', not 'local:{which}'")
    return LocalBoard()
