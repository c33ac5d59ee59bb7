# SPDX-License-Identifier: GPL-2.0-or-later
"""What a setting is: a name, and how a requested value becomes values for places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import FilePlace, Place

Requested = str | int | float | bool
Step = tuple[Place, str]


@dataclass(frozen=True)
class Setting:
    """``steps`` turns a requested value into places and the values they shall have.

    It raises NotApplicable where the board has no such thing, BadInput for a value that cannot be.  ``files``: patterns
    of the files it writes; no other is put back.
    """

    name: str
    what: str
    steps: Callable[[Link, Requested], list[Step]]
    files: tuple[str, ...] = ()


def integer(name: str, requested: Requested, low: int, high: int) -> int:
    """The requested value as an integer within bounds; raises BadInput."""
    try:
        value = int(str(requested))
    except ValueError:
        value = low - 1
    if isinstance(requested, bool) or not low <= value <= high:
        raise BadInput(f"setting {name} = {requested!r} cannot be: write an integer from {low} to {high}")
    return value


def number_in(name: str, what: str, path: str, low: int, high: int) -> Setting:
    """A setting that is one integer, within bounds, in one file of the kernel's."""

    def steps(link: Link, requested: Requested) -> list[Step]:
        value = integer(name, requested, low, high)
        if not link.exists(path):
            raise NotApplicable(f"{path} is not there")
        return [(FilePlace(path), str(value))]

    return Setting(name, what, steps, files=(path,))


def word_of_each_cpu(name: str, what: str, files: str, offered: str, absent: str) -> Setting:
    """A setting that is one of the words which the kernel offers, in a file of each CPU.

    ``files``: where they lie, as a pattern; ``offered``: the name of the file beside each that has the words;
    ``absent``: why there is none.
    """

    def steps(link: Link, requested: Requested) -> list[Step]:
        paths = link.glob(files)
        if not paths:
            raise NotApplicable(absent)
        words = link.read(f"{paths[0].rpartition('/')[0]}/{offered}").decode(errors="replace").split()
        if requested not in words:
            raise BadInput(f"setting {name} = {requested!r} cannot be: write one of {', '.join(words)}")
        return [(FilePlace(path, cpu=int(path.split("/")[5][3:])), str(requested)) for path in paths]

    return Setting(name, what, steps, files=(files,))
