# SPDX-License-Identifier: GPL-2.0-or-later
"""An instance of tracefs, in which the kernel traces or measures for one run; what was in it goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.setting import Step

TRACEFS = "/sys/kernel/tracing"
INSTANCE = f"{TRACEFS}/instances/fastenough"
"""An instance has buffers and switches of its own: whoever else traces is neither seen nor disturbed."""
SWITCH = f"{INSTANCE}/tracing_on"
WAKEUP_EVENT = "fastenough_wakeup"
"""The one thing that an instance needs beside itself: an event that is made of two others."""
_PRESENT, _ABSENT = "present", "absent"
_TIMEOUT_S = 60.0

_LACKS = """
[ -e "$1" ] || { echo "the kernel has no $1 (CONFIG_TRACING is off)"; exit; }
[ -x "$1" ] || { echo "a trace of the kernel needs root: run fastenough as root or with sudo"; exit; }
[ -d "$1/instances" ] || { echo "tracefs is not mounted; mount -t tracefs tracefs $1"; exit; }
[ -w "$1/instances" ] || echo "a trace of the kernel needs root: run fastenough as root or with sudo"
"""
_ARRANGE = 'cd "$1" && shift && echo 0 >tracing_on && sh -c "$@" && echo 1 >tracing_on'
_REMOVE = """
for trigger in "$1/events/synthetic/$3" "$1/events/sched/sched_switch" "$1/events/sched/sched_waking"; do
	if [ -e "$trigger/trigger" ]; then : >"$trigger/trigger"; fi
done
if [ -d "$1" ]; then rmdir "$1" || exit; fi
if grep -qs "^$3" "$2"; then echo "!$3" >>"$2"; fi
"""


@dataclass(frozen=True)
class InstancePlace:
    """The instance.  ``arrange``: a script, run in it with its arguments, that says what it does once it is there."""

    arrange: tuple[str, ...] = ()

    def read(self, link: Link) -> str:
        return _PRESENT if link.run(["test", "-d", INSTANCE]).status == 0 else _ABSENT

    def write(self, link: Link, value: str) -> None:
        if value == _ABSENT:
            self._remove(link)
            return
        _run(link, ["mkdir", INSTANCE])
        try:
            script, *arguments = self.arrange
            _run(link, ["sh", "-c", _ARRANGE, "sh", INSTANCE, script, "sh", *arguments])
        except OSError:
            self._remove(link)
            raise

    @staticmethod
    def _remove(link: Link) -> None:
        _run(link, ["sh", "-c", _REMOVE, "sh", INSTANCE, f"{TRACEFS}/synthetic_events", WAKEUP_EVENT])

    def entry(self) -> dict[str, Any]:
        return {"kind": "trace"}

    def label(self) -> dict[str, Any]:
        return {}

    @property
    def suffix(self) -> str:
        return ""

    def __str__(self) -> str:
        return INSTANCE


def _run(link: Link, words: list[str]) -> None:
    done = link.run(words, timeout_s=_TIMEOUT_S)
    if done.status:
        raise OSError(1, done.stderr.decode(errors="replace").strip() or "refused")


def require_instances(link: Link) -> None:
    """Raises NotApplicable, with the reason and what helps, where no instance can be made."""
    lacks = link.run(["sh", "-c", _LACKS, "sh", TRACEFS]).text.strip()
    if lacks:
        raise NotApplicable(lacks)


def instance_steps(link: Link, *arrange: str) -> list[Step]:
    """An instance for one run; raises NotApplicable where there is one already."""
    place = InstancePlace(arrange)
    if place.read(link) == _PRESENT:
        raise NotApplicable(
            f"{INSTANCE} is there already: another fastenough uses it, or else remove it: rmdir {INSTANCE}"
        )
    return [(place, _PRESENT)]
