# SPDX-License-Identifier: GPL-2.0-or-later
"""The paper's control script, in a real rt kernel: priorities, pins and modules are set, read back and put back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.facts.tasks import parse_task
from fastenough.implementations.task import Probing
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings import Settings
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import build_module
from fastenough.virtual.packages import fetch
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE, install
from tests.support.presence import present
from tests.support.virtual_boards import CHIP, booted

pytestmark = pytest.mark.untimed

KO = "/tmp/fastenough.ko"
RESPONSE = [PROBE, "response", f"--chip={CHIP}", f"--in={INPUT_LINE}", f"--out={OUTPUT_LINE}", "--record=-"]
OUT = f"{CHIP}/{OUTPUT_LINE}"
LIMIT_S = 600.0
"""Each probe is ended long before: a busy machine takes minutes for what a test does meanwhile."""


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    for each in booted("rt"):
        install(each.link)
        each.link.write(KO, build_module(each.kernel).read_bytes())
        yield each


@pytest.fixture
def link(board: VirtualBoard) -> Link:
    return board.link


def priorities(link: Link) -> dict[str, int]:
    """Real-time priority by name of every task that has one."""
    lines = link.run(["sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null"], timeout_s=120.0).text.splitlines()
    tasks = [parse_task(line) for line in lines]
    return {task.comm: task.priority for task in tasks if task.priority}


def direction(link: Link) -> str:
    """Of the output, read without our own code."""
    answer = link.run(
        [
            "sh",
            "-c",
            f"cd /sys/class/gpio; base=$(cat gpiochip*/base); n=$((base + {OUTPUT_LINE})); "
            "echo $n >export; cat gpio$n/direction; echo $n >unexport",
        ]
    ).text
    return answer.strip()


def test_priorities_are_as_in_the_paper_and_go_back(link: Link, tmp_path: Path) -> None:
    before = priorities(link)
    assert max(priority for name, priority in before.items() if not name.startswith("migration")) > 5
    with Probing(link, RESPONSE, LIMIT_S) as responding:
        with Settings(link, tmp_path / "journal") as settings:
            for name, requested in (("rt-ceiling", 5), ("irq-threads", "99:fasten"), ("timer-threads", 99)):
                for entry in settings.apply(name, requested):
                    assert entry.in_effect == entry.requested
            changed = priorities(link)
            others = {
                name: priority
                for name, priority in changed.items()
                if not name.startswith(("irq/", "ktimers", "migration", "fasten", "response"))
            }
            assert max(others.values()) <= 5
            assert {priority for name, priority in changed.items() if "fasten" in name and "irq" in name} == {99}
            assert {priority for name, priority in changed.items() if name.startswith("ktimers")} == {99}
        after = priorities(link)
        assert {name: after.get(name) for name in before} == before
        responding.interrupt()


def test_an_output_becomes_an_input_again(link: Link, tmp_path: Path) -> None:
    assert direction(link) == "in"
    with Settings(link, tmp_path / "journal") as settings:
        (entry,) = settings.apply("pin", f"{OUT}=out")
        assert (entry.name, entry.in_effect) == (f"pin {OUT}", "out")
        assert direction(link) == "out"
    assert direction(link) == "in"


def test_pins_and_module_go_back_after_a_crash_of_bench_and_task(link: Link, tmp_path: Path) -> None:
    crashed = Settings(link, tmp_path / "journal")
    crashed.apply("pin", f"{OUT}=out")
    with Probing(link, RESPONSE, LIMIT_S) as responding:
        link.run(["kill", "-KILL", str(responding.pid)])
    crashed.apply("kernel-module", f"{KO} task=timer-thread")
    assert link.exists("/sys/module/fastenough")
    crashed._journal.close()  # as a killed bench leaves it: noted, and the lock free
    with Settings(link, tmp_path / "journal") as successor:
        assert len(successor.restored) == 2
    assert direction(link) == "in"
    assert not link.exists("/sys/module/fastenough")


def test_a_refused_module_says_why_and_nothing_stays(link: Link, tmp_path: Path) -> None:
    with Settings(link, tmp_path / "journal") as settings:
        (entry,) = settings.apply("kernel-module", f"{KO} task=nonsense")
        assert entry.in_effect == "absent"
        assert "task=nonsense is unknown" in present(entry.reason, "reason")


def test_a_module_of_another_kernel_is_refused(board: VirtualBoard, tmp_path: Path) -> None:
    other = "/tmp/other/fastenough.ko"
    board.link.run(["mkdir", "-p", "/tmp/other"])
    board.link.write(other, build_module(fetch("stock")).read_bytes())
    with Settings(board.link, tmp_path / "journal") as settings:
        (entry,) = settings.apply("kernel-module", f"{other} task=timer-thread")
        assert entry.in_effect == "absent"
        assert "it was built for kernel" in present(entry.reason, "reason")


@pytest.mark.parametrize(
    ("name", "requested", "said"),
    [
        ("pin", f"{CHIP}/99=out", "has no line 99"),
        ("pin", "out", "CHIP/LINE=in"),
        ("kernel-module", "/tmp/nowhere.ko", "no such file on the board"),
        ("kernel-module", "fastenough", "the path of a .ko file"),
    ],
)
def test_values_that_cannot_be_are_bad_input(link: Link, tmp_path: Path, name: str, requested: str, said: str) -> None:
    with Settings(link, tmp_path / "journal") as settings, pytest.raises(BadInput, match=said):
        settings.apply(name, requested)


def test_a_pin_in_use_is_bad_input(link: Link, tmp_path: Path) -> None:
    with Probing(link, RESPONSE, LIMIT_S) as responding, Settings(link, tmp_path / "journal") as settings:
        with pytest.raises(BadInput, match="is in use"):
            settings.apply("pin", f"{OUT}=out")
        responding.interrupt()


def test_a_chip_that_is_not_there_is_not_applicable(link: Link, tmp_path: Path) -> None:
    with Settings(link, tmp_path / "journal") as settings, pytest.raises(NotApplicable, match="no GPIO chip"):
        settings.apply("pin", "nochip/1=out")
