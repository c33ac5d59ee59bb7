# SPDX-License-Identifier: GPL-2.0-or-later
"""Which files may hold tests with certain markers, by their text.

To collect all files takes one CPU for ten seconds, and each process of a tier would do so.  Too many files cost time;
no file with such a test is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER_TIERS = {"unit": "quick", "process": "check", "guest": "slow"}
"""The tier of the tests in each folder that are not marked with another one."""
_OF_MODULE = re.compile(r"^pytestmark = (.*)", re.MULTILINE)


def _markers(text: str) -> set[str]:
    return set(re.findall(r"\bmark\.(\w+)", text))


def _begins_a_word(text: str, marker: str) -> bool:
    """Whether the text names the marker, or an argument such as ``checked`` that makes a function set it."""
    return re.search(rf"\b{marker}", text) is not None


@dataclass(frozen=True)
class TierFiles:
    """Tests of one of ``tiers`` that have all the markers ``having`` and none of ``without``."""

    tiers: Collection[str]
    having: Collection[str] = ()
    without: Collection[str] = ()

    @property
    def expression(self) -> str:
        """These tests, as an argument of pytest's option -m."""
        of_tiers = f"({' or '.join(self.tiers)}) and not matrix"
        return " and ".join([of_tiers, *self.having, *(f"not {name}" for name in self.without)])

    def may_hold(self, text: str, folder: str) -> bool:
        """Whether a file with this text, in this folder of tests/, may hold such a test."""
        module = _markers(" ".join(_OF_MODULE.findall(text)))
        of_tier = module & set(FOLDER_TIERS.values())
        if of_tier:
            in_tier = bool(of_tier & set(self.tiers))
        else:
            in_tier = FOLDER_TIERS.get(folder) in self.tiers or any(_begins_a_word(text, name) for name in self.tiers)
        return in_tier and not module & set(self.without) and all(_begins_a_word(text, name) for name in self.having)

    def below(self, root: Path, part: str) -> list[str]:
        """The names of such files from ``root`` on."""
        folder = Path(part).name
        paths = sorted((root / part).rglob("test_*.py"))
        return [str(path.relative_to(root)) for path in paths if self.may_hold(path.read_text(), folder)]


def largest_first(root: Path, names: Iterable[str]) -> list[str]:
    """By the size of the files, so that a long one does not run last."""
    return sorted(names, key=lambda name: -(root / name).stat().st_size)
