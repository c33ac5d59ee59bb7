# SPDX-License-Identifier: GPL-2.0-or-later
"""Histograms that the kernel keeps of how long real-time tasks wait until they run."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.instance import TRACEFS, WAKEUP_EVENT, instance_steps, require_instances
from fastenough.settings.setting import Requested, Setting, Step, integer

ENTRIES = 16384
"""Of the histogram: so many pairs of CPU and latency in whole us may be seen.  It takes some MB."""
_MOST = 131072
_REAL_TIME_BELOW = 100
_ARRANGE = f"""
set -e
echo "$1 u64 lat" >>{TRACEFS}/synthetic_events
on='size=4096:clock=mono'
echo "hist:keys=pid:woken=common_timestamp.usecs:$on if prio < {_REAL_TIME_BELOW}$3" >events/sched/sched_waking/trigger
lat='lat=common_timestamp.usecs-$woken'
match="onmatch(sched.sched_waking).$1("'$lat)'
echo "hist:keys=next_pid:$lat:$on:$match if next_prio < {_REAL_TIME_BELOW}" >events/sched/sched_switch/trigger
echo "hist:keys=common_cpu,lat:size=$2:clock=mono" >"events/synthetic/$1/trigger"
"""
_SPECIAL = '"\\*?[' + "\n"


def _steps(link: Link, requested: Requested) -> list[Step]:
    said, _, comm = str(requested).partition(":")
    entries = integer("wakeup-histograms", said, 1024, _MOST)
    require_instances(link)
    if link.run(["test", "-e", f"{TRACEFS}/synthetic_events"]).status:
        raise NotApplicable(
            "the kernel keeps no histograms of its own (CONFIG_HIST_TRIGGERS is off); Debian's kernels do from 6.1 on"
        )
    if any(letter in comm for letter in _SPECIAL):
        raise NotApplicable(f"the kernel's histograms cannot be asked for a name with one of {_SPECIAL.strip()}")
    return instance_steps(link, _ARRANGE, WAKEUP_EVENT, str(entries), f' && comm ~ "{comm}*"' if comm else "")


SETTING = Setting(
    "wakeup-histograms",
    "lets the kernel count wake-ups of real-time tasks, in so many entries; 16384:robot for those whose names begin so",
    _steps,
)
