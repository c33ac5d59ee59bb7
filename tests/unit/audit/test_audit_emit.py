# SPDX-License-Identifier: GPL-2.0-or-later
"""What the audit writes for other tools: each line below what it is for and what was measured, in the tool's form."""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable
from pathlib import Path

import fastjsonschema
import pytest
import yaml

from fastenough.audit import FindingState, Form, audit
from fastenough.audit.emit import EMITTERS, emit
from fastenough.audit.emit.lines import NOT_MEASURED, Remark, lines_of
from fastenough.cli.audit_measure import make_folder, write_files
from fastenough.model import BadInput
from tests.support.audit_machines import machines

MACHINES = machines()
NOTHING_SHOWN = Remark("no significant effect (99.9 %: -1 to 2 us)", helps=False)
TEXTS = {"90-fastenough.conf": "# µs\n", "fastenough.cfg": "CONFIG_HZ=1000\n"}
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
    assert all(
        re.fullmatch(r'GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT [^"$`]+"', line)
        for line in active(texts.get("fastenough-grub.cfg", ""))
    )
    assert all(
        re.fullmatch(r"w /(sys|proc)/\S+ - - - - \w+", line)
        for line in active(texts.get("fastenough-tmpfiles.conf", ""))
    )
    for name in ("tuned.conf", "fastenough-service.conf"):
        if name in texts:
            configparser.ConfigParser(strict=False, interpolation=None).read_string(texts[name])


def test_all_that_was_found_is_written() -> None:
    """Of the laptop: each change that is no mere advice is in the file of its form."""
    findings = audit(MACHINES["laptop"])
    texts = emit(findings, {})
    places = {
        Form.SYSCTL: "90-fastenough.conf",
        Form.BOOT: "fastenough-grub.cfg",
        Form.CONFIG: "fastenough.cfg",
        Form.FILE: "fastenough-tmpfiles.conf",
    }
    written = [finding for finding in findings if finding.state in (FindingState.COSTS, FindingState.HIDES)]
    for change in (change for finding in written for change in finding.changes if change.form in places):
        text = texts[places[change.form]]
        assert all(word.rpartition("=")[0].rpartition("/")[2] in text for word in change.text.split())
    assert "governor = performance" in texts["tuned.conf"] and "force_latency = 10" in texts["tuned.conf"]
    assert yaml.safe_load(texts["rt-conf.yaml"])["cpu-governance"]["all-cpus"]["scaling-governor"] == "performance"
    assert "LimitMEMLOCK=infinity" in texts["fastenough-service.conf"]
    assert "CPUAffinity=3" in texts["fastenough-service.conf"]


_CPU_LIST = {"type": "string", "pattern": r"^(all|[0-9]+(-([0-9]+|n))?(,[0-9]+(-([0-9]+|n))?)*)$"}
_LABEL = r"^(?:[a-z0-9]+-?)*[a-z](?:-?[a-z0-9])*$"
RT_CONF = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "kernel-cmdline": {
            "type": "object",
            "additionalProperties": False,
            "required": ["parameters"],
            "properties": {
                "parameters": {"type": "array", "items": {"type": "string", "pattern": r"^[a-zA-Z][\w.\-]*(=\S+)?$"}}
            },
        },
        "irq-tuning": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {
                _LABEL: {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["cpus", "filter"],
                    "properties": {
                        "cpus": _CPU_LIST,
                        "filter": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                name: {"type": "string"} for name in ("actions", "chip_name", "name", "type")
                            },
                        },
                    },
                }
            },
        },
        "cpu-governance": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {
                _LABEL: {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["cpus"],
                    "properties": {
                        "cpus": _CPU_LIST,
                        "scaling-governor": {"enum": ["balanced", "powersave", "performance"]},
                        "min-freq": {"type": "string"},
                        "max-freq": {"type": "string"},
                    },
                }
            },
        },
    },
}
"""The form that rt-conf reads since mid-2025, after its documentation."""


@pytest.mark.parametrize("machine", MACHINES)
def test_the_file_for_rt_conf_has_the_form_that_it_reads(machine: str) -> None:
    profile = {**MACHINES[machine], "interrupt_default_affinity": "f"}
    text = emit(audit(profile), {}).get("rt-conf.yaml")
    if text is not None:
        fastjsonschema.compile(RT_CONF)(yaml.safe_load(text))
    if machine == "laptop":
        assert text is not None and "isolcpus=3" in yaml.safe_load(text)["kernel-cmdline"]["parameters"]


