# SPDX-License-Identifier: GPL-2.0-or-later
"""All tests, on two cores: what only computes runs beside what uses the machine, and gives way to it.

``python -m tests.both_cores``.  Of the tests that measure, boot guests or wait, no two run at a time.  What is said of
those beside them is told when both have ended; the status is 0 only where all have passed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPUTING = ("analysis_*", "campaign_language", "campaign_plan", "campaign_toml", "docs", "format_*", "gauge_core",
             "gauge_faults", "gauge_hostile", "gauge_paper", "gauge_truth", "hostile_*", "house", "house_costs",
             "implementation_words", "layers", "man_pages", "module_build", "module_kernels", "mutants", "overview",
             "packaging", "plan_*", "probe_builds", "recording_*", "release", "report_*", "store_*", "wheel", "words")
"""Files that judge nothing by the wall clock: no guest, no instrument at its pace.  A new file is not among them."""
_NICE = "5"


def computing(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for name in COMPUTING for path in root.glob(f"tests/test_{name}.py"))


def main(root: Path = ROOT) -> int:
    beside = computing(root)
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
