# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores with runs of several boards of one type, made by the real writer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.store import Store
from tests.support.recordings import PROFILE, Plan, write

LIMIT_NS = 200_000
INTERVALS, PER_INTERVAL = 20, 1000


def machine(number: int) -> list[str]:
    return [f"{number:032x}"]


def values(seed: int, late: Sequence[int] = (), intervals: int = INTERVALS) -> list[NDArray[np.int64]]:
    """20 s at 1 kHz, below the limit but for the activations ``late``."""
    random = np.random.default_rng(seed)
    together = random.integers(4_000, 6_000, intervals * PER_INTERVAL)
    together[list(late)] = 2 * LIMIT_NS
    return np.split(together, intervals)


def add_run(
    store: Store,
    board: str,
    identity: Sequence[str] | None,
    *,
    seed: int,
    late: Sequence[int] = (),
    intervals: int = INTERVALS,
    profile: Mapping[str, Any] | None = None,
    head: Mapping[str, Any] | None = None,
    **more: Any,
) -> str:
    """One run of a board; ``identity``: its identifiers, None: without."""
    facts = {**PROFILE, "machine": list(identity or ()), **(profile or {})}
    writer = store.begin()
    plan = Plan(
        [values(seed, late, intervals)],
        run_id=writer.id,
        views=("wakeup_corrected",),
        head={"board": board, "profile": facts, **(head or {})},
        **{"rise_k": 3, "limit_ns": LIMIT_NS, **more},
    )
    for line in write(store.path / "scratch", plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return writer.id


def add_boards(store: Store, boards: int, late: Mapping[int, Sequence[int]] | None = None, **more: Any) -> list[str]:
    """One run of each of so many boards."""
    return list(_boards(store, boards, late or {}, **more))


def _boards(store: Store, boards: int, late: Mapping[int, Sequence[int]], **more: Any) -> Iterator[str]:
    for number in range(boards):
        yield add_run(store, f"b{number}", machine(number), seed=number, late=late.get(number, ()), **more)
