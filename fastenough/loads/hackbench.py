# SPDX-License-Identifier: GPL-2.0-or-later
"""Forty tasks per CPU that send each other messages over socket pairs."""

from fastenough.loads.load import Expectation, Load

LOAD = Load(
    name="hackbench",
    source="hackbench of rt-tests, one group per CPU",
    tools=("hackbench",),
    commands=(("hackbench", "--groups", "{cpus}", "--loops", "1000000000"),),
    expects=Expectation(switches_per_s=100.0, processes=1, processes_per_cpu=40),
    memory_bytes=64 << 20,
)
