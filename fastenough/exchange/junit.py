# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs as JUnit XML for CI: a test case for each judged group of runs, with the requirement stated in them.

Only a PASS is a test that passed.  FAIL is a failure; INCONCLUSIVE and BROKEN are errors; without a requirement
the case is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree

from fastenough.analysis import judge, words
from fastenough.analysis.assessment import Judgment
from fastenough.analysis.wording import observed
from fastenough.model import Verdict
from fastenough.recording import Recording

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENT = {
    Verdict.FAIL: "failure",
    Verdict.INCONCLUSIVE: "error",
    Verdict.BROKEN: "error",
    Verdict.NO_LIMIT: "skipped",
}


@dataclass(frozen=True)
class Case:
    """One test case; only a PASS has passed.  ``reasons``: the first one is the message.  ``measured``: the measured
    values."""

    group: str
    name: str
    verdict: Verdict
    reasons: Sequence[str]
    measured: str
    seconds: float = 0.0


@dataclass(frozen=True)
class SuiteContext:
    """Place and time of the measurements of a suite: ``hosts``: names of the boards; ``begun_s``: begin of the first
    run in seconds of the wall clock, None if unknown."""

    hosts: Sequence[str]
    begun_s: float | None

    @classmethod
    def of(cls, recordings: Sequence[Recording]) -> SuiteContext:
        hosts = dict.fromkeys(recording.head.board or "" for recording in recordings)
        return cls(
            list(filter(None, hosts)),
            min(
                (recording.head.begin.wall_ns / 1e9 for recording in recordings if recording.head.begin.wall_ns),
                default=None,
            ),
        )


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _name(judgment: Judgment) -> str:
    limit = "no limit stated" if judgment.requirement is None else words.exact_time(judgment.requirement.limit_ns)
    return f"load {judgment.load or 'not stated'}, {limit}, {', '.join(judgment.run_ids)}"


def _case(judgment: Judgment, seconds: float) -> Case:
    reasons = [finding.text for finding in judgment.findings]
    return Case(judgment.probe, _name(judgment), judgment.verdict, reasons, observed(judgment), seconds)


def _element(case: Case) -> ElementTree.Element:
    testcase = ElementTree.Element(
        "testcase", classname=_text(f"fastenough.{case.group}"), name=_text(case.name), time=f"{case.seconds:.3f}"
    )
    element = _ELEMENT.get(case.verdict)
    if element is not None:
        outcome = ElementTree.SubElement(
            testcase, element, message=_text("; ".join([*case.reasons[:1], case.measured]))
        )
        if element != "skipped":
            outcome.set("type", case.verdict.value)
            outcome.text = _text("\n".join(case.reasons))
    ElementTree.SubElement(testcase, "system-out").text = _text(case.measured)
    return testcase


def _document(elements: Sequence[ElementTree.Element], place: SuiteContext) -> bytes:
    """The whole file, of test cases."""
    seconds = sum(float(element.get("time", "0")) for element in elements)
    suite = ElementTree.Element(
        "testsuite",
        name="fastenough",
        tests=str(len(elements)),
        time=f"{seconds:.3f}",
        hostname=_text(", ".join(place.hosts) or "unknown"),
    )
    if place.begun_s is not None:
        suite.set("timestamp", f"{datetime.fromtimestamp(place.begun_s, UTC):%Y-%m-%dT%H:%M:%S}")
    for kind in ("failure", "error", "skipped"):
        suite.set(
            {"failure": "failures", "error": "errors"}.get(kind, kind),
            str(sum(element.find(kind) is not None for element in elements)),
        )
    suite.extend(elements)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def suite(cases: Sequence[Case], place: SuiteContext) -> bytes:
    """A file of these cases."""
    return _document([_element(case) for case in cases], place)


def export(recordings: Sequence[Recording]) -> bytes:
    assessment = judge(recordings)
    seconds = {recording.run_id: recording.duration_ns / 1e9 for recording in recordings}
    cases = [
        _element(_case(judgment, sum(seconds.get(run, 0.0) for run in judgment.run_ids)))
        for judgment in assessment.judgments
    ]
    for run, reason in assessment.not_applicable:
        case = ElementTree.Element("testcase", classname="fastenough.run", name=_text(run), time="0.000")
        ElementTree.SubElement(case, "skipped", message=_text(f"not applicable: {reason}"))
        cases.append(case)
    if not cases:
        nothing = ElementTree.Element("testcase", classname="fastenough", name="anything to judge", time="0.000")
        ElementTree.SubElement(nothing, "error", message=_text(assessment.headline), type=assessment.verdict.value)
        cases.append(nothing)
    return _document(cases, SuiteContext.of(recordings))
