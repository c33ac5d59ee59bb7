# SPDX-License-Identifier: GPL-2.0-or-later
"""Computing, flushing, memory and files all at once.

The source writes files of 4096 bytes; stress-ng allows none below 1 MB, so its files are written in blocks of 4096.
"""

from fastenough.loads.load import Expectation, Load, stress_ng

LOAD = Load(
    name="full",
    source="Enea, Optimizing for real-time on the P2041, table A.1: "
    "stress -c 4 -i 4 -m 4 --vm-bytes 4096 -d 4 --hdd-bytes 4096 on four CPUs",
    tools=("stress-ng",),
    commands=(
        stress_ng(
            "--cpu",
            "{cpus}",
            "--cpu-method",
            "sqrt",
            "--io",
            "{cpus}",
            "--vm",
            "{cpus}",
            "--vm-bytes",
            "4096",
            "--hdd",
            "{cpus}",
            "--hdd-bytes",
            "1M",
            "--hdd-write-size",
            "4096",
        ),
    ),
    expects=Expectation(cpu_share=0.05, bytes_written_per_s=1000.0, processes=1, processes_per_cpu=5),
    disk_bytes=2 << 20,
    memory_bytes=64 << 20,
)
