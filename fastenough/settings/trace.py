# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace of the kernel's scheduling and interrupts in a ring buffer of its own, taken away when the run is over."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.settings.instance import instance_steps, require_instances
from fastenough.settings.setting import Requested, Setting, Step, integer

BUFFER_KB = 1024
"""Of each CPU, unless there are many: 10,000 events and more, which is milliseconds under the heaviest load."""
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
"""All that is ever switched on, as far as the kernel has it.  A list, and no pattern: there are tracepoints that crash
some kernels."""
LEAST_KB, MOST_KB = 64, 16384

_ARRANGE = """
set -e
echo mono >trace_clock
echo "$1" >buffer_size_kb
shift
for event; do
	if [ -e "events/$event/enable" ]; then echo 1 >"events/$event/enable"; fi
done
"""


def _steps(link: Link, requested: Requested) -> list[Step]:
    buffer_kb = integer("trace", requested, LEAST_KB, MOST_KB)
    require_instances(link)
    return instance_steps(link, _ARRANGE, str(buffer_kb), *EVENTS)


SETTING = Setting("trace", "traces scheduling and interrupts into a ring buffer of so many kB for each CPU", _steps)