def test_boot_arguments_that_rule_each_other_out_are_not_written_together() -> None:
    texts = emit(audit(MACHINES["laptop"]), {})
    arguments = " ".join(active(texts["fastenough-grub.cfg"]))
    assert "nohz=off" in arguments and "nohz_full" not in arguments
    assert "nohz_full=3" in texts["fastenough-grub.cfg"]
    tickless = {**MACHINES["laptop"], "cpu_isolation": {"online": "0-3", "isolated": "3", "nohz_full": "3"}}
    assert "nohz=off" not in " ".join(active(emit(audit(tickless), {})["fastenough-grub.cfg"]))


@pytest.mark.parametrize("machine", MACHINES)
def test_no_name_is_given_two_values(machine: str) -> None:
    """Of all changes together, and of each file: what is active does not contradict itself."""
    profile = {**MACHINES[machine], "cmdline": "isolcpus=2,3 nohz_full=3 rcu_nocbs=1"}
    for facts in (MACHINES[machine], profile):
        given: dict[tuple[Form, str], str] = {}
        for line in lines_of(audit(facts), {}):
            if line.active and line.change.form is not Form.PROSE:
                for word in line.change.text.split():
                    name, _, value = word.partition("=")
                    assert given.setdefault((line.change.form, name), value) == value


def test_what_was_measured_stands_above_it_and_decides() -> None:
    findings = audit(MACHINES["laptop"])
    texts = emit(findings, {"transparent-huge-pages": NOTHING_SHOWN, "swappiness": HELPS})
    assert "vm.swappiness = 1" in active(texts["90-fastenough.conf"])
    assert "12 us (-15 to -9)" in texts["90-fastenough.conf"]
    huge = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never"
    assert f"# {huge}" in texts["fastenough-tmpfiles.conf"] and huge not in active(texts["fastenough-tmpfiles.conf"])
    assert "no significant effect" in texts["fastenough-tmpfiles.conf"]
    assert huge in active(emit(findings, {})["fastenough-tmpfiles.conf"])


def test_the_effect_of_a_setting_is_not_written_above_other_changes() -> None:
    """Of one finding, the change that its setting makes was measured, and no other."""
    profile = {**MACHINES["laptop"], "tunables": {"numa_balancing": 1}}
    findings = audit(profile)
    (measured, other) = (
        line
        for line in lines_of(findings, {"numa-balancing": HELPS})
        if line.change.text.startswith(("kernel.numa_balancing", "numa_balancing"))
    )
    assert (measured.effect, measured.active) == (HELPS.text, True)
    assert (other.change.form, other.effect, other.active) == (Form.BOOT, NOT_MEASURED, True)


@pytest.mark.parametrize("useless", [("nmi-watchdog",), ("soft-watchdog",), ("nmi-watchdog", "soft-watchdog")])
def test_a_boot_argument_is_not_active_if_a_setting_of_its_finding_has_no_benefit(useless: tuple[str, ...]) -> None:
    """``nowatchdog`` makes the changes of both settings at boot."""
    profile = {**MACHINES["laptop"], "tunables": {"soft_watchdog": 1, "nmi_watchdog": 1}}
    names = ("nmi-watchdog", "soft-watchdog")
    remarks = {name: NOTHING_SHOWN if name in useless else HELPS for name in names}
    lines = {line.change.text: line for line in lines_of(audit(profile), remarks)}
    assert not lines["nowatchdog"].active
    assert NOT_MEASURED in lines["nowatchdog"].effect and all(name in lines["nowatchdog"].effect for name in useless)
    assert [lines[f"kernel.{name.replace('-', '_')}=0"].active for name in names] == [
        name not in useless for name in names
    ]


def test_no_boot_argument_is_active_beyond_a_measured_setting_without_benefit() -> None:
    """Of the laptop with every setting measured as useless: boot arguments of other findings stay active."""
    findings = audit({**MACHINES["laptop"], "tunables": {"numa_balancing": 1}})
    names = {item.name: [change.setting[0] for change in item.changes if change.setting] for item in findings}
    lines = lines_of(findings, {name: NOTHING_SHOWN for settings in names.values() for name in settings})
    boot_lines = [line for line in lines if line.change.form is Form.BOOT]
    refuted = {line.change.text for line in boot_lines if names[line.finding.name]}
    assert {"numa_balancing=disable", "intel_pstate=disable", "transparent_hugepage=never"} <= refuted
    assert not [line.change.text for line in boot_lines if line.active and line.change.text in refuted]
    assert "threadirqs" in {line.change.text for line in boot_lines if line.active}


