# SPDX-License-Identifier: GPL-2.0-or-later
"""All tests, on two cores: what judges no time runs in two lots beside what does, and gives way to it.

``python -m tests.both_cores``.  Of the tests that judge what was measured, no two run at a time.  What is said of those
beside them is told when all have ended; the status is 0 only where all have passed.

A machine that others share takes the CPU away for as long as it likes.  So a few tests that failed may prove that the
machine was to blame: each has to pass alone, twice in a row, and is named at the end.  Many that failed are a defect.

An ordinary user's run ends with the tests that need root: through sudo where it asks for no password, else one line
says how many were skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.privileges import list_of, sudo_prefix

ROOT = Path(__file__).resolve().parents[1]
MACHINES_AND_PAGES = (
    "ab_truth",
    "advice",
    "board_changed",
    "board_guest_ssh",
    "board_labgrid",
    "board_labgrid_console",
    "board_labgrid_strategy",
    "board_ssh",
    "campaign_language",
    "campaign_plan",
    "campaign_shipped",
    "campaign_toml",
    "check",
    "cli",
    "cli_compare",
    "cli_completion",
    "cli_doctor",
    "cli_narrow",
    "cli_output",
    "cli_probes",
    "cli_reader_gone",
    "cli_refused",
    "cli_start",
    "cli_user",
    "cli_variants",
    "conclusions",
    "docs",
    "experiment_report",
    "farm_*",
    "from_cyclictest",
    "gpio_names",
    "history_*",
    "hostile_*",
    "link_local",
    "link_ssh",
    "loads_sshd",
    "man_pages",
    "monitor_report",
    "overview",
    "plan_*",
    "report_*",
    "trace_shares",
    "web_*",
)
"""Boards behind ssh, farms and their pages: what looks for what those leave on this machine is in one lot."""
PROGRAMS_AND_NUMBERS = (
    "agent",
    "analysis_*",
    "audit_checks",
    "audit_command",
    "audit_emit",
    "audit_report",
    "audit_truth",
    "bench_scale",
    "bound_*",
    "cli_signals",
    "exchange_*",
    "facts_*",
    "files",
    "format_*",
    "gauge_core",
    "gauge_faults",
    "gauge_hostile",
    "gauge_paper",
    "gauge_ports",
    "gauge_rp2040",
    "gauge_rp2040_usb",
    "gauge_truth",
    "gauge_uf2",
    "gpio_probe",
    "house",
    "house_costs",
    "hunt_search",
    "hunt_told",
    "implementation_evl",
    "implementation_third",
    "implementation_words",
    "implementation_xenomai",
    "kernel_cobalt",
    "kernel_cobalt_module",
    "kernel_evl",
    "kernel_evl_module",
    "layers",
    "module_build",
    "module_faults",
    "module_kernels",
    "module_tasks",
    "monitor_instructions",
    "mutants",
    "packaging",
    "primitive_faults",
    "primitive_report",
    "probe_builds",
    "probe_files",
    "probe_input",
    "probe_platform",
    "probe_refused",
    "probe_stack",
    "recording_*",
    "reference",
    "release",
    "response_time",
    "said_lines",
    "samples_parquet",
    "settings_journal",
    "source_tables",
    "store_*",
    "task_set",
    "virtual_bench",
    "virtual_board",
    "virtual_cache_owner",
    "virtual_keeper",
    "virtual_kernels",
    "virtual_own",
    "virtual_tools",
    "wheel",
)
BESIDE = (MACHINES_AND_PAGES, PROGRAMS_AND_NUMBERS)
"""Two lots of files that judge nothing by the wall clock: what they start may be late.  No instrument at its pace is
among them.  A new file is in neither, so it is in the third."""
_NICE = "10"
_MOST_DISTURBED = 4
_TIMES_ALONE = 2
_TESTS_FAILED = 1
_PYTEST = [sys.executable, "-m", "pytest"]
_WITHOUT_MEMORY = ["-p", "no:cacheprovider"]
"""A test that runs as root leaves no file of root's in the user's checkout."""


def files_of(names: Iterable[str], root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for name in names for path in root.glob(f"tests/test_{name}.py"))


@dataclass
class Lot:
    """Tests that run one after another, and pytest's own memory of them; ``prefix`` makes the user who runs them."""

    wanted: list[str]
    memory: Path
    prefix: Sequence[str] = ()
    status: int = 0

    @property
    def command(self) -> list[str]:
        return [*self.prefix, *_PYTEST, "-o", f"cache_dir={self.memory}", *self.wanted]

    def failed(self) -> list[str]:
        return list(json.loads((self.memory / "v/cache/lastfailed").read_text())) if self.status else []

    def skipped_for_root(self) -> list[str]:
        listed = list_of(self.memory)
        return list(json.loads(listed.read_text())) if listed.is_file() else []

    @contextmanager
    def told_after(self, root: Path) -> Iterator[None]:
        """It is under way and gives way to others; what it said is told when it has ended."""
        with tempfile.TemporaryFile() as said:
            with subprocess.Popen(
                ["nice", "-n", _NICE, *self.command],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            ) as process:
                yield
            self.status = process.returncode
            said.seek(0)
            print(said.read().decode(errors="replace"), flush=True)


