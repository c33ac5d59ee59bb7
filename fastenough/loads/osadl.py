# SPDX-License-Identifier: GPL-2.0-or-later
"""The moderate load of the OSADL farm: 1 Mbit/s of network, 1 MB/s of files, 1 MB/s of memory, all the time.

The network load is five echo requests of 25,000 bytes a second over the loopback interface, 1 Mbit/s each way.
"""

from fastenough.loads.load import Expectation, Load, again_and_again

LOAD = Load(
    name="osadl",
    source="OSADL quality assessment farm, the load of the last four hours of each cycle",
    tools=("ping",),
    commands=(
        ("ping", "-q", "-i", "0.2", "-s", "25000", "127.0.0.1"),
        again_and_again("dd if=/dev/zero of={scratch}/file bs=64k count=16 conv=fsync status=none && sleep 1"),
        again_and_again("dd if=/dev/zero of=/dev/null bs=1M count=1 status=none && sleep 1"),
    ),
    expects=Expectation(bytes_written_per_s=100_000.0, processes=3),
    disk_bytes=1 << 20,
    memory_bytes=4 << 20,
)