def test_security_and_safety_are_not_given_away_unasked() -> None:
    profile = {
        **MACHINES["laptop"],
        "vulnerabilities": {"spectre_v2": "Mitigation: IBRS"},
        "tunables": {"sched_rt_runtime_us": 950000, "sched_rt_period_us": 1000000},
    }
    texts = emit(audit(profile), {})
    assert "mitigations=off" in texts["fastenough-grub.cfg"]
    assert not [line for line in active(texts["fastenough-grub.cfg"]) if "mitigations" in line]
    assert "# kernel.sched_rt_runtime_us = -1" in texts["90-fastenough.conf"].splitlines()


def test_a_measured_benefit_does_not_activate_what_reduces_safety() -> None:
    profile = {**MACHINES["laptop"], "tunables": {"sched_rt_runtime_us": 950000, "sched_rt_period_us": 1000000}}
    text = emit(audit(profile), {"rt-throttling": HELPS})["90-fastenough.conf"]
    assert "# kernel.sched_rt_runtime_us = -1" in text.splitlines() and "(-15 to -9)" in text


def test_options_of_the_kernel_are_commented_out_like_other_lines() -> None:
    """``# CONFIG_NAME is not set`` is no comment for the kernel's tools."""
    options = [
        "INIT_ENV_ARG_LIMIT=32",
        "KFENCE=y",
        "KFENCE_SAMPLE_INTERVAL=100",
        "KFENCE_STATIC_KEYS=y",
        "PROVE_LOCKING=y",
    ]
    profile = {
        **MACHINES["laptop"],
        "cmdline": "preempt=full",
        "kernel_config": {"set": [f"CONFIG_{option}" for option in options]},
    }
    lines = emit(audit(profile), {})["fastenough.cfg"].splitlines()
    assert "CONFIG_PREEMPT_RT=y" in lines and "# CONFIG_PREEMPT_DYNAMIC=y" in lines, "the second contradicts the first"
    assert "CONFIG_PREEMPT_DYNAMIC=y" not in lines
    assert "# CONFIG_PROVE_LOCKING is not set" in lines
    assert "# CONFIG_KFENCE_STATIC_KEYS=n" in lines, "it would reduce security"
    assert "# CONFIG_KFENCE_STATIC_KEYS is not set" not in lines


@pytest.mark.parametrize(
    ("count", "isolated", "mask"),
    [(4, "3", "7"), (32, "31", "7fffffff"), (33, "32", "ffffffff"), (40, "38-39", "3f,ffffffff")],
)
def test_a_mask_of_many_cpus_is_in_the_form_that_the_kernel_reads(count: int, isolated: str, mask: str) -> None:
    profile = {
        **MACHINES["server"],
        "cpu": {"count": count, "architecture": "x86_64"},
        "cpu_isolation": {"online": f"0-{count - 1}", "isolated": isolated},
        "tunables": {"workqueue_cpumask": "ff,ffffffff", "writeback_cpumask": "ff,ffffffff"},
    }
    text = emit(audit(profile), {})["fastenough-tmpfiles.conf"]
    assert f"w /sys/devices/virtual/workqueue/cpumask - - - - {mask}" in active(text)


def test_what_a_machine_says_of_itself_writes_no_line() -> None:
    profile = {**MACHINES["laptop"], "clocksource": "evil\nkernel.panic = 1\x1b[2J\n"}
    for text in emit(audit(profile), {}).values():
        assert "\x1b" not in text and not [line for line in text.splitlines() if line.startswith("kernel.panic")]


@pytest.mark.parametrize(
    "write", [lambda folder: make_folder(folder, TEXTS), lambda folder: write_files(TEXTS, folder)]
)
@pytest.mark.parametrize("exists", [False, True])
def test_no_link_in_the_folder_is_followed(tmp_path: Path, exists: bool, write: Callable[[Path], None]) -> None:
    """Another user can put a link into a folder that root writes to."""
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    if exists:
        victim.write_text("before")
    folder.mkdir()
    (folder / "fastenough.cfg").symlink_to(victim)
    with pytest.raises(BadInput, match=r"fastenough\.cfg exists"):
        write(folder)
    assert [entry.name for entry in folder.iterdir()] == ["fastenough.cfg"]
    assert victim.exists() == exists and (not exists or victim.read_text() == "before")


def test_files_are_written_into_new_folders(tmp_path: Path) -> None:
    write_files(TEXTS, tmp_path / "a" / "b")
    assert {path.name: path.read_text() for path in (tmp_path / "a" / "b").iterdir()} == TEXTS
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written"):
        make_folder(tmp_path / "file" / "below", TEXTS)
