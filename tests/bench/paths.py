# SPDX-License-Identifier: GPL-2.0-or-later
"""The path of a timer wake-up without load, in instructions of deterministic guests: by station, and with settings.

``python -m tests.bench.paths [KERNEL...]`` prints the tables of ``docs/virtual-bench.md`` for these kernels [stock, rt,
stock-amd64].
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastenough.analysis.instructions import PathComparison, compare_instructions
from fastenough.recording import Recording, read_recording
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import Beginning, Command, DeterministicGuest, Watcher
from fastenough.virtual.monitor import MONITOR, build_monitor
from fastenough.virtual.probe import PROBE

KERNELS = ("stock", "rt", "stock-amd64")
TIMER = Command((PROBE, "timer", "--interval=1ms", "--duration=300ms", "--record=-"))
WATCHED = Command((*TIMER.argv, "--thread-name=measured"))
WATCH = (MONITOR, "--comm=measured", "--until-interrupt", "--record=-")
SHOWN = ("minimum", "median", "maximum")
_BOOT_S = 600.0


@dataclass(frozen=True)
class Setting:
    """Kernel arguments, and the content of files of the kernel by path; ``arch``: the only architecture that has it."""

    name: str
    arguments: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    arch: str = ""


def _argument(arguments: str, arch: str = "") -> Setting:
    return Setting(f"`{arguments}`", arguments, arch=arch)


def _file(path: str, value: str) -> Setting:
    return Setting(f"`{path}` {value}", files={path: f"{value}\n".encode()})


SETTINGS = (
    _argument("highres=off"),
    _argument("nohz=off"),
    _argument("nohz_full=0"),
    _argument("isolcpus=0"),
    _argument("rcu_nocbs=0"),
    _argument("nohlt", "arm64"),
    _argument("idle=poll", "amd64"),
    _argument("cpuidle.off=1"),
    _argument("threadirqs"),
    _argument("skew_tick=1"),
    _argument("mitigations=off"),
    _argument("preempt=none", "amd64"),
    _argument("preempt=full", "amd64"),
    _argument("workqueue.power_efficient=1"),
    _argument("transparent_hugepage=never"),
    _argument("nowatchdog"),
    _argument("audit=0"),
    _argument("init_on_alloc=0"),
    _argument("apparmor=0"),
    _argument("psi=0"),
    _argument("cgroup_disable=memory"),
    _file("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
    _file("/proc/sys/kernel/timer_migration", "0"),
    _file("/proc/sys/kernel/sched_schedstats", "1"),
    _file("/proc/sys/vm/stat_interval", "10"),
)


def measured(kernel: str, setting: Setting, folder: Path) -> Recording:
    """The recording of one boot, which is stored in a folder."""
    guest = DeterministicGuest(find_kernel(kernel), setting.arguments)
    (done,) = guest.boot([TIMER], None, Beginning(setting.files)).results(_BOOT_S).commands
    return _stored(done.stdout, folder)


def watched(kernel: str, folder: Path) -> Recording:
    """The recording of the monitor beside one boot's measurement."""
    guest = DeterministicGuest(find_kernel(kernel))
    watcher = Watcher(WATCH, {MONITOR.lstrip("/"): build_monitor(guest.arch)[MONITOR]})
    results = guest.boot([WATCHED], watcher=watcher).results(_BOOT_S)
    assert results.watcher is not None
    return _stored(results.watcher.stdout, folder)


def _stored(recording: bytes, folder: Path) -> Recording:
    path = folder / "run.jsonl"
    path.write_bytes(recording)
    return read_recording(path)


def compared(plain: Recording, other: Recording) -> PathComparison:
    (comparison,) = compare_instructions([plain], [other])
    assert isinstance(comparison, PathComparison)
    return comparison


def row(name: str, path: PathComparison) -> str:
    """A row of the table: each figure with its difference, if there is one."""
    cells = [name]
    for figure in map(path.figure, SHOWN):
        difference = f" ({figure.difference:+,.0f})" if figure.difference else ""
        cells.append(f"{figure.second:,.0f}{difference}")
    return f"| {' | '.join(cells)} |"


def print_stations(kernel: str, folder: Path) -> None:
    """Print the figures of each station of a kernel's path."""
    recording = watched(kernel, folder)
    print(f"\n| `{kernel}`, station | wake-ups | {' | '.join(SHOWN)} |\n|---|---|---|---|---|")
    for series in recording.series:
        total = recording.totals.get(series.id)
        if total is not None and total.total:
            middle = total.value_at_rank((total.total + 1) // 2)
            print(f"| `{series.name}` | {total.total} | {total.minimum:,} | {middle:,} | {total.maximum:,} |")


def print_settings(kernel: str, folder: Path) -> None:
    """Print the figures of a kernel without a setting, and with each."""
    plain = measured(kernel, Setting(""), folder)
    arch = find_kernel(kernel).arch
    print(f"\n| `{kernel}` ({find_kernel(kernel).release}) | {' | '.join(SHOWN)} |\n|---|---|---|---|")
    print(row("no setting", compared(plain, plain)))
    for setting in SETTINGS:
        if setting.arch in ("", arch):
            print(row(setting.name, compared(plain, measured(kernel, setting, folder))), flush=True)


def main(kernels: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            print_stations(kernel, Path(folder))
            print_settings(kernel, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:] or KERNELS)
