# SPDX-License-Identifier: GPL-2.0-or-later
"""Facts: what boards of many kinds once said is understood, and nothing a board says can break the profile."""

from __future__ import annotations

import errno
import gzip
import json
import os
import platform
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis.keys import ProfileFact, UnknownValue
from fastenough.facts import FACTS, collect, gather, profile_sha256
from fastenough.facts.cpu import cpu_list
from fastenough.facts.disturbance import parse_steal_ns
from fastenough.facts.fact import Absent
from fastenough.facts.interrupts import parse_interrupts
from fastenough.facts.kernel import parse_build_id, parse_preemption
from fastenough.facts.tasks import all_tasks, parse_task
from fastenough.link import FakeLink, LocalLink, Stalled, read_matching
from fastenough.link.base import Completed
from fastenough.loads.proof import look
from fastenough.settings.priorities import find_tasks
from tests.support.recordings import PROFILE, Plan, recording

CASES = sorted((Path(__file__).parents[2] / "cases/facts").glob("*.json"))


def _case(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def _link(case: dict[str, Any]) -> FakeLink:
    return FakeLink(case["files"], case["commands"])


def _at(profile: Mapping[str, Any], place: str) -> Any:
    fact: Any = profile
    for name in place.split("/"):
        fact = fact[name]
    return fact


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = _case(path)
    profile = collect(_link(case))
    for place, expected in case["expected"].items():
        assert _at(profile, place) == expected, place


def test_there_are_cases_of_many_kinds() -> None:
    kinds = {path.stem.partition("-")[0] for path in CASES}
    assert {"x86", "arm64", "armhf", "armel", "riscv64", "powerpc"} <= kinds


@pytest.mark.check
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_damaged_answers_break_nothing(path: Path) -> None:
    case = _case(path)
    dice = random.Random(path.stem)
    for _ in range(40):
        files = {name: _damaged(dice, text) for name, text in case["files"].items() if dice.random() < 0.9}
        outputs = {line: _damaged(dice, text) for line, text in case["commands"].items()}
        profile = collect(FakeLink(files, outputs))
        assert set(profile) == {fact.name for fact in FACTS} | {"absent"}
        assert all(profile[name] is None for name in profile["absent"])
        json.dumps(profile)


def _damaged(dice: random.Random, text: str) -> str:
    """Whole, cut, blank, turned into something else, or with bytes exchanged."""
    match dice.randrange(6):
        case 0:
            return text[: dice.randint(0, len(text))]
        case 1:
            return ""
        case 2:
            return "\n".join(dice.sample(text.splitlines(), len(text.splitlines())))
        case 3:
            return "".join(dice.choice("0:x \n\0-,()[é") if dice.random() < 0.05 else char for char in text)
        case _:
            return text


@pytest.mark.parametrize("answer", ["7", "null", "[7]", "[null]", '["a"]', '{"type": "xdp"}', "[" * 100_000])
def test_another_form_of_the_list_of_bpf_programs_is_not_understood(answer: str) -> None:
    profile = collect(FakeLink({}, {"bpftool -j prog show": answer}), {"tracing"})
    assert profile["tracing"] is None
    assert profile["absent"]["tracing"].startswith("not understood")


class _FailingLink(FakeLink):
    """A board on which one command does not end, or fails with ``error``."""

    def __init__(self, command: str, error: Exception | None = None) -> None:
        super().__init__({})
        self._command, self._error = command, error

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        if " ".join(argv) == self._command:
            raise self._error or Stalled(f"{argv[0]}: no output for {timeout_s:g} s")
        return super().run(argv, timeout_s, input)


@pytest.mark.parametrize(
    ("fact", "command"),
    [
        ("interrupt_coalescing", "ethtool -c *"),
        ("real_time_core", "xeno-config --version"),
        ("latency_request_us", "od -An -td4 -N4 /dev/cpu_dma_latency"),
        ("tracing", "bpftool -j prog show"),
    ],
)
def test_a_fact_whose_command_stalls_is_unknown_with_the_reason(fact: str, command: str, tmp_path: Path) -> None:
    profile = collect(_FailingLink(command), {fact})
    assert profile[fact] is None
    assert profile["absent"][fact] == f"not read: {command.split(maxsplit=1)[0]}: no output for 10 s"
    head = recording(tmp_path, Plan([], head={"profile": {**PROFILE, **profile}})).head
    assert isinstance(ProfileFact(fact)(head, None), UnknownValue)


@pytest.mark.parametrize(("number", "is_read"), [(errno.EAGAIN, False), (errno.ENOENT, True)])
def test_a_command_that_cannot_be_started_now_is_not_absent(number: int, is_read: bool) -> None:
    """Too many processes on the board show nothing of it; a missing program does."""
    profile = collect(_FailingLink("ethtool -c *", OSError(number, "cannot start")), {"interrupt_coalescing"})
    assert profile["absent"]["interrupt_coalescing"].startswith("not read: ") is not is_read


def test_the_profile_of_this_machine() -> None:
    profile = collect(LocalLink())
    assert profile["kernel"]["release"] == platform.release()
    assert profile["kernel"]["version"] == platform.version()
    assert profile["hostname"] == platform.node()
    assert profile["cpu"]["count"] == os.cpu_count()
    assert profile["cmdline"] == Path("/proc/cmdline").read_text().strip()
    assert profile["emulated"] in (True, False)
    assert profile["uptime_s"] > 0
    assert {"kernel", "cpu", "clocksource", "cmdline", "hypervisor", "emulated", "packages", "tunables"} <= set(profile)
    assert profile_sha256(profile) == profile_sha256(collect(LocalLink()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "program: qemu\nversion: 7.2: of Debian\nsha256: ab\n",
            {"program": "qemu", "version": "7.2: of Debian", "sha256": "ab"},
        ),
        (
            "program: qemu\nversion: 7.2\nsha256: ab\ncost_model: cache: L1\n",
            {"program": "qemu", "version": "7.2", "sha256": "ab", "cost_model": "cache: L1"},
        ),
        ("program: qemu\n", None),
        ("", None),
    ],
)
def test_the_emulator_is_what_the_guest_names(text: str, expected: dict[str, str] | None) -> None:
    assert collect(FakeLink({"/etc/fastenough-emulator": text}), ("emulator",))["emulator"] == expected


