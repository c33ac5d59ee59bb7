# SPDX-License-Identifier: GPL-2.0-or-later
"""Agents for tests: of this build, talked to through pipes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from fastenough.link import find_probe
from fastenough.link.agent import NO_PACE, AgentLink, Pace
from fastenough.link.ssh import start_piped, stream_of

QUICK = Pace(ping_s=0.2, silence_s=3.0, patience_s=3.0)


def link_to(*argv: str, pace: Pace = NO_PACE, timeout_s: float = 10.0, command_s: float = 10.0) -> AgentLink:
    """The agent that a command becomes; its process is ``link.process``."""
    process, said = start_piped(argv)
    return AgentLink(
        stream_of(process, said, lambda: "the agent has ended"),
        "start_piped",
        pace=pace,
        timeout_s=timeout_s,
        command_s=command_s,
    )


@contextmanager
def agent(pace: Pace = NO_PACE) -> Iterator[AgentLink]:
    with closing(link_to(find_probe(), "agent", "stdio", pace=pace)) as link:
        yield link
