# SPDX-License-Identifier: GPL-2.0-or-later
"""Profile and paths of deterministic boards, for recordings made to measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.recordings import PROFILE

EMULATOR = {"program": "qemu", "version": "7.2", "sha256": "ab" * 32}
COUNTED: dict[str, Any] = PROFILE | {"emulator": EMULATOR, "emulated": True}
"""The profile of a deterministic board."""
PATH = (4_544, 4_912, 4_912, 4_944, 8_544)
"""Latencies of a path, in instructions."""


def one_interval(latencies: Sequence[int]) -> list[list[NDArray[np.int64]]]:
    """The latencies of one interval of one CPU."""
    return [[np.array(latencies, dtype=np.int64)]]
