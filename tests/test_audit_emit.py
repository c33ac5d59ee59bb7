# SPDX-License-Identifier: GPL-2.0-or-later
"""What the audit writes for other tools: each line below what it is for and what was measured, in the tool's form."""

from __future__ import annotations

import configparser
import re

import pytest
from audit_machines import machines

from fastenough.audit import Form, audit
from fastenough.audit.emit import EMITTERS, emit
from fastenough.audit.emit.lines import Remark

MACHINES = machines()
NOTHING_SHOWN = Remark("no effect could be shown (99.9 %: -1 to 2 us)", helps=False)
HELPS = Remark("99.9 % smaller, by -12 us (-15 to -9)", helps=True)


def active(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_line_is_in_the_form_of_its_tool(machine: str) -> None:
    texts = emit(audit(MACHINES[machine]), {})
    assert texts.keys() <= {name for name, _ in EMITTERS}
    assert all(line.isascii() or "µ" in line for text in texts.values() for line in text.splitlines())
    assert all(re.fullmatch(r"\w+(\.\w+)+ = -?\d+", line) for line in active(texts.get("90-fastenough.conf", "")))
    assert all(re.fullmatch(r"CONFIG_\w+=\w+", line) for line in active(texts.get("fastenough.cfg", "")))
    assert all(re.fullmatch(r'GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT [^"$`]+"', line)
               for line in active(texts.get("fastenough-grub.cfg", "")))
    assert all(re.fullmatch(r"w /(sys|proc)/\S+ - - - - \w+", line)
               for line in active(texts.get("fastenough-tmpfiles.conf", "")))
    for name in ("tuned.conf", "fastenough-service.conf"):
        if name in texts:
            configparser.ConfigParser(strict=False, interpolation=None).read_string(texts[name])


def test_all_that_was_found_is_written() -> None:
    """Of the laptop: each change that is no mere advice is in the file of its form."""
    findings = audit(MACHINES["laptop"])
    texts = emit(findings, {})
    places = {Form.SYSCTL: "90-fastenough.conf", Form.BOOT: "fastenough-grub.cfg", Form.CONFIG: "fastenough.cfg",
              Form.FILE: "fastenough-tmpfiles.conf"}
    for change in (change for finding in findings for change in finding.changes if change.form in places):
        text = texts[places[change.form]]
        assert all(word.rpartition("=")[0].rpartition("/")[2] in text for word in change.text.split())
    assert "governor = performance" in texts["tuned.conf"] and "force_latency = 10" in texts["tuned.conf"]
    assert 'scaling_governor: "performance"' in texts["rt-conf.yaml"]
    assert "LimitMEMLOCK=infinity" in texts["fastenough-service.conf"]
    assert "CPUAffinity=3" in texts["fastenough-service.conf"]


def test_what_was_measured_stands_above_it_and_decides() -> None:
    findings = audit(MACHINES["laptop"])
    texts = emit(findings, {"transparent-huge-pages": NOTHING_SHOWN, "swappiness": HELPS})
    assert "vm.swappiness = 1" in active(texts["90-fastenough.conf"])
    assert "12 us (-15 to -9)" in texts["90-fastenough.conf"]
    huge = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never"
    assert f"# {huge}" in texts["fastenough-tmpfiles.conf"] and huge not in active(texts["fastenough-tmpfiles.conf"])
    assert "no effect could be shown" in texts["fastenough-tmpfiles.conf"]
    assert huge in active(emit(findings, {})["fastenough-tmpfiles.conf"])


def test_security_and_safety_are_not_given_away_unasked() -> None:
    profile = MACHINES["laptop"] | {"vulnerabilities": {"spectre_v2": "Mitigation: IBRS"},
                                    "tunables": {"sched_rt_runtime_us": 950000, "sched_rt_period_us": 1000000}}
    texts = emit(audit(profile), {})
    assert "mitigations=off" in texts["fastenough-grub.cfg"]
    assert not [line for line in active(texts["fastenough-grub.cfg"]) if "mitigations" in line]
    assert "# kernel.sched_rt_runtime_us = -1" in texts["90-fastenough.conf"].splitlines()


def test_what_a_machine_says_of_itself_writes_no_line() -> None:
    profile = MACHINES["laptop"] | {"clocksource": "evil\nkernel.panic = 1\x1b[2J\n"}
    for text in emit(audit(profile), {}).values():
        assert "\x1b" not in text and not [line for line in text.splitlines() if line.startswith("kernel.panic")]
