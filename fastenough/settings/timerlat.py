# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own timerlat tracer, whose threads measure until the run is over."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.instance import TRACEFS, instance_steps, require_instances
from fastenough.settings.setting import Requested, Setting, Step, integer
from fastenough.settings.trace import LEAST_KB, MOST_KB

_ARRANGE = 'set -e; echo "$1" >buffer_size_kb; echo timerlat >current_tracer'


def _steps(link: Link, requested: Requested) -> list[Step]:
    buffer_kb = integer("timerlat", requested, LEAST_KB, MOST_KB)
    require_instances(link)
    if "timerlat" not in link.run(["cat", f"{TRACEFS}/available_tracers"]).text.split():
        raise NotApplicable(
            "the kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER is off); of Debian's kernels "
            "those with PREEMPT_RT have it, from 6.1 on"
        )
    return instance_steps(link, _ARRANGE, str(buffer_kb))


SETTING = Setting("timerlat", "runs the kernel's timerlat tracer, with so many kB of buffer for each CPU", _steps)
