# SPDX-License-Identifier: GPL-2.0-or-later
"""Every CPU maps, dirties, checks and unmaps a page of memory, again and again."""

from fastenough.loads.load import Expectation, Load, stress_ng

LOAD = Load(
    name="vm",
    source="Enea, Optimizing for real-time on the P2041, table A.1: stress -m 4 --vm-bytes 4096 on four CPUs",
    tools=("stress-ng",),
    commands=(stress_ng("--vm", "{cpus}", "--vm-bytes", "4096"),),
    expects=Expectation(cpu_share=0.05, processes=1, processes_per_cpu=2),
    memory_bytes=32 << 20,
)