_PACKED = gzip.compress(b"CONFIG_HZ=250\n" * 99, mtime=0)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (_PACKED, ["CONFIG_HZ=250"]),
        (_PACKED[:10] + b"\xff" * 9 + _PACKED[19:], None),
        (_PACKED[:-3] + b"abc", None),
        (_PACKED[:-3], None),
        (b"\x1f\x8b\x01", None),
        (gzip.compress(b"CONFIG_HZ=250\n" * (1 << 21)), None),
    ],
    ids=["sound", "stream", "checksum", "truncated", "head", "huge"],
)
def test_a_damaged_or_huge_configuration_of_the_kernel_is_not_read(content: bytes, options: list[str] | None) -> None:
    link = FakeLink({})
    link._files["/proc/config.gz"] = content
    config = collect(link, ("kernel_config",))["kernel_config"]
    assert (config["set"][:1] if config else None) == options


def test_what_changes_from_run_to_run_is_not_hashed() -> None:
    case = _case(CASES[-1])
    before = collect(_link(case))
    for fact in FACTS:
        same = profile_sha256({**before, fact.name: "something else"}) == profile_sha256(before)
        assert same == fact.volatile, fact.name


class Far(LocalLink):
    near = False


def test_the_name_of_a_task_that_looks_like_a_header_hides_no_task() -> None:
    comm = Path("/proc/self/comm")
    before = comm.read_text()
    comm.write_text("\n==> /p <==\n")
    try:
        contents = read_matching(Far(), [f"/proc/{os.getpid()}/stat", "/proc/[0-9]*/task/[0-9]*/stat", "/proc/uptime"])
        sample = look(Far(), [os.getpid()], 0.0)
        tasks = [task for task in all_tasks(gather(Far())) if task.tid == os.getpid()]
        found = find_tasks(Far(), lambda task: task.tid == os.getpid())
    finally:
        comm.write_text(before)
    assert "/p" not in contents
    assert parse_task(contents[f"/proc/{os.getpid()}/stat"].decode()).tid == os.getpid()
    assert os.getpid() in {pid for pid, _ in sample.uses}
    assert [task.comm for task in tasks] == [task.comm for _, task in found] == ["\n==> /p <==\n"]


def test_a_task_that_ended_meanwhile_hides_no_task() -> None:
    stat = Path("/proc/self/stat").read_text()
    profile = collect(FakeLink({"/proc/1/task/1/stat": stat, "/proc/2/task/2/stat": ""}))
    assert not {"real_time_tasks", "interrupt_threads", "services"} & set(profile["absent"])


def test_many_at_once_is_the_same_as_one_by_one() -> None:
    patterns = [
        "/etc/os-release",
        "/proc/sys/kernel/osrelease",
        "/sys/devices/system/cpu/online",
        "/no/such/file",
        "/sys/devices/system/cpu/vulnerabilities/*",
        "/proc/cpuinfo",
        "/proc/config.gz",
    ]
    near, far = read_matching(LocalLink(), patterns), read_matching(Far(), patterns)
    assert set(near) == set(far)
    for path in set(near) - {"/proc/cpuinfo"}:
        assert near[path].strip() == far[path].strip()
    assert "/no/such/file" not in near
    assert gather(Far()).files["/proc/cmdline"].strip() == Path("/proc/cmdline").read_text().strip()


