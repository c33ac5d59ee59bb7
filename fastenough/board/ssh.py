# SPDX-License-Identifier: GPL-2.0-or-later
"""A board behind ssh, measured as booted: ``ssh://user@host:port``.  It needs no installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

from fastenough.board.base import AS_BOOTED, Booted, checked_profile, configuration_in, installed_module
from fastenough.board.files import file_for
from fastenough.link.ssh import OWN_FILE, Address, open_ssh, parse_address


@dataclass(frozen=True)
class SshBoard:
    """A board behind ssh, which the bench does not boot."""

    address: Address

    @property
    def name(self) -> str:
        return f"ssh://{self.address}"

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED,)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        with closing(open_ssh(self.address, file_for)) as link:
            profile = checked_profile(link, configuration)
            yield Booted(
                link,
                configuration_in(profile, configuration),
                OWN_FILE,
                module=partial(installed_module, link),
                kernel=profile.get("kernel") or {},
            )


def open_board(which: str) -> SshBoard:
    """Return the board at ``[USER@]HOST[:PORT]``; raise BadInput for an invalid address."""
    return SshBoard(parse_address(which))
