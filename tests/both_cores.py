# SPDX-License-Identifier: GPL-2.0-or-later
"""All tests, on two cores: what judges no time runs beside what does, and gives way to it.

``python -m tests.both_cores``.  Of the tests that judge what was measured, no two run at a time.  What is said of those
beside them is told when both have ended; the status is 0 only where all have passed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("ab_truth", "advice", "analysis_*", "board_guest_ssh", "board_labgrid", "board_labgrid_console",
          "board_labgrid_strategy", "board_ssh", "campaign_language", "campaign_plan", "campaign_shipped",
          "campaign_toml", "check", "cli", "cli_compare", "cli_completion", "cli_narrow", "cli_output", "cli_probes",
          "cli_variants", "docs", "exchange_*", "farm_*", "format_*", "from_cyclictest", "gauge_core", "gauge_faults",
          "gauge_hostile", "gauge_paper", "gauge_truth", "history_*", "hostile_*", "house", "house_costs",
          "implementation_words", "layers", "link_ssh", "man_pages", "module_build", "module_kernels", "module_tasks",
          "monitor_report", "mutants", "overview", "packaging", "plan_*", "probe_builds", "recording_*", "reference",
          "release", "report_*", "source_tables", "store_*", "trace_shares", "virtual_kernels",
          "virtual_tools", "web_*", "wheel", "words")
"""Files that judge nothing by the wall clock: what they start may be late.  No instrument at its pace is among them;
those that look for what boards behind ssh leave on this machine are all in this lot.  A new file is in the other."""
_NICE = "10"


def files_beside(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for name in BESIDE for path in root.glob(f"tests/test_{name}.py"))


def main(root: Path = ROOT) -> int:
    beside = files_beside(root)
    pytest = [sys.executable, "-m", "pytest"]
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(["nice", "-n", _NICE, *pytest, *beside], cwd=root, stdout=said,
                              stderr=subprocess.STDOUT) as other:
            status = subprocess.call([*pytest, *(f"--ignore={path}" for path in beside)], cwd=root)
        said.seek(0)
        print(said.read().decode(errors="replace"))
    return status or other.returncode


if __name__ == "__main__":
    sys.exit(main())
