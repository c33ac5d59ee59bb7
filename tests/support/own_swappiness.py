# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine with a setting that a test may change without effect on others."""

from __future__ import annotations

from collections.abc import Callable

from fastenough.link import LocalLink


class OwnSwappiness(LocalLink):
    """This machine, with a swappiness of its own; ``on_read`` is called before each reading of it."""

    path, value = "/proc/sys/vm/swappiness", b"60"

    def __init__(self, on_read: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._on_read = on_read

    def read(self, path: str) -> bytes:
        if path != self.path:
            return super().read(path)
        self._on_read()
        return self.value

    def write(self, path: str, content: bytes) -> None:
        assert path == self.path
        self.value = content

    def exists(self, path: str) -> bool:
        return path == self.path or super().exists(path)
