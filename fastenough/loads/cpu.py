# SPDX-License-Identifier: GPL-2.0-or-later
"""Every CPU computes square roots."""

from fastenough.loads.load import Expectation, Load, stress_ng

LOAD = Load(
    name="cpu",
    source="Enea, Optimizing for real-time on the P2041, table A.2: stress -c, one worker per CPU",
    tools=("stress-ng",),
    commands=(stress_ng("--cpu", "{cpus}", "--cpu-method", "sqrt"),),
    expects=Expectation(cpu_share=0.05, processes=1, processes_per_cpu=1),
    memory_bytes=16 << 20,
)
