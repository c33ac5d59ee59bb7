# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs as JUnit XML for CI: a test case for each group of runs that is judged, by the requirement stated with them.

Only a PASS is a test that passed.  FAIL is a failure; INCONCLUSIVE and BROKEN are errors; where nothing was required
there is nothing to pass, and the case is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from fastenough.analysis import judge, words
from fastenough.analysis.assessment import Judgment
from fastenough.model import Verdict
from fastenough.recording import Recording

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENT = {Verdict.FAIL: "failure", Verdict.INCONCLUSIVE: "error", Verdict.BROKEN: "error",
            Verdict.NO_LIMIT: "skipped"}


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _name(judgment: Judgment) -> str:
    limit = "no limit stated" if judgment.requirement is None else words.latency(judgment.requirement.limit_ns)
    return _text(f"load {judgment.load or 'not stated'}, {limit}, {', '.join(judgment.run_ids)}")


def _case(judgment: Judgment, seconds: float) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(f"fastenough.{judgment.probe}"), name=_name(judgment),
                               time=f"{seconds:.3f}")
    seen = f"{words.counted(judgment.n, 'activation')}, maximum {words.latency(judgment.maximum_ns)}"
    element = _ELEMENT.get(judgment.verdict)
    reasons = [finding.text for finding in judgment.findings]
    if element is not None:
        said = ElementTree.SubElement(case, element, message=_text("; ".join([*reasons[:1], seen])))
        if element != "skipped":
            said.set("type", judgment.verdict.value)
            said.text = _text("\n".join(reasons))
    ElementTree.SubElement(case, "system-out").text = _text(seen)
    return case


def export(recordings: Sequence[Recording]) -> bytes:
    assessment = judge(recordings)
    seconds = {recording.run_id: recording.duration_ns / 1e9 for recording in recordings}
    cases = [_case(one, sum(seconds.get(run, 0.0) for run in one.run_ids)) for one in assessment.judgments]
    for run, reason in assessment.not_applicable:
        case = ElementTree.Element("testcase", classname="fastenough.run", name=_text(run))
        ElementTree.SubElement(case, "skipped", message=_text(f"not applicable: {reason}"))
        cases.append(case)
    if not cases:
        nothing = ElementTree.Element("testcase", classname="fastenough", name="anything to judge")
        ElementTree.SubElement(nothing, "error", message=_text(assessment.headline), type=assessment.verdict.value)
        cases.append(nothing)
    suite = ElementTree.Element("testsuite", name="fastenough", tests=str(len(cases)))
    for kind in ("failure", "error", "skipped"):
        suite.set({"failure": "failures", "error": "errors"}.get(kind, kind),
                  str(sum(case.find(kind) is not None for case in cases)))
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"
