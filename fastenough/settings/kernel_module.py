# SPDX-License-Identifier: GPL-2.0-or-later
"""The setting that inserts a kernel module and removes it afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from fastenough.link import Link
from fastenough.link.modules import insert_module, module_name, require_own_module
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import PlaceEntry, PlaceLabel
from fastenough.settings.setting import Requested, Setting, Step

_PRESENT, _ABSENT = "present", "absent"
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class ModulePlace:
    """A module on the board; its parameters are read back with its recording."""

    name: str
    path: str = ""
    parameters: tuple[str, ...] = ()

    def read(self, link: Link) -> str:
        return _PRESENT if link.exists(f"/sys/module/{self.name}") else _ABSENT

    def write(self, link: Link, value: str) -> None:
        if value == _PRESENT:
            insert_module(link, self.path, self.parameters)
            return
        completed = link.run(["rmmod", self.name], timeout_s=_TIMEOUT_S)
        if completed.status:
            raise OSError(1, completed.stderr.decode(errors="replace").strip() or "refused")

    def entry(self) -> PlaceEntry:
        return {"kind": "module", "name": self.name}

    def label(self) -> PlaceLabel:
        return {}

    @property
    def suffix(self) -> str:
        return f" {self.name}"

    def __str__(self) -> str:
        return f"module {self.name}"


def _steps(link: Link, requested: Requested) -> list[Step]:
    path, *parameters = str(requested).split()
    file = PurePosixPath(path)
    if file.suffix != ".ko" or not all("=" in parameter for parameter in parameters):
        raise BadInput(
            f"setting kernel-module = {requested!r} is not valid; use the path of a .ko file on the board "
            'and its parameters, such as "/root/fastenough.ko task=response"'
        )
    if link.which("insmod") is None:
        raise NotApplicable("insmod is not installed: apt-get install kmod")
    if not link.exists(path):
        raise BadInput(f"setting kernel-module: no such file on the board: {path}; build it there or copy it")
    require_own_module(link, path)
    place = ModulePlace(module_name(path), path, tuple(parameters))
    if place.read(link) == _PRESENT:
        raise BadInput(f"setting kernel-module: {place.name} is already loaded; remove it: rmmod {place.name}")
    return [(place, _PRESENT)]


SETTINGS = (Setting("kernel-module", "insert a kernel module: path on the board, then its parameters", _steps),)
