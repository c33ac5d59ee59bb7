# SPDX-License-Identifier: GPL-2.0-or-later
"""``doctor`` gives each subject a severity, the affected measurements and a fix; red is for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastenough.cli.doctor import (
    Condition,
    Diagnosis,
    Examination,
    Impact,
    InspectedBoard,
    governor,
    isolation,
    kernel,
    module,
    print_findings,
    rights,
    smi,
)
from fastenough.link import BoardGone, FakeLink, Stalled
from fastenough.model import FastenoughError
from tests.support.cli_calls import fastenough
from tests.support.privileges import needs_root
from tests.support.recordings import PROFILE
from tests.support.terminal import Terminal, screen

pytestmark = pytest.mark.untimed

RED = "\x1b[1;31m"
WITHOUT = ("--inh-caps=-sys_nice", "--bounding-set=-sys_nice")
LIMITS = (
    "Max locked memory         {memlock}              {memlock}              bytes\n"
    "Max realtime priority     {rtprio}                   {rtprio}\n"
)


def patient(profile: dict[str, Any] | None = None, **commands: str) -> InspectedBoard:
    said = {name.replace("_", " "): text for name, text in commands.items()}
    return InspectedBoard(FakeLink({}, said), PROFILE | (profile or {}))


@pytest.mark.parametrize(
    ("model", "options", "state", "said"),
    [
        ("preempt-rt", {}, Condition.FINE, "preempt-rt"),
        ("preempt", {"CONFIG_PREEMPT_DYNAMIC": "y"}, Condition.LIMITED, "unbounded"),
        ("voluntary", {"CONFIG_PREEMPT_DYNAMIC": "y"}, Condition.LIMITED, "preempt=full"),
        ("voluntary", {}, Condition.LIMITED, "PREEMPT_RT"),
        ("none", {}, Condition.LIMITED, "many milliseconds"),
        ("stock", {}, Condition.LIMITED, "unknown preemption model"),
    ],
)
def test_the_preemption_model(model: str, options: dict[str, str], state: Condition, said: str) -> None:
    found = kernel(
        patient({"kernel": {"release": "6.1", "preemption": model}, "kernel_config": {"of_interest": options}})
    )
    assert found.state is state
    assert said in f"{found.text} {found.fix}"
    assert ("preempt=full" in str(found.fix)) == (model == "voluntary" and bool(options))


def test_the_kernel_to_install_is_that_of_the_architecture() -> None:
    found = kernel(patient({"kernel": {"release": "6.1", "preemption": "none"}, "cpu": {"architecture": "aarch64"}}))
    assert "linux-image-rt-arm64" in str(found.fix)


def _policy(name: str, least: int = 1, most: int = 2) -> dict[str, Any]:
    return {"scaling_governor": name, "scaling_min_freq": least, "scaling_max_freq": most}


@pytest.mark.parametrize(
    ("cpus", "state", "said"),
    [
        ({"cpu0": _policy("performance")}, Condition.FINE, "performance"),
        ({"cpu0": _policy("powersave", 2, 2)}, Condition.FINE, "no CPU is slowed down"),
        (
            {"cpu0": _policy("powersave"), "cpu1": _policy("performance"), "cpu10": _policy("schedutil")},
            Condition.LIMITED,
            "CPUs 0, 10 may slow down while idle (governor powersave, schedutil)",
        ),
        ({}, Condition.FINE, "not controlled by the kernel"),
    ],
)
def test_the_governor(cpus: dict[str, Any], state: Condition, said: str) -> None:
    found = governor(patient({"frequency": {"cpus": cpus}}))
    assert found.state is state and said in found.text


@pytest.mark.parametrize(
    ("isolated", "count", "state", "said"),
    [
        ("2-3", 4, Condition.FINE, "CPUs 2-3: no ordinary tasks"),
        ("", 4, Condition.LIMITED, "isolcpus=3 nohz_full=3"),
        ("", 1, Condition.FINE, "only one CPU"),
        (None, 2, Condition.LIMITED, "isolcpus=1"),
    ],
)
def test_isolated_cpus(isolated: str | None, count: int, state: Condition, said: str) -> None:
    known = {"cpu_isolation": {"isolated": isolated, "nohz_full": "(null)"}, "cpu": {"count": count}}
    found = isolation(patient(known))
    assert found.state is state and said in f"{found.text} {found.fix}"


@pytest.mark.parametrize(
    ("rtprio", "memlock", "state"),
    [
        ("0", "8388608", Condition.LIMITED),
        ("98", "8388608", Condition.LIMITED),
        ("50", "unlimited", Condition.LIMITED),
        ("98", "unlimited", Condition.FINE),
        ("unlimited", "unlimited", Condition.FINE),
    ],
)
def test_limits_of_an_ordinary_user(rtprio: str, memlock: str, state: Condition) -> None:
    limits = {"id -u": "1000\n", "cat /proc/self/limits": LIMITS.format(memlock=memlock, rtprio=rtprio)}
    found = rights(InspectedBoard(FakeLink({}, limits), PROFILE))
    assert found.state is state
    assert f"rtprio {rtprio}, memlock {memlock}" in found.text


def test_a_setuid_probe_is_named() -> None:
    commands = {"fastenough-probe": "", "id -u": "1000\n", "stat -L -c %a /usr/bin/fastenough-probe": "4755\n"}
    found = rights(InspectedBoard(FakeLink({}, commands), PROFILE))
    assert found.state is Condition.LIMITED
    assert "setuid" in found.text and "chmod u-s /usr/bin/fastenough-probe" in str(found.fix)


@pytest.mark.parametrize(
    ("commands", "state", "said"),
    [
        (
            {"modinfo -n fastenough": "/lib/modules/6.1/updates/dkms/fastenough.ko\n"},
            Condition.FINE,
            "dkms/fastenough.ko",
        ),
        ({}, Condition.MISSING, "fastenough-dkms"),
    ],
)
def test_the_module_and_what_it_alone_can_see(commands: dict[str, str], state: Condition, said: str) -> None:
    """Gaps while interrupts are off: named beside the module, and where SMIs cannot be counted."""
    found = module(InspectedBoard(FakeLink({}, commands), PROFILE))
    assert found.state is state and said in f"{found.text} {found.fix}" and "spin" in found.text
    assert "fastenough run spin --implementation linux-kernel" in str(smi(patient()).fix)


def _always(diagnosis: Diagnosis) -> Callable[[InspectedBoard], Diagnosis]:
    return lambda board: diagnosis


def test_what_is_fine_weighs_nothing() -> None:
    for state, severity in ((Condition.FINE, Impact.NONE), (Condition.LIMITED, Impact.WARNING)):
        diagnosis = Diagnosis(state, "so", "do")
        found = Examination("x", _always(diagnosis), "all", Impact.WARNING)(patient())
        assert (found.subject, found.concerns, found.severity) == ("x", "all", severity)


def _raising(error: FastenoughError) -> Callable[[InspectedBoard], Diagnosis]:
    def examine(board: InspectedBoard) -> Diagnosis:
        raise error

    return examine


def test_a_check_that_stalls_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    found = Examination("rights", _raising(Stalled("sudo: no output for 10 s")), "all", Impact.WRONG)(patient())
    assert (found.subject, found.state, found.concerns, found.severity) == (
        "rights",
        Condition.LIMITED,
        "all",
        Impact.WRONG,
    )
    assert "sudo: no output for 10 s" in found.text
    print_findings([found])
    assert "fix:" not in capsys.readouterr().out


def test_a_board_that_is_gone_has_no_findings() -> None:
    with pytest.raises(BoardGone):
        Examination("rights", _raising(BoardGone("board is gone")), "all", Impact.WRONG)(patient())


def test_every_finding_says_what_it_concerns(tmp_path: Path, probe_binary: str) -> None:
    findings = json.loads(fastenough("doctor", "--json", cwd=tmp_path).stdout)
    assert {"kernel", "governor", "isolated CPUs", "rights"} <= {finding["subject"] for finding in findings}
    assert all(finding["concerns"] for finding in findings)
    assert all((finding["severity"] == "none") == (finding["state"] == "fine") for finding in findings)


@pytest.mark.slow
@needs_root("it gives a capability away")
@pytest.mark.parametrize("columns", [80, 200])
def test_red_is_for_what_is_wrong(tmp_path: Path, probe_binary: str, columns: int) -> None:
    for before, wrong in (((), False), (("setpriv", *WITHOUT), True)):
        with Terminal("doctor", cwd=tmp_path, columns=columns, before=before) as terminal:
            status, said = terminal.end()
        shown = screen(said)
        assert (status, RED in said) == (5 if wrong else 0, wrong)
        assert shown[0].startswith("Measurements do not work" if wrong else "Timer measurements work")
        assert max(len(line) for line in shown if "sudo tee" not in line) <= min(columns, 120)
        assert any(line.strip().startswith("concerns: ") for line in shown)
        assert any(line.strip().startswith("fix: ") for line in shown)


def test_no_colour_where_none_is_wanted(tmp_path: Path, probe_binary: str) -> None:
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with Terminal("doctor", cwd=tmp_path, variables=more) as terminal:
            _, said = terminal.end()
        assert "\x1b[3" not in said and ";3" not in said
