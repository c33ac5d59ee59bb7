# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings that trace: an instance of ftrace with events, the timerlat tracer or wake-up histograms, for one run."""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.place import PlaceEntry, PlaceLabel
from fastenough.settings.setting import Requested, Setting, Step, integer

TRACEFS = "/sys/kernel/tracing"
INSTANCE = f"{TRACEFS}/instances/fastenough"
"""An instance has its own buffers and switches, so that other tracing is neither seen nor disturbed."""
SWITCH = f"{INSTANCE}/tracing_on"
WAKEUP_EVENT = "fastenough_wakeup"
"""A synthetic event; the only thing that exists outside of the instance."""
_PRESENT, _ABSENT = "present", "absent"
_TIMEOUT_S = 60.0

_MISSING = """
[ -e "$1" ] || { echo "the kernel has no $1 (CONFIG_TRACING is off)"; exit; }
[ -x "$1" ] || { echo "tracing the kernel requires root: run fastenough as root or with sudo"; exit; }
[ -d "$1/instances" ] || { echo "tracefs is not mounted; mount -t tracefs tracefs $1"; exit; }
[ -w "$1/instances" ] || echo "tracing the kernel requires root: run fastenough as root or with sudo"
"""
_START = 'cd "$1" && shift && echo 0 >tracing_on && sh -c "$@" && echo 1 >tracing_on'
_REMOVE_INSTANCE = """
for trigger in "$1/events/synthetic/$3" "$1/events/sched/sched_switch" "$1/events/sched/sched_waking"; do
	if [ -e "$trigger/trigger" ]; then : >"$trigger/trigger"; fi
done
if [ -d "$1" ]; then rmdir "$1" || exit; fi
if grep -qs "^$3" "$2"; then echo "!$3" >>"$2"; fi
"""


@dataclass(frozen=True)
class InstancePlace:
    """The tracing instance.  ``configure``: a script with its arguments that configures the new instance."""

    configure: tuple[str, ...] = ()

    def read(self, link: Link) -> str:
        return _PRESENT if link.run(["test", "-d", INSTANCE]).status == 0 else _ABSENT

    def write(self, link: Link, value: str) -> None:
        if value == _ABSENT:
            self._remove(link)
            return
        _run(link, ["mkdir", INSTANCE])
        try:
            script, *arguments = self.configure
            _run(link, ["sh", "-c", _START, "sh", INSTANCE, script, "sh", *arguments])
        except OSError:
            self._remove(link)
            raise

    @staticmethod
    def _remove(link: Link) -> None:
        _run(link, ["sh", "-c", _REMOVE_INSTANCE, "sh", INSTANCE, f"{TRACEFS}/synthetic_events", WAKEUP_EVENT])

    def entry(self) -> PlaceEntry:
        return {"kind": "trace"}

    def label(self) -> PlaceLabel:
        return {}

    @property
    def suffix(self) -> str:
        return ""

    def __str__(self) -> str:
        return INSTANCE


def _run(link: Link, command: list[str]) -> None:
    completed = link.run(command, timeout_s=_TIMEOUT_S)
    if completed.status:
        raise OSError(1, completed.stderr.decode(errors="replace").strip() or "refused")


def require_instances(link: Link) -> None:
    """Raise NotApplicable, with the reason and the remedy, where an instance cannot be created."""
    reason = link.run(["sh", "-c", _MISSING, "sh", TRACEFS]).text.strip()
    if reason:
        raise NotApplicable(reason)


def instance_steps(link: Link, *configure: str) -> list[Step]:
    """Return the step that creates an instance for one run; raise NotApplicable if one exists."""
    place = InstancePlace(configure)
    if place.read(link) == _PRESENT:
        raise NotApplicable(
            f"{INSTANCE} exists: another fastenough is using it; if none is, remove it: rmdir {INSTANCE}"
        )
    return [(place, _PRESENT)]


