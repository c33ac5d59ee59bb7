# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory is streamed through every CPU's cache.

The source reads /dev/mem from end to end; that is forbidden by most kernels of today and can hang a board whose devices
do not like to be read, so streams of ordinary memory take its place.
"""

from fastenough.loads.load import Expectation, Load, stress_ng

LOAD = Load(
    name="rtlinux-memory",
    source="RTLinux on x86, a case study, figure 1: cat /dev/mem",
    tools=("stress-ng",),
    commands=(stress_ng("--stream", "{cpus}", "--stream-l3-size", "4M"),),
    expects=Expectation(cpu_share=0.05, processes=1, processes_per_cpu=1),
    memory_bytes=128 << 20,
)
