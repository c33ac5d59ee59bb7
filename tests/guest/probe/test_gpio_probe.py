# SPDX-License-Identifier: GPL-2.0-or-later
"""The probe's pins: what is sent is seen and answered, by the character device and by sysfs, and all is given back."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.implementations.task import Probing
from fastenough.recording import Recording
from fastenough.settings import Settings
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE, install
from tests.support.virtual_boards import CHIP, booted, quiet

pytestmark = pytest.mark.untimed

EDGES = 300
LIMIT_S = 600.0
"""Each probe is ended long before: a busy machine takes minutes for what a test does meanwhile."""
WAYS = ("cdev", "sysfs")
RESPONSE = [
    PROBE,
    "response",
    f"--chip={CHIP}",
    f"--in={INPUT_LINE}",
    f"--out={OUTPUT_LINE}",
    "--record=-",
    "--report=200ms",
]
PERIODIC = [PROBE, "periodic", f"--chip={CHIP}", f"--out={OUTPUT_LINE}", "--record=-", "--interval=10ms"]


@pytest.fixture(scope="module", params=[pytest.param("stock", marks=pytest.mark.check), "rt"])
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    for each in booted(request.param):
        install(each.link)
        yield each


@pytest.fixture(autouse=True)
def input_is_low(request: pytest.FixtureRequest) -> None:
    if "board" in request.fixturenames:
        request.getfixturevalue("board").pins.drive(INPUT_LINE, 0)


def directions(board: VirtualBoard) -> str:
    """Of input and output, and which lines sysfs still holds; read without our own code."""
    script = (
        "cd /sys/class/gpio; base=$(cat gpiochip*/base); ls | grep -c 'gpio[0-9]'; "
        f"for line in {INPUT_LINE} {OUTPUT_LINE}; do n=$((base + line)); "
        "echo $n >export; cat gpio$n/direction; echo $n >unexport; done"
    )
    return " ".join(board.link.run(["sh", "-c", script]).text.split())


def refused(board: VirtualBoard, *words: str, probe: str = "response") -> str:
    """The one line the probe says, with status 2."""
    done = board.link.run([PROBE, probe, *words], timeout_s=20.0)
    lines = done.stderr.decode().splitlines()
    assert (done.status, len(lines), done.stdout) == (2, 1, b""), (words, done)
    return lines[0]


def await_start(responding: Probing) -> None:
    """Wait for the first interval: the head is written before the run begins, and earlier edges do not count."""
    deadline_mono_s = time.monotonic() + 30.0
    while len(responding.lines) < 2 and time.monotonic() < deadline_mono_s:
        time.sleep(0.05)
    assert len(responding.lines) >= 2


@pytest.mark.parametrize("way", WAYS)
def test_every_edge_is_seen_and_answered(board: VirtualBoard, way: str) -> None:
    with Probing(board.link, [*RESPONSE, f"--way={way}"], LIMIT_S) as responding:
        await_start(responding)
        board.pins.take()
        before = board.pins.counts[OUTPUT_LINE]
        for number in range(EDGES):
            level = (number + 1) % 2
            board.pins.drive(INPUT_LINE, level)
            board.pins.wait(OUTPUT_LINE, level, 10.0)
        responding.interrupt()
    assert board.pins.counts[OUTPUT_LINE] - before == EDGES
    recording = responding.recording()
    (series,) = recording.series
    assert recording.totals[series.id].total == EDGES
    assert (recording.lost(series.id), recording.missed(series.id)) == (0, 0)
    assert series.name == ("response_kernel" if way == "cdev" else "answer")
    assert "self-measured" in recording.head.marks
    assert recording.head.parameters["way"] == way
    assert directions(board) == "0 in in"


def test_edges_that_overtake_each_other_are_counted(board: VirtualBoard) -> None:
    """Nobody waits for answers here: what is not answered by itself is missed, and the last level is right."""
    burst = 401
    with Probing(board.link, RESPONSE, LIMIT_S) as responding:
        await_start(responding)
        before = board.pins.counts[OUTPUT_LINE]
        for number in range(burst):
            board.pins.drive(INPUT_LINE, (number + 1) % 2)
        quiet(board)
        outside = board.pins.counts[OUTPUT_LINE] - before  # giving it back makes an edge of its own
        responding.interrupt()
    recording: Recording = responding.recording()
    stored, missed, lost = recording.totals[0].total, recording.missed(0), recording.lost(0)
    assert outside == stored
    assert stored % 2 == 1
    assert stored + missed + lost <= burst


def test_toggles_are_what_was_seen_outside(board: VirtualBoard, tmp_path: Path) -> None:
    with Settings(board.link, tmp_path / "journal") as settings:
        settings.apply("pin", f"{CHIP}/{OUTPUT_LINE}=out")  # so that taking and giving back make no edges
        board.pins.settle()
        before = board.pins.counts[OUTPUT_LINE]
        with Probing(board.link, [*PERIODIC, "--loops=100"], LIMIT_S) as toggling:
            toggling.wait(30.0)
        board.pins.settle()
        assert board.pins.counts[OUTPUT_LINE] - before == 100
    recording = toggling.recording()
    wakeup, corrected = recording.series
    assert recording.totals[wakeup.id].total == 100
    assert recording.totals[corrected.id].total == 100 + recording.missed(wakeup.id)
    assert recording.missed(corrected.id) == recording.missed(wakeup.id)
    assert directions(board) == "0 in in"


@pytest.mark.parametrize("words", [["--loops=21"], []])
def test_an_output_that_was_an_input_ends_low_by_an_act_that_is_counted(board: VirtualBoard, words: list[str]) -> None:
    """Let go of while high, it would make one edge more than there were acts."""
    before = board.pins.counts[OUTPUT_LINE]
    with Probing(board.link, [*PERIODIC, *words], LIMIT_S) as toggling:
        if words:
            toggling.wait(30.0)
        else:
            board.pins.wait(OUTPUT_LINE, 1, 10.0)
            toggling.interrupt()
    board.pins.settle()
    toggled = toggling.recording().totals[0].total
    assert board.pins.counts[OUTPUT_LINE] - before == toggled
    assert toggled == 22 if words else toggled % 2 == 0


def test_a_held_up_task_owes_its_periods(board: VirtualBoard) -> None:
    with Probing(board.link, PERIODIC, LIMIT_S) as toggling:
        time.sleep(0.3)
        (probe,) = board.link.read(f"/proc/{toggling.pid}/task/{toggling.pid}/children").decode().split()
        board.link.run(["kill", "-STOP", probe])
        time.sleep(1.0)
        board.link.run(["kill", "-CONT", probe])
        time.sleep(0.3)
        toggling.interrupt()
    recording = toggling.recording()
    assert 50 <= recording.missed(0) <= 2000
    assert recording.totals[1].total == recording.totals[0].total + recording.missed(0)


@pytest.mark.parametrize("way", WAYS)
def test_pins_that_cannot_be_had(board: VirtualBoard, way: str) -> None:
    chip, using = f"--chip={CHIP}", f"--way={way}"
    assert "no GPIO chip 'nochip'" in refused(board, using, "--chip=nochip", "--in=0", "--out=1")
    assert "has no such line" in refused(board, using, chip, "--in=0", "--out=99")
    assert "two lines" in refused(board, using, chip, "--in=1", "--out=1")
    assert "is missing" in refused(board, using, chip, "--in=0")
    assert "is missing" in refused(board, using, chip, probe="periodic")
    with Probing(board.link, PERIODIC, LIMIT_S) as holder:
        assert "in use" in refused(board, using, chip, f"--in={INPUT_LINE}", f"--out={OUTPUT_LINE}")
        holder.interrupt()
    assert directions(board) == "0 in in"


def test_a_device_without_permission(board: VirtualBoard) -> None:
    board.link.write("/etc/passwd", b"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    done = board.link.run(["su", "nobody", "-s", "/bin/sh", "-c", f"{PROBE} response --in=0 --out=1 --policy=other"])
    lines = done.stderr.decode().splitlines()
    assert (done.status, len(lines)) == (2, 1), done
    assert "Permission denied; run as root or as a member" in lines[0]


def test_an_aborted_run_gives_its_pins_back(board: VirtualBoard) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        process = board.link.start([*RESPONSE, "--way=sysfs"])
        assert next(process.lines(20.0)).startswith(b'{"type":"head"')
        process.signal(number)
        assert process.wait(60) == 128 + number
        assert directions(board) == "0 in in"


@pytest.mark.skipif(Path("/dev/gpiochip0").exists() or Path("/sys/class/gpio").exists(), reason="there are pins here")
@pytest.mark.parametrize("probe", ["response", "periodic"])
def test_without_pins_it_is_not_applicable(probe_binary: str, probe: str, tmp_path: Path) -> None:
    record = tmp_path / "recording.jsonl"
    done = subprocess.run([probe_binary, probe, f"--record={record}"], text=True, capture_output=True, check=False)
    assert done.returncode == 5
    assert "no GPIO pins" in done.stderr
    assert '"outcome":"not-applicable"' in record.read_text()
