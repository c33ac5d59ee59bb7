# SPDX-License-Identifier: GPL-2.0-or-later
"""Every CPU flushes all file systems, again and again."""

from fastenough.loads.load import Expectation, Load, stress_ng

LOAD = Load(
    name="io",
    source="Enea, Optimizing for real-time on the P2041, table A.2: stress -i, one worker per CPU",
    tools=("stress-ng",),
    commands=(stress_ng("--io", "{cpus}"),),
    expects=Expectation(cpu_share=0.0005, processes=1, processes_per_cpu=1),
    memory_bytes=16 << 20,
)
