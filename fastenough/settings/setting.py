# SPDX-License-Identifier: GPL-2.0-or-later
"""A setting: its name, how a requested value becomes values of places, and its messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fastenough.facts.cpu import cpus_of
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.recording import head
from fastenough.settings.place import FilePlace, Place

Requested = str | int | float | bool
Step = tuple[Place, str]


@dataclass(frozen=True)
class Setting:
    """``steps`` turns a requested value into places and their new values.

    It raises NotApplicable where the board does not support the setting, BadInput for an invalid value.  ``files``:
    patterns of the files it writes; no other file is restored.
    """

    name: str
    summary: str
    steps: Callable[[Link, Requested], list[Step]]
    files: tuple[str, ...] = ()


def integer(name: str, requested: Requested, low: int, high: int) -> int:
    """Return the requested value as an integer within bounds; raise BadInput."""
    try:
        value = int(str(requested))
    except ValueError:
        value = low - 1
    if isinstance(requested, bool) or not low <= value <= high:
        raise BadInput(f"setting {name} = {requested!r} is not valid; use an integer from {low} to {high}")
    return value


def number_in(name: str, summary: str, path: str, low: int, high: int) -> Setting:
    """Return a setting that is one integer, within bounds, in one file of the kernel."""

    def steps(link: Link, requested: Requested) -> list[Step]:
        value = integer(name, requested, low, high)
        if not link.exists(path):
            raise NotApplicable(f"this kernel has no {path}")
        return [(FilePlace(path), str(value))]

    return Setting(name, summary, steps, files=(path,))


def word_of_each_cpu(name: str, summary: str, files: str, offered: str, absent: str) -> Setting:
    """Return a setting that is one of the words which the kernel supports, in a file of each CPU.

    ``files``: their pattern; ``offered``: the name of the file beside each that lists the words; ``absent``: the
    reason where there are no such files.
    """

    def steps(link: Link, requested: Requested) -> list[Step]:
        paths = link.glob(files)
        if not paths:
            raise NotApplicable(absent)
        online = cpus_of(link, "online")  # The files of offline CPUs cannot be read (EBUSY).
        paths = [path for path in paths if _cpu_of(path) in online]
        if not paths:
            raise NotApplicable(f"no online CPU has a file {files}")
        values = link.read(f"{paths[0].rpartition('/')[0]}/{offered}").decode(errors="replace").split()
        if requested not in values:
            raise BadInput(f"setting {name} = {requested!r} is not valid; use one of {', '.join(values)}")
        return [(FilePlace(path, cpu=_cpu_of(path)), str(requested)) for path in paths]

    return Setting(name, summary, steps, files=(files,))


def _cpu_of(path: str) -> int:
    """Return the number in ``/sys/devices/system/cpu/cpuN/…``."""
    return int(path.split("/")[5].removeprefix("cpu"))


_LISTED_PLACES = 3


def difference(setting: head.RecordedSetting) -> str | None:
    """Return a sentence on a setting that is not in effect; None where it is, or where none was requested."""
    if not setting.differs:
        return None
    where = "" if setting.cpu is None else f" of CPU {setting.cpu}"
    reason = f" ({setting.reason})" if setting.reason else ""
    actual = "not in effect" if setting.in_effect is None else f"in effect {setting.in_effect}"
    return f"setting {setting.name}{where}: requested {setting.requested}, {actual}{reason}"


def restored_text(places: Sequence[str]) -> str:
    """Return one line that names the first restored places and counts the others."""
    more = f" and {len(places) - _LISTED_PLACES} more" if len(places) > _LISTED_PLACES else ""
    return f"restored settings that a killed fastenough had changed: {', '.join(places[:_LISTED_PLACES])}{more}"


def print_settings(
    restored: Sequence[str],
    warnings: Iterable[str],
    entries: Iterable[head.RecordedSetting],
    tell: Callable[[str], None] | None,
) -> None:
    """Print a line for restored places, for each warning, and for each setting that is not in effect."""
    if tell is None:
        return
    for line in warnings:
        tell(line)
    if restored:
        tell(restored_text(restored))
    for line in filter(None, map(difference, entries)):
        tell(line)
