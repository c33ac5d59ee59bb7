# SPDX-License-Identifier: GPL-2.0-or-later
"""What is read when somebody asks for it, and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar, overload

T = TypeVar("T")


class Later(Sequence[T]):
    """A sequence that ``load`` gives when its first element, or its length, is wanted."""

    def __init__(self, load: Callable[[], Sequence[T]]) -> None:
        self._load = load

    @cached_property
    def _all(self) -> Sequence[T]:
        return self._load()

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...

    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self._all[place]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)
