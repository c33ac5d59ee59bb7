# SPDX-License-Identifier: GPL-2.0-or-later
"""The stressors of stress-ng that a hunt uses: a list of safe ones, with the parameters worth varying.

None of them reboots the board, unplugs devices, changes clocks, modules or devices, fills a disk or all memory, or
requires special hardware.  None makes itself a real-time task, as mutex, hrtimers and schedpolicy do where permitted:
the probe would then be delayed by the priority of the stressor, which is no property of the machine.  None leaves
objects in the kernel or in /dev/shm when it is killed, as msg, mq and shm do.  Stressors that a board lacks are
excluded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fastenough.hunt.space import Space, Stressor, StressorParameter

_MOST_PER_CPU = 4
"""A trial of four seconds took seven on two busy CPUs, and a minute with twice as many stressors."""
_MEMORY_SHARE = 0.25
"""Share of the available memory for all parts of a recipe together."""
_WORKER_BYTES = 8 << 20
_SIZES = {"64K": 1 << 16, "1M": 1 << 20, "16M": 1 << 24, "64M": 1 << 26}

WORKERS, PLACE, PHASE = "workers", "place", "phase"
"""Parameters that every stressor has."""
ANYWHERE, FIRST, LAST = "any CPU", "the first CPU", "the last CPU"
ALWAYS = "always"
PHASES = {ALWAYS: (0, 0), "on and off for 500 ms": (500, 500), "on for 100 ms, off for 400 ms": (100, 400)}
"""Time that a stressor runs and time that it is stopped, in ms, by phase."""

_COMMON = (
    StressorParameter(WORKERS, ("1", "2", "4"), (1, 2, 4)),
    StressorParameter(PLACE, (ANYWHERE, FIRST, LAST)),
    StressorParameter(PHASE, tuple(PHASES)),
)


def _sized(name: str, option: str) -> Stressor:
    """A stressor whose memory is set by a parameter."""
    return Stressor(name, (*_COMMON, StressorParameter(option, tuple(_SIZES), tuple(_SIZES.values()))), 2)


def _plain(name: str, option: str = "", values: tuple[str, ...] = ()) -> Stressor:
    return Stressor(name, (*_COMMON, *((StressorParameter(option, values),) if option else ())), _WORKER_BYTES)


_FREQUENCIES = ("100", "1000", "10000", "50000")
STRESSORS: Mapping[str, Stressor] = {
    stressor.name: stressor
    for stressor in (
        _plain("cpu", "cpu-method", ("sqrt", "int64", "matrixprod", "fft", "ackermann")),
        _plain("matrix", "matrix-size", ("32", "128", "512")),
        _plain("cache"),
        _plain("l1cache"),
        _plain("lockbus"),
        _plain("membarrier"),
        _plain("tsc"),
        _plain("memcpy"),
        _plain("zlib"),
        _plain("crypt"),
        _plain("qsort", "qsort-size", ("1024", "65536", "262144")),
        _sized("vm", "vm-bytes"),
        _sized("mmap", "mmap-bytes"),
        _sized("malloc", "malloc-bytes"),
        _sized("memrate", "memrate-bytes"),
        _plain("fault"),
        _plain("mremap", "mremap-bytes", ("4K", "1M", "4M")),
        _plain("tlb-shootdown"),
        _plain("mlock"),
        _plain("timer", "timer-freq", _FREQUENCIES),
        _plain("timerfd", "timerfd-freq", _FREQUENCIES),
        _plain("itimer", "itimer-freq", _FREQUENCIES),
        _plain("nanosleep"),
        _plain("clock"),
        _plain("switch", "switch-freq", _FREQUENCIES),
        _plain("yield"),
        _plain("context"),
        _plain("futex"),
        _plain("sem"),
        _plain("eventfd"),
        _plain("poll"),
        _plain("epoll"),
        _plain("pipe", "pipe-data-size", ("8", "512", "4096")),
        _plain("fifo"),
        _plain("sock"),
        _plain("udp"),
        _plain("sockpair"),
        _plain("splice"),
        _plain("signal"),
        _plain("kill"),
        _plain("rseq"),
        _plain("fork", "fork-max", ("1", "8", "32")),
        _plain("vfork"),
        _plain("clone", "clone-max", ("1", "8", "32")),
        _plain("exec", "exec-max", ("1", "8")),
        _plain("dentry", "dentries", ("16", "256")),
        _plain("flock"),
        _plain("getdent"),
        _plain("procfs"),
        _plain("sysinfo"),
    )
}
"""By name.  ``workers`` is the number of processes, each of which may have children."""


SEEDED = ("--seed", "1")
"""Options that let a stressor draw the same random numbers each time."""


def space_of(present: Collection[str], cpus: int, available_bytes: int, options: tuple[str, ...] = ()) -> Space:
    """The search space of a board with these stressors; ``options``: added to each command."""
    stressors = {name: stressor for name, stressor in STRESSORS.items() if name in present}
    return Space(stressors, round(_MEMORY_SHARE * available_bytes), _MOST_PER_CPU * cpus, options)