BUFFER_KB = 1024
"""For each CPU unless there are many: 10,000 events or more, which last milliseconds under the heaviest load."""
EVENTS = (
    "sched/sched_switch",
    "sched/sched_waking",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "timer/hrtimer_expire_entry",
    "timer/hrtimer_expire_exit",
    "irq_vectors/local_timer_entry",
    "irq_vectors/local_timer_exit",
    "irq_vectors/reschedule_entry",
    "irq_vectors/reschedule_exit",
    "irq_vectors/call_function_entry",
    "irq_vectors/call_function_exit",
    "irq_vectors/call_function_single_entry",
    "irq_vectors/call_function_single_exit",
    "ipi/ipi_entry",
    "ipi/ipi_exit",
    "power/cpu_idle",
)
"""All tracepoints that are switched on, where the kernel has them.  A list instead of a pattern, since some tracepoints
crash some kernels."""
LEAST_KB, MOST_KB = 64, 16384

_TRACE_EVENTS = """
set -e
echo mono >trace_clock
echo "$1" >buffer_size_kb
shift
for event; do
	if [ -e "events/$event/enable" ]; then echo 1 >"events/$event/enable"; fi
done
"""


def _trace(link: Link, requested: Requested) -> list[Step]:
    buffer_kb = integer("trace", requested, LEAST_KB, MOST_KB)
    require_instances(link)
    return instance_steps(link, _TRACE_EVENTS, str(buffer_kb), *EVENTS)


_TIMERLAT = 'set -e; echo mono >trace_clock; echo "$1" >buffer_size_kb; echo timerlat >current_tracer'


def _timerlat(link: Link, requested: Requested) -> list[Step]:
    buffer_kb = integer("timerlat", requested, LEAST_KB, MOST_KB)
    require_instances(link)
    if "timerlat" not in link.run(["cat", f"{TRACEFS}/available_tracers"]).text.split():
        raise NotApplicable(
            "the kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER is off); Debian's kernels "
            "with PREEMPT_RT have it since 6.1"
        )
    return instance_steps(link, _TIMERLAT, str(buffer_kb))


ENTRIES = 16384
"""Pairs of CPU and latency (in whole µs) that the histogram holds.  It takes some MB."""
_MOST_ENTRIES = 131072
_REAL_TIME_BELOW = 100
_HISTOGRAMS = f"""
set -e
echo "$1 u64 lat" >>{TRACEFS}/synthetic_events
on='size=4096:clock=mono'
echo "hist:keys=pid:woken=common_timestamp.usecs:$on if prio < {_REAL_TIME_BELOW}$3" >events/sched/sched_waking/trigger
lat='lat=common_timestamp.usecs-$woken'
match="onmatch(sched.sched_waking).$1("'$lat)'
echo "hist:keys=next_pid:$lat:$on:$match if next_prio < {_REAL_TIME_BELOW}$4" >events/sched/sched_switch/trigger
echo "hist:keys=common_cpu,lat:size=$2:clock=mono" >"events/synthetic/$1/trigger"
"""
_NOT_IN_A_NAME = '"\\*?[' + "\n"


def _wakeup_histograms(link: Link, requested: Requested) -> list[Step]:
    number, _, comm = str(requested).partition(":")
    entries = integer("wakeup-histograms", number, 1024, _MOST_ENTRIES)
    require_instances(link)
    if link.run(["test", "-e", f"{TRACEFS}/synthetic_events"]).status:
        raise NotApplicable(
            "the kernel has no histogram triggers (CONFIG_HIST_TRIGGERS is off); Debian's kernels have them since 6.1"
        )
    if any(letter in comm for letter in _NOT_IN_A_NAME):
        raise NotApplicable(f"a histogram trigger cannot match a name that contains one of {_NOT_IN_A_NAME.strip()}")
    names = [f' && {field} ~ "{comm}*"' if comm else "" for field in ("comm", "next_comm")]
    return instance_steps(link, _HISTOGRAMS, WAKEUP_EVENT, str(entries), *names)


SETTINGS = (
    Setting("trace", "trace scheduling and interrupts into a ring buffer of this many kB for each CPU", _trace),
    Setting("timerlat", "run the kernel's timerlat tracer with this many kB of buffer for each CPU", _timerlat),
    Setting(
        "wakeup-histograms",
        "count wake-ups of real-time tasks in the kernel, with this many entries; 16384:robot: of tasks named robot*",
        _wakeup_histograms,
    ),
)
