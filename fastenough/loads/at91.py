# SPDX-License-Identifier: GPL-2.0-or-later
"""The load under which the AT91 boards ran for days: a network stream, copying, message bursts, listing everything.

The source streams a file to another machine every 7 s; here the stream stays on the loopback interface.
"""

from fastenough.loads.load import Expectation, Load, again_and_again, stress_ng

LOAD = Load(
    name="at91",
    source="Real-time benchmarks of AT91SAM9 boards, load script doload.sh",
    tools=("stress-ng", "hackbench"),
    commands=(
        stress_ng("--sock", "1"),
        ("dd", "if=/dev/zero", "of=/dev/null"),
        again_and_again("timeout 5 hackbench --groups 1 >/dev/null", "0|124|143"),
        again_and_again("ls -lR / >/dev/null 2>&1", "[012]"),
    ),
    expects=Expectation(cpu_share=0.05, switches_per_s=50.0, bytes_read_per_s=100_000.0, processes=6),
    memory_bytes=64 << 20,
)
