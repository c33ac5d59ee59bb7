# SPDX-License-Identifier: GPL-2.0-or-later
"""The setting of GPIO directions: an output that a killed task left driven becomes an input again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import PlaceEntry, PlaceLabel
from fastenough.settings.setting import Requested, Setting, Step

_CLASS = "/sys/class/gpio"
_REQUESTED = re.compile(r"([^,=/\s]+)/(\d+)=(in|out)")


@dataclass(frozen=True)
class PinPlace:
    """The direction of one line, ``in`` or ``out`` (driven low); ``number``: over all chips, as in sysfs."""

    number: int
    name: str

    @contextmanager
    def _exported(self, link: Link) -> Iterator[str]:
        """Export the line; yield the file with its direction.  Raise OSError while another process uses the line."""
        link.write(f"{_CLASS}/export", str(self.number).encode())
        try:
            yield f"{_CLASS}/gpio{self.number}/direction"
        finally:
            link.write(f"{_CLASS}/unexport", str(self.number).encode())

    def read(self, link: Link) -> str:
        with self._exported(link) as direction:
            return link.read(direction).decode(errors="replace").strip()

    def write(self, link: Link, value: str) -> None:
        with self._exported(link) as direction:
            link.write(direction, b"in" if value == "in" else b"low")

    def entry(self) -> PlaceEntry:
        return {"kind": "pin", "number": self.number, "name": self.name}

    def label(self) -> PlaceLabel:
        return {}

    @property
    def suffix(self) -> str:
        return f" {self.name}"

    def __str__(self) -> str:
        return f"pin {self.name}"


def _number(link: Link, chip: str, line: int) -> int:
    folders = [
        label.removesuffix("/label")
        for label in link.glob(f"{_CLASS}/gpiochip*/label")
        if link.read(label).decode(errors="replace").strip() == chip
    ]
    lines_by_base = {int(link.read(f"{folder}/base")): int(link.read(f"{folder}/ngpio")) for folder in folders}
    if not lines_by_base:
        raise NotApplicable(f"there is no GPIO chip labelled {chip!r} in {_CLASS}")
    if len(lines_by_base) > 1:
        raise BadInput(
            f"setting pin: {len(lines_by_base)} GPIO chips are labelled {chip}; use lines of a chip with a unique label"
        )
    ((base, lines),) = lines_by_base.items()
    if line >= lines:
        raise BadInput(f"setting pin: {chip} has no line {line}; use 0 to {lines - 1}")
    return base + line


def _place(link: Link, chip: str, line: int) -> PinPlace:
    place = PinPlace(_number(link, chip, line), f"{chip}/{line}")
    try:
        place.read(link)
    except PermissionError as error:
        raise BadInput(f"setting pin: no permission to set {place}; run fastenough as root or with sudo") from error
    except OSError as error:
        raise BadInput(
            f"setting pin: {place} is in use ({error.strerror}); use another line, or stop the process that uses it"
        ) from error
    return place


def _steps(link: Link, requested: Requested) -> list[Step]:
    requests = str(requested).split(",")
    matches = [_REQUESTED.fullmatch(request.strip()) for request in requests]
    if not all(matches):
        raise BadInput(
            f"setting pin = {requested!r} is not valid; use CHIP/LINE=in or CHIP/LINE=out, such as "
            '"pinctrl-bcm2711/17=in,pinctrl-bcm2711/27=out"'
        )
    if not link.exists(_CLASS):
        raise NotApplicable(f"the kernel has no {_CLASS} (CONFIG_GPIO_SYSFS is off)")
    return [(_place(link, match[1], int(match[2])), match[3]) for match in matches if match]


SETTINGS = (Setting("pin", "directions of GPIO lines: CHIP/LINE=in or CHIP/LINE=out (driven low)", _steps),)
