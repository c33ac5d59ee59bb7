# SPDX-License-Identifier: GPL-2.0-or-later
"""Every CPU writes and reads small files."""

from fastenough.loads.load import Expectation, Load, stress_ng

LOAD = Load(
    name="hdd",
    source="Enea, Optimizing for real-time on the P2041, table A.1: stress -d 4 --hdd-bytes 1M on four CPUs",
    tools=("stress-ng",),
    commands=(stress_ng("--hdd", "{cpus}", "--hdd-bytes", "1M"),),
    expects=Expectation(bytes_written_per_s=10_000.0, processes=1, processes_per_cpu=1),
    disk_bytes=2 << 20,
    memory_bytes=32 << 20,
)