@pytest.mark.parametrize(
    ("version", "realtime", "chosen", "options", "expected"),
    [
        ("#1 SMP PREEMPT_RT Debian", None, "", {}, "preempt-rt"),
        ("#1 SMP PREEMPT RT 3.0", None, "", {}, "preempt-rt"),
        ("#1 SMP PREEMPT", "1", "", {}, "preempt-rt"),
        ("#1 SMP PREEMPT_DYNAMIC", None, "none voluntary (full)", {}, "preempt"),
        ("#1 SMP PREEMPT_DYNAMIC", None, "none voluntary (lazy)", {}, "lazy"),
        ("#1 SMP PREEMPT_DYNAMIC", None, "quiet preempt=voluntary", {}, "voluntary"),
        ("#1 SMP PREEMPT_DYNAMIC", None, "quiet", {"CONFIG_PREEMPT_NONE": "y"}, "none"),
        ("#1 SMP PREEMPT_DYNAMIC", None, "quiet", {}, "stock"),
        ("#1 SMP PREEMPT", None, "", {}, "preempt"),
        ("#1 SMP", None, "", {}, "stock"),
    ],
)
def test_preemption(version: str, realtime: str | None, chosen: str, options: dict[str, str], expected: str) -> None:
    assert parse_preemption(version, realtime, chosen, options) == expected


@pytest.mark.parametrize(
    ("files", "outputs", "expected"),
    [
        (
            {"/proc/xenomai/version": "3.2.7\n"},
            {},
            {"core": "cobalt", "version": "3.2.7", "abi": None, "library": None},
        ),
        (
            {"/sys/devices/virtual/evl/control/abi": "26\n"},
            {"pkg-config --modversion evl": "0.28\n"},
            {"core": "evl", "version": None, "abi": 26, "library": {"name": "libevl", "version": "0.28", "for": "evl"}},
        ),
        (
            {},
            {"xeno-config --version": "3.2.7\n", "xeno-config --core": "mercury\n"},
            {
                "core": None,
                "version": None,
                "abi": None,
                "library": {"name": "xenomai", "version": "3.2.7", "for": "mercury"},
            },
        ),
    ],
)
def test_real_time_cores(files: dict[str, str], outputs: dict[str, str], expected: dict[str, object]) -> None:
    """A library without its core is not a core."""
    assert collect(FakeLink(files, outputs), {"real_time_core"})["real_time_core"] == expected


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ("04000000 02000000 03000000 474e5500 a10a", "a10a"),
        ("06000000 01000000 01010000 4c696e757800 0000 00000000 04000000 02000000 03000000 474e5500 0aff0000", "0aff"),
        ("00000004 00000002 00000003 474e5500 a10a", "a10a"),
        ("04000000 04000000 03000000 474e5500 a10a", None),
        ("04000000 00000000 03000000 474e5500", None),
        ("04000000 02000000 01000000 474e5500 a10a", None),
        ("", None),
    ],
)
def test_the_build_id_of_a_kernel_is_in_its_notes_in_either_byte_order(notes: str, expected: str | None) -> None:
    """A note that ends before its ID, of another type, or none at all: unknown."""
    assert parse_build_id(bytes.fromhex(notes)) == expected


def test_bytes_of_a_binary_file_reach_its_fact_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256))
    link = FakeLink({"/proc/sys/kernel/osrelease": "6.1", "/proc/sys/kernel/version": "#1"})
    monkeypatch.setattr(link, "read", {"/sys/kernel/notes": content}.__getitem__)
    (fact,) = (fact for fact in FACTS if fact.name == "kernel")
    assert gather(link, [replace(fact, files=())]).files == {"/sys/kernel/notes": content.hex()}


def test_cpu_lists() -> None:
    assert cpu_list("0-3,8,10-11\n") == [0, 1, 2, 3, 8, 10, 11]
    assert cpu_list("\n") == []


def test_groups_of_more_cpus_than_a_machine_has_are_not_understood() -> None:
    siblings = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    shared = {siblings.format(cpu): f"{cpu},0-65534" for cpu in range(2)}
    profile = collect(FakeLink({"/proc/cpuinfo": "", **shared}, {}), {"cpu"})
    assert profile["cpu"] is None and "CPUs" in profile["absent"]["cpu"]


def test_a_task_may_be_called_anything() -> None:
    fields = ["S", "1"] + ["0"] * 35 + ["50", "1", "0"]
    task = parse_task("7 (a) (b) c) " + " ".join(fields))
    assert (task.tid, task.comm, task.policy, task.priority, task.real_time) == (7, "a) (b) c", "fifo", 50, True)


def test_interrupts_of_one_cpu() -> None:
    text = "           CPU0\n  1:        100   AIC  tc_clkevt\nErr:          0\n"
    assert parse_interrupts(text) == {"1": "AIC tc_clkevt", "Err": ""}


def test_old_kernels_know_no_steal() -> None:
    assert parse_steal_ns("cpu  1 2 3 4\n") == 0
    with pytest.raises(Absent):
        parse_steal_ns("intr 5\n")
