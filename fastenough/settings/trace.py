# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace of the kernel's scheduling and interrupts in a ring buffer of its own, taken away when the run is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.setting import Requested, Setting, Step, integer

TRACEFS = "/sys/kernel/tracing"
INSTANCE = f"{TRACEFS}/instances/fastenough"
"""An instance has buffers and switches of its own: whoever else traces is neither seen nor disturbed."""
SWITCH = f"{INSTANCE}/tracing_on"
BUFFER_KB = 1024
"""Of each CPU, unless there are many: 10,000 events and more, which is milliseconds under the heaviest load."""
EVENTS = (
    "sched/sched_switch", "sched/sched_waking",
    "irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_entry", "irq/softirq_exit",
    "timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit",
    "irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit",
    "irq_vectors/reschedule_entry", "irq_vectors/reschedule_exit",
    "irq_vectors/call_function_entry", "irq_vectors/call_function_exit",
    "irq_vectors/call_function_single_entry", "irq_vectors/call_function_single_exit",
    "ipi/ipi_entry", "ipi/ipi_exit", "power/cpu_idle",
)
"""All that is ever switched on, as far as the kernel has it.  A list, and no pattern: there are tracepoints that crash
some kernels."""
_PRESENT, _ABSENT = "present", "absent"
LEAST_KB, _MOST_KB = 64, 16384
_TIMEOUT_S = 60.0

_LACKS = """
[ -e "$1" ] || { echo "the kernel has no $1 (CONFIG_TRACING is off)"; exit; }
[ -x "$1" ] || { echo "a trace of the kernel needs root: run fastenough as root or with sudo"; exit; }
[ -d "$1/instances" ] || { echo "tracefs is not mounted; mount -t tracefs tracefs $1"; exit; }
[ -w "$1/instances" ] || echo "a trace of the kernel needs root: run fastenough as root or with sudo"
"""
_ARRANGE = """
set -e
cd "$1"
echo 0 >tracing_on
echo mono >trace_clock
echo "$2" >buffer_size_kb
shift 2
for event; do
	if [ -e "events/$event/enable" ]; then echo 1 >"events/$event/enable"; fi
done
echo 1 >tracing_on
"""


@dataclass(frozen=True)
class TracePlace:
    """The instance; its events are off and its memory is given back once it is absent."""

    buffer_kb: int = BUFFER_KB

    def read(self, link: Link) -> str:
        return _PRESENT if link.run(["test", "-d", INSTANCE]).status == 0 else _ABSENT

    def write(self, link: Link, value: str) -> None:
        if value == _ABSENT:
            self._run(link, ["rmdir", INSTANCE])
            return
        self._run(link, ["mkdir", INSTANCE])
        try:
            self._run(link, ["sh", "-c", _ARRANGE, "sh", INSTANCE, str(self.buffer_kb), *EVENTS])
        except OSError:
            link.run(["rmdir", INSTANCE])
            raise

    @staticmethod
    def _run(link: Link, words: list[str]) -> None:
        done = link.run(words, timeout_s=_TIMEOUT_S)
        if done.status:
            raise OSError(1, done.stderr.decode(errors="replace").strip() or "refused")

    def entry(self) -> dict[str, Any]:
        return {"kind": "trace"}

    def label(self) -> dict[str, Any]:
        return {}

    @property
    def suffix(self) -> str:
        return ""

    def __str__(self) -> str:
        return INSTANCE


def _steps(link: Link, requested: Requested) -> list[Step]:
    buffer_kb = integer("trace", requested, LEAST_KB, _MOST_KB)
    lacks = link.run(["sh", "-c", _LACKS, "sh", TRACEFS]).text.strip()
    if lacks:
        raise NotApplicable(lacks)
    place = TracePlace(buffer_kb)
    if place.read(link) == _PRESENT:
        raise NotApplicable(f"{INSTANCE} is there already: another fastenough uses it, or else remove it: "
                            f"rmdir {INSTANCE}")
    return [(place, _PRESENT)]


SETTING = Setting("trace", "traces scheduling and interrupts into a ring buffer of so many kB for each CPU", _steps)
