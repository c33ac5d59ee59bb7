# SPDX-License-Identifier: GPL-2.0-or-later
"""A task whose lines are taken by a function that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from fastenough.implementations.task import Task
from fastenough.link import FakeLink, Process, Stalled


class _Endless:
    """A process that writes two lines and does not end."""

    pid, running = 1, True

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        yield from (b"head\n", b"interval\n")

    def wait(self, timeout_s: float | None = None) -> int:
        raise Stalled("probe has not ended")

    def stop(self) -> int:
        return 0


class _EndlessLink(FakeLink):
    def start(
        self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None, limit_s: float = 0.0
    ) -> Process:
        return _Endless()  # type: ignore[return-value]


def test_the_error_of_the_taking_function_is_the_reason() -> None:
    """Not that the task has not ended, which follows from it."""

    def take(raw: bytes) -> None:
        if raw != b"head\n":
            raise IndexError("list index out of range")

    with Task(_EndlessLink({}), ["probe"], 1.0) as task:
        task.follow(take)
        with pytest.raises(IndexError):
            task.wait(5.0)
        with pytest.raises(IndexError):
            raise task.ended_early()
