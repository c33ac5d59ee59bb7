# SPDX-License-Identifier: GPL-2.0-or-later
"""The report tells what the audit finds in the facts that its runs carry, once for each system."""

from __future__ import annotations

from pathlib import Path

from fastenough.analysis import judge
from fastenough.audit import FindingState, audit
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable
from fastenough.report.sections.system import system_audit
from tests.support.audit_machines import machines
from tests.support.recordings import Plan, latencies, recording

MACHINES = machines()


def _tables(tmp_path: Path, *profiles: str) -> list[ReportTable]:
    runs = [
        recording(
            tmp_path,
            Plan(
                latencies(place, intervals=1),
                run_id=f"run-{place}",
                views=("wakeup",),
                head={"profile": MACHINES[name], "profile_sha256": f"{name:0<64}"[:64]},
            ),
        )
        for place, name in enumerate(profiles)
    ]
    found = system_audit(make_context(runs, judge(runs)))
    return [] if found is None else [part for part in found.leaves() if isinstance(part, ReportTable)]


def test_each_system_has_its_findings_once(tmp_path: Path) -> None:
    laptop, server = _tables(tmp_path, "laptop", "laptop", "server")
    told = {
        finding.title
        for finding in audit(MACHINES["laptop"])
        if finding.state in (FindingState.COSTS, FindingState.HIDES)
    }
    assert {str(row[1]).removesuffix(" (hides latency)") for row in laptop.rows} == told
    assert laptop.rows[0][0] == "high" and laptop.rows[-1][0] == "low"
    assert any("PROVE_LOCKING" in str(row[2]) for row in server.rows)


def test_of_a_system_of_which_nothing_is_known_nothing_is_told(tmp_path: Path) -> None:
    assert _tables(tmp_path, "nothing-at-all") == []