def _run(rest: Lot | None, others: Iterable[Lot], root: Path) -> list[Lot]:
    """``rest`` alone in judging time, the others beside it."""
    with ExitStack() as stack:
        beside = [lot for lot in others if lot.wanted]
        for lot in beside:
            stack.enter_context(lot.told_after(root))
        if rest is not None:
            rest.status = subprocess.call(rest.command, cwd=root, stdin=subprocess.DEVNULL)
    return [*([] if rest is None else [rest]), *beside]


def _run_all(root: Path, memory: Path) -> list[Lot]:
    others = [Lot(files_of(names, root), memory / str(number)) for number, names in enumerate(BESIDE)]
    rest = Lot([f"--ignore={path}" for lot in others for path in lot.wanted], memory / "rest")
    return _run(rest, others, root)


def _run_as_root(lots: Sequence[Lot], root: Path, memory: Path) -> list[Lot]:
    """The tests that the lots skipped for want of root, through sudo; else one line says how many."""
    wanting = sum(len(lot.skipped_for_root()) for lot in lots)
    if not wanting:
        return []
    prefix = sudo_prefix()
    if not prefix:
        print(f"skipped: {wanting} tests need root, and sudo is missing or asks for a password", flush=True)
        return []
    print(f"{wanting} tests need root: they run through sudo now", flush=True)
    prefix.append(f"HYPOTHESIS_STORAGE_DIRECTORY={memory / 'hypothesis'}")
    again = [Lot(lot.skipped_for_root(), memory / "root" / lot.memory.name, prefix) for lot in lots]
    rest = next((lot for lot in again if lot.memory.name == "rest" and lot.wanted), None)
    try:
        return _run(rest, [lot for lot in again if lot.memory.name != "rest"], root)
    finally:
        owner = f"{os.getuid()}:{os.getgid()}"
        subprocess.call([*prefix, "chown", "-R", owner, str(memory)], stdin=subprocess.DEVNULL)


def _pass_alone(failed: Sequence[tuple[Sequence[str], list[str]]], root: Path) -> bool:
    """Whether tests that failed pass with nothing beside them, where they are few; they are named either way.

    ``failed``: for each prefix, the tests that failed with it.
    """
    names = [name for _, tests in failed for name in tests]
    passed = len(names) <= _MOST_DISTURBED and all(
        subprocess.call([*prefix, *_PYTEST, *_WITHOUT_MEMORY, *tests], cwd=root, stdin=subprocess.DEVNULL) == 0
        for _ in range(_TIMES_ALONE)
        for prefix, tests in failed
    )
    print(f"failed once, passed alone {_TIMES_ALONE} times:" if passed else "failed:", *names, sep="\n  ")
    return passed


def main(root: Path = ROOT) -> int:
    with tempfile.TemporaryDirectory(prefix="fastenough-tests-") as memory:
        lots = _run_all(root, Path(memory))
        lots += _run_as_root(lots, root, Path(memory))
        status = max(lot.status for lot in lots)
        failed = [(lot.prefix, lot.failed()) for lot in lots if lot.failed()] if status == _TESTS_FAILED else []
    return 0 if failed and _pass_alone(failed, root) else status


if __name__ == "__main__":
    sys.exit(main())
