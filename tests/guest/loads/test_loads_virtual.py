# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads really run on the virtual board, which has none of their tools: one boot for all."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from fastenough.link import Link
from fastenough.loads import LOADS, TOOL_PACKAGES, Expectation, Load, RunningLoad
from fastenough.loads.load import stress_ng
from fastenough.model import NotApplicable
from fastenough.recording import LoadProof
from tests.support.processes import eventually
from tests.support.virtual_boards import booted

pytestmark = pytest.mark.untimed

PATIENCE_S = 240.0
"""Emulated, on a busy machine: to look at many processes takes its time."""
CPUS = 2


@pytest.fixture(scope="module")
def link() -> Iterator[Link]:
    for board in booted("stock"):
        yield board.link


def _left(link: Link) -> list[str]:
    """What is in the place of scratch directories, and every process below the agent that is not asked for here."""
    processes = link.run(["ps", "-o", "args"], 60.0).text.splitlines()
    tools = "|".join(TOOL_PACKAGES)
    return [*link.glob("/var/tmp/*"), *(line for line in processes if re.search(rf"\b({tools}|dd|ls -lR)\b", line))]


def _go_on(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def _runs_and_is_seen_to(link: Link, load: Load) -> None:
    lacking = [tool for tool in load.tools if link.which(tool) is None]
    with RunningLoad(link, load, CPUS, 2 * PATIENCE_S) as running:
        running.await_processes(_go_on)
        running.begin()
        use, proofs = running.follow(), []

        def proven() -> bool:
            time.sleep(1.0)
            proofs.append(running.proof())
            return proofs[-1].ran is True

        assert eventually(proven, PATIENCE_S), proofs[-1].reasons
        seen = use()
        assert seen is not None and seen.ran and seen.processes
        brought = (running.head().source or "").partition("brought by the bench: ")[2]
    assert all(f"{TOOL_PACKAGES[tool]} " in brought for tool in lacking)
    assert _left(link) == []


@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize("name", [name for name in LOADS if name not in ("none", "brown-martin")])
def test_a_load_runs_there_and_is_seen_to(link: Link, name: str) -> None:
    _runs_and_is_seen_to(link, LOADS[name])


@pytest.mark.matrix
@pytest.mark.timeout(2400)
def test_brown_martin_runs_there_and_is_seen_to(link: Link) -> None:
    """500 processes take minutes to start where each of them is emulated: make bench has the time."""
    _runs_and_is_seen_to(link, LOADS["brown-martin"])


def test_the_board_itself_has_none_of_the_tools(link: Link) -> None:
    assert [tool for tool in ("stress-ng", "hackbench", "scp", "ssh", "ssh-keygen", "sshd") if link.which(tool)] == []


def test_the_copiers_of_brown_martin_start_there(link: Link) -> None:
    """Fewer of them, so that it takes no minutes; each copies, at the nice value that the load says."""
    load = LOADS["brown-martin"]
    copiers = next(command for command in load.commands if "-lt 500" in command[-1])
    fewer = Load(
        "copiers",
        "this test",
        ("nice",),
        ((*copiers[:-1], copiers[-1].replace("-lt 500", "-lt 5")),),
        Expectation(cpu_share=0.01, processes=5),
    )
    with RunningLoad(link, fewer, CPUS, PATIENCE_S) as running:
        running.await_processes(_go_on)
        running.begin()
        assert eventually(lambda: running.proof().ran, PATIENCE_S), running.proof().reasons
        states = link.run(["sh", "-c", "cat /proc/[0-9]*/stat"], 60.0).text.splitlines()
    assert [line.rpartition(")")[2].split()[16] for line in states if "(dd)" in line] == ["19"] * 5


def _proof_of(link: Link, load: Load, seconds: float) -> LoadProof:
    with RunningLoad(link, load, CPUS, PATIENCE_S) as running:
        running.begin()
        time.sleep(seconds)
        return running.proof()


def test_a_load_that_cannot_write_its_disk_did_not_run(link: Link) -> None:
    """A small file system that is full stands for the disk."""
    assert (
        link.run(
            [
                "sh",
                "-c",
                "mkdir -p /full && mount -t tmpfs -o size=64k none /full && "
                "dd if=/dev/zero of=/full/all 2>/dev/null; df /full",
            ],
            30.0,
        ).status
        == 0
    )
    hdd = LOADS["hdd"]
    (command,) = hdd.commands
    full = Load(
        "hdd-full",
        "this test",
        hdd.tools,
        (tuple("/full" if word == "{scratch}" else word for word in command),),
        hdd.expects,
    )
    proof = _proof_of(link, full, 10.0)
    link.run(["umount", "/full"])
    assert proof.ran is False and (proof.bytes_written or 0) < 100_000
    assert any("bytes written" in reason or "exited too early" in reason for reason in proof.reasons), proof.reasons


def test_tools_that_cannot_be_unpacked_make_the_load_not_applicable(link: Link) -> None:
    """There is no room for them: the reason says so, and what was unpacked is gone."""
    assert link.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", "/var/tmp"]).status == 0
    try:
        with pytest.raises(
            NotApplicable,
            match=r"stress-ng, which is not installed: .*it could not be copied either: .*"
            r"No space left on device",
        ):
            _proof_of(link, Load("x", "this test", ("stress-ng",), (stress_ng("--cpu", "1"),), Expectation()), 0.0)
        assert _left(link) == []
    finally:
        link.run(["umount", "/var/tmp"])
