# SPDX-License-Identifier: GPL-2.0-or-later
"""What passes between bench and agent: docs/agent.md is the contract, target/agent/frames.h its other half."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

VERSION = 1
FRAME = struct.Struct("<III")
NUMBER = struct.Struct("<I")
GREETING = struct.Struct("<III")
"""Version, process id and user id of the agent."""
NONCE_SIZE = 16
FRAME_MOST = 131072


class Kind(IntEnum):
    INPUT = 0
    START = 1
    SIGNAL = 2
    KILL = 3
    STARTED = 4
    OUTPUT = 5
    ERRORS = 6
    EXITED = 7
    RESET = 8
    PING = 9
    REFUSED = 10


@dataclass(frozen=True)
class Stream:
    """Both ways of a transport.

    ``end`` makes reads and writes of both descriptors end at once, ``free`` then closes them; ``why`` is a sentence
    that says why the board cannot be reached any more.
    """

    reader: int
    writer: int
    end: Callable[[], None]
    free: Callable[[], None]
    why: Callable[[], str]


@dataclass(frozen=True)
class Pace:
    """How a silent transport is noticed on both sides; 0 where it always tells its end by itself.

    The bench says something every ``ping_s``; it gives up when nothing came back for ``silence_s``, the agent when
    nothing came for ``patience_s``: it then ends all that it has started.
    """

    ping_s: float = 0.0
    silence_s: float = 0.0
    patience_s: float = 0.0


NO_PACE = Pace()
"""For a transport that tells its end by itself."""
