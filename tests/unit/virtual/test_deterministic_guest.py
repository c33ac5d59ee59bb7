# SPDX-License-Identifier: GPL-2.0-or-later
"""Deterministic guests without QEMU: their command line and work, what their results say, and their link."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from fastenough.board import open_board
from fastenough.campaign.measure import ActiveLoad
from fastenough.link import INJECTOR, MONITOR, read_matching
from fastenough.link.base import Completed
from fastenough.loads import Expectation, Load
from fastenough.loads.guest import GuestLoad
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.recording import LoadStated
from fastenough.virtual import deterministic, deterministic_link
from fastenough.virtual.board import make_own_directory
from fastenough.virtual.cost_model import COST_MODELS, CostModel, require_interface, split_cost_model
from fastenough.virtual.deterministic import (
    EMULATOR_FILE,
    Background,
    Beginning,
    Command,
    DeterministicGuest,
    Results,
    Watcher,
    read_results,
    work_files,
)
from fastenough.virtual.deterministic_link import DeterministicLink
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.probe import PROBE

STATUS = "voluntary_ctxt_switches:\t{0}\nnonvoluntary_ctxt_switches:\t0\n"
LOAD_PID, WORKER_PID = 61, 62
AT_ONCE = Beginning()
SPINS = Load("mine", "here", (), (("sh", "-c", "spin"),), Expectation(cpu_share=0.5, processes=1))


def _option(line: Sequence[str], name: str) -> str:
    return line[line.index(name) + 1]


def test_command_line(tmp_path: Path) -> None:
    line = DeterministicGuest(Kernel("stock", "arm64", "6.1", tmp_path), "skew_tick=1").command_line(tmp_path)
    assert line[0] == "qemu-system-aarch64"
    assert _option(line, "-M") == "virt,dtb-randomness=off"
    assert _option(line, "-accel") == "tcg,thread=single"
    assert _option(line, "-icount") == "shift=0,sleep=off"
    assert _option(line, "-rtc") == "base=2026-01-01,clock=vm"
    assert _option(line, "-smp") == "1"
    arguments = _option(line, "-append").split()
    assert arguments[-1] == "skew_tick=1" and "random.trust_cpu=off" in arguments
    devices = [word for before, word in pairwise(line) if before in ("-device", "-netdev", "-nic")]
    assert devices == ["virtio-serial-device", "virtserialport,chardev=results,nr=1,name=results"]


def test_kernels_of_other_architectures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="armhf"):
        DeterministicGuest(Kernel("stock-armhf", "armhf", "6.1", tmp_path))


def test_command_line_of_x86_64(tmp_path: Path) -> None:
    line = DeterministicGuest(Kernel("stock-amd64", "amd64", "6.1", tmp_path), "quiet").command_line(tmp_path)
    assert line[0] == "qemu-system-x86_64"
    assert _option(line, "-M") == "q35"
    assert {"console=ttyS0", "nokaslr"} <= set(_option(line, "-append").split())
    assert "virtio-serial-pci" in line


def test_command_line_with_a_cost_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deterministic, "build_plugin", lambda: Path("/cache,1/cost-model.so"))
    monkeypatch.setattr(deterministic, "build_probe", lambda arch: b"the probe")
    kernel = Kernel("stock", "arm64", "6.1", tmp_path)
    plain = DeterministicGuest(kernel, "quiet").command_line(tmp_path)
    line = DeterministicGuest(kernel, "quiet", COST_MODELS["cache"]).command_line(tmp_path)
    assert line[:-2] == plain, "nothing else changes"
    assert line[-2:] == [
        "-plugin",
        f"/cache,,1/cost-model.so,program={tmp_path}/probe,counts={tmp_path}/counts,instruction=32768:2:64,data=32768:4:64",
    ]
    assert (tmp_path / "probe").read_bytes() == b"the probe"


def test_cost_models_of_other_architectures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="amd64"):
        DeterministicGuest(Kernel("stock-amd64", "amd64", "6.1", tmp_path), "", COST_MODELS["cache"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", ("", None)),
        ("a  b", ("a  b", None)),
        ("cost-model=cache", ("", COST_MODELS["cache"])),
        ("a cost-model=cache b", ("a b", COST_MODELS["cache"])),
    ],
)
def test_the_cost_model_is_no_kernel_argument(arguments: str, expected: tuple[str, CostModel | None]) -> None:
    assert split_cost_model(arguments) == expected


@pytest.mark.parametrize("name", ["", "CACHE", "cache,cache"])
def test_an_unknown_cost_model_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="use cost-model=cache"):
        open_board(f"deterministic:stock cost-model={name}")


@pytest.mark.parametrize(
    ("version", "works"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", True),
        ("QEMU emulator version 10.0.8 (Debian 1:10.0.8+ds-0+deb13u1)", False),
        ("QEMU", False),
    ],
)
def test_another_interface_of_plugins_is_not_applicable(version: str, works: bool) -> None:
    if works:
        require_interface(version)
    else:
        with pytest.raises(NotApplicable, match=re.escape(version)):
            require_interface(version)


def test_work_is_run_as_it_was_given(tmp_path: Path) -> None:
    background = Background((("touch", "a b"),), (f"{tmp_path}/scratch",), 0.5, {"tools/bin/touch": b"#!"})
    files = work_files([Command(("printf", "%s|", "it's", "$HOME"), b"in")], background)
    assert files["work/input-000"] == b"in"
    assert files["work/warm-up"] == b"0.5\n"
    assert files["tools/bin/touch"] == b"#!"
    for name, content in files.items():
        (tmp_path / Path(name).name).write_bytes(content)
    ran = subprocess.run(["sh", tmp_path / "command-000"], capture_output=True, check=True)
    assert ran.stdout == b"it's|$HOME|"
    subprocess.run(["sh", tmp_path / "load-000"], check=True, cwd=tmp_path)
    assert (tmp_path / "scratch").is_dir() and (tmp_path / "a b").exists()


def _archive(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


RESULTS = {
    "status-000": b"0\n",
    "output-000": b"one",
    "errors-000": b"",
    "status-001": b"3\n",
    "output-001": b"",
    "errors-001": b"no",
    "loads": b"61\n",
    "errors-load-000": b"oh",
    "sample-000000": b"first",
    "sample-000001": b"second",
    "sample-999999": b"last",
}


def test_results(tmp_path: Path) -> None:
    (tmp_path / "results").write_bytes(_archive(RESULTS))
    assert read_results(tmp_path, 2) == Results(
        (Completed(0, b"one", b""), Completed(3, b"", b"no")), (61,), (b"oh",), (b"first", b"second", b"last")
    )


def test_results_of_a_watcher(tmp_path: Path) -> None:
    of_watcher = {"status-watcher": b"0\n", "output-watcher": b"head", "errors-watcher": b"hm"}
    (tmp_path / "results").write_bytes(_archive(RESULTS | of_watcher))
    assert read_results(tmp_path, 2).watcher == Completed(0, b"head", b"hm")


@pytest.mark.parametrize("lost", ["status-000", "output-001", None])
def test_incomplete_results_are_an_error_with_the_panic(tmp_path: Path, lost: str | None) -> None:
    content = _archive({name: content for name, content in RESULTS.items() if name != lost})
    (tmp_path / "results").write_bytes(content if lost else content[:700])
    (tmp_path / "console").write_text("booting\nKernel panic - not syncing: no init\nmore\n")
    with pytest.raises(FastenoughError, match="Kernel panic - not syncing: no init"):
        read_results(tmp_path, 2)


@dataclass
class _Run:
    done: Results | None
    running: bool = True

    def end(self) -> None:
        self.running = False

    def results(self, limit_s: float) -> Results:
        if self.done is None or not self.running:
            raise FastenoughError("ended without results")
        self.running = False
        return self.done


@dataclass
class _Guest:
    """Answers commands from a table; ``boots``: the commands and the background of each boot; ``beginnings``: how it
    began."""

    answers: Mapping[str, bytes]
    samples: tuple[bytes, ...] = ()
    arch: str = "arm64"
    cost_model: CostModel | None = None
    costs: bytes | None = None
    boots: list[tuple[list[str], Background | None]] = field(default_factory=list)
    beginnings: list[Beginning] = field(default_factory=list)
    watchers: list[Watcher | None] = field(default_factory=list)

    def boot(
        self,
        commands: Sequence[Command],
        background: Background | None = None,
        beginning: Beginning = AT_ONCE,
        watcher: Watcher | None = None,
    ) -> _Run:
        self.beginnings.append(beginning)
        self.watchers.append(watcher)
        lines = [" ".join(command.argv) for command in commands]
        self.boots.append((lines, background))
        done = tuple(Completed(0 if line in self.answers else 1, self.answers.get(line, b""), b"") for line in lines)
        watched = Completed(0, b"watched\n", b"") if watcher else None
        return _Run(Results(done, (LOAD_PID,), (b"",), self.samples, watched, self.costs))


READ = "sh -c head -n 1000000 /dev/null /proc/one /sys/*/two 2>/dev/null"
FILES = b"==> /dev/null <==\n\n==> /proc/one <==\n1\n\n==> /sys/a/two <==\n2\n"
MEASURE = f"{PROBE} timer --duration=1000ms"


def _link(samples: tuple[bytes, ...] = ()) -> tuple[DeterministicLink, _Guest]:
    guest = _Guest(
        {
            "busybox --list": b"cat\nsh\nod\n",
            READ: FILES,
            "od x": b"7",
            "cat /proc/z.gz": b"z",
            MEASURE: b"head\nend\n",
            "cat /etc/more": b"m",
        },
        samples,
    )
    link = DeterministicLink(cast("DeterministicGuest", guest), "deterministic")
    link.survey(["/sys/*/two", "/proc/one", "/proc/z.gz"], ["od x"])
    return link, guest


_KILLED = """
import os, signal
from pathlib import Path
from fastenough.virtual.deterministic import DeterministicGuest
from fastenough.virtual.kernels import Kernel
DeterministicGuest.initramfs = lambda *_: b""
DeterministicGuest.command_line = lambda *_: ["true"]
run = DeterministicGuest(Kernel("stock", "arm64", "6.1", Path("/"))).boot([])
print(run._directory.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_hash_of_a_guest_is_of_its_image_files_and_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"probe": b"first"}
    monkeypatch.setattr(DeterministicGuest, "initramfs", lambda *_: files["probe"])
    first, same, other = (Kernel("stock", "arm64", "6.1", tmp_path / name) for name in ("first", "same", "other"))
    for kernel, content in ((first, b"1"), (same, b"1"), (other, b"2")):
        kernel.image.parent.mkdir(parents=True)
        kernel.image.write_bytes(content)
    before = DeterministicGuest(first).sha256
    assert DeterministicGuest(same).sha256 == before
    assert DeterministicGuest(other).sha256 != before
    assert DeterministicGuest(first, "quiet").sha256 != before
    files["probe"] = b"second"
    assert DeterministicGuest(first).sha256 != before


def test_the_directory_of_a_killed_process_is_removed_by_the_next_one() -> None:
    killed = subprocess.run([sys.executable, "-c", _KILLED], stdout=subprocess.PIPE, text=True, check=False)
    directory = Path(killed.stdout.strip())
    assert killed.returncode == -signal.SIGKILL and directory.is_dir()
    make_own_directory().rmdir()
    assert not directory.exists()


def test_a_profile_takes_one_boot() -> None:
    link, guest = _link()
    assert read_matching(link, ["/proc/one", "/sys/*/two", "/proc/z.gz"]) == {
        "/proc/one": b"1\n",
        "/sys/a/two": b"2\n",
        "/proc/z.gz": b"z",
    }
    assert link.run(["od", "x"]).stdout == b"7"
    with pytest.raises(FileNotFoundError):
        link.run(["rpm", "-qa"])
    with pytest.raises(FileNotFoundError):
        link.read("/sys/b/two")
    assert len(guest.boots) == 1


def test_only_measurements_have_the_cost_model_and_the_emulator_names_it() -> None:
    read = f"sh -c head -n 1000000 /dev/null {EMULATOR_FILE} 2>/dev/null"
    answers = {read: f"==> /dev/null <==\n\n==> {EMULATOR_FILE} <==\nprogram: qemu\n".encode()}
    plain, measured = (
        _Guest(answers | {"busybox --list": b"cat\n", MEASURE: b"end\n"}, cost_model=model, costs=costs)
        for model, costs in ((None, None), (COST_MODELS["cache"], b"1,2,3\n"))
    )
    guests = [cast("DeterministicGuest", guest) for guest in (plain, measured)]
    link = DeterministicLink(guests[0], "deterministic", guests[1])
    link.survey([EMULATOR_FILE], [])
    assert link.read(EMULATOR_FILE).decode() == f"program: qemu\ncost_model: {COST_MODELS['cache'].text}\n"
    assert link.costs() is None
    link.start(MEASURE.split()).wait()
    assert link.costs() == b"1,2,3\n"
    assert (len(plain.boots), len(measured.boots)) == (1, 1)


def test_another_file_takes_one_more_boot_however_often_it_is_read() -> None:
    link, guest = _link()
    assert link.read("/etc/more") == link.read("/etc/more") == b"m"
    assert len(guest.boots) == 2


def test_each_measurement_is_a_boot_of_its_own() -> None:
    link, guest = _link()
    for _ in range(2):
        assert list(link.start(MEASURE.split()).lines()) == [b"head\n", b"end\n"]
    assert len(guest.boots) == 3


def test_a_phase_is_that_of_the_next_measurements() -> None:
    link, guest = _link()
    link.set_phase(7_416_408)
    list(link.start(MEASURE.split()).lines())
    link.set_phase(0)
    list(link.start(MEASURE.split()).lines())
    assert [beginning.phase_ns for beginning in guest.beginnings] == [0, 7_416_408, 0]
    assert work_files([], None, Beginning(phase_ns=7_416_408)) == {"work/phase": b"0.007416408\n"}
    assert work_files([], None) == {}


def test_a_setting_is_written_by_each_later_guest_until_it_is_restored() -> None:
    link, guest = _link()
    guest.answers = {**guest.answers, "sh -c cat >/proc/one": b"", "cat /proc/one": b"2\n"}
    link.write("/proc/one", b"2")
    assert link.read("/proc/one") == b"2\n"
    list(link.start(MEASURE.split()).lines())
    assert guest.beginnings[-1].settings == {"/proc/one": b"2"}
    assert work_files([], None, guest.beginnings[-1]) == {"work/setting-000": b"2", "work/place-000": b"/proc/one"}
    boots = len(guest.boots)
    link.write("/proc/one", b"1")
    list(link.start(MEASURE.split()).lines())
    assert guest.beginnings[-1].settings == {} and link.read("/proc/one") == b"1\n"
    assert len(guest.boots) == boots + 1, "what no guest writes need not be tried"


def test_a_refused_setting_is_not_written_again() -> None:
    link, guest = _link()
    with pytest.raises(OSError, match="refused"):
        link.write("/proc/one", b"3")
    list(link.start(MEASURE.split()).lines())
    assert guest.beginnings[-1].settings == {} and link.read("/proc/one") == b"1\n"
    with pytest.raises(FileNotFoundError):
        link.write("/sys/b/two", b"1")


def test_the_monitor_records_beside_the_next_measurement_only(monkeypatch: pytest.MonkeyPatch) -> None:
    link, guest = _link()
    monkeypatch.setattr(deterministic_link, "build_monitor", lambda arch: {"/bin/fastenough-monitor": b"program"})
    program = link.which(MONITOR)
    assert program is not None
    with link.watch([program, "--comm=a b"]) as finished:
        with pytest.raises(FastenoughError):
            finished()
        list(link.start(MEASURE.split()).lines())
        assert finished() == Completed(0, b"watched\n", b"")
    list(link.start(MEASURE.split()).lines())
    watcher = Watcher((program, "--comm=a b"), {"bin/fastenough-monitor": b"program"})
    assert guest.watchers[-2:] == [watcher, None]
    files = work_files([], None, AT_ONCE, watcher)
    assert files == {
        "work/watcher": b"exec /bin/fastenough-monitor '--comm=a b'\n",
        "bin/fastenough-monitor": b"program",
    }


def test_the_monitor_alone_is_in_the_guest_that_it_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    link, guest = _link()
    monkeypatch.setattr(deterministic_link, "build_monitor", lambda arch: {"/bin/fastenough-monitor": b"program"})
    program = link.which(MONITOR)
    assert program is not None
    guest.answers = {**guest.answers, f"{program} --duration=1000ms": b"head\nend\n"}
    assert list(link.start([program, "--duration=1000ms"]).lines()) == [b"head\n", b"end\n"]
    background = guest.boots[-1][1]
    assert background is not None and work_files([], background) == {
        "work/warm-up": b"0\n",
        "bin/fastenough-monitor": b"program",
    }
    with pytest.raises(NotApplicable):
        link.start([program, "--until-interrupt"])


def test_what_would_need_the_bench_is_refused() -> None:
    link, guest = _link()
    with pytest.raises(NotApplicable):
        link.which(INJECTOR)
    with pytest.raises(NotApplicable):
        link.start([PROBE, "response", "--until-interrupt"])
    link.start(MEASURE.split())
    with pytest.raises(NotApplicable):
        link.start(MEASURE.split())
    assert len(guest.boots) == 2


def test_an_interrupted_measurement_has_no_output() -> None:
    link, _ = _link()
    process = link.start(MEASURE.split())
    link.interrupt()
    assert list(process.lines()) == [] and process.wait() == 130 and not process.running


def _sample(at_s: int, ticks: int, *pids: int) -> bytes:
    def stat(pid: int, parent: int, ticks: int) -> str:
        return f"{pid} (sh) S {parent} " + " ".join(["0"] * 9) + f" {ticks} 0 0 0 " + " ".join(["0"] * 4) + f" {pid} 0"

    files = {"/dev/null": "", "/proc/uptime": f"{at_s}.00 0.00"}
    for pid in pids:
        parent, used = (1, 0) if pid == LOAD_PID else (LOAD_PID, ticks)
        files[f"/proc/{pid}/stat"] = stat(pid, parent, used)
        files[f"/proc/{pid}/status"] = STATUS.format(ticks)
        files[f"/proc/{pid}/io"] = "rchar: 0\nwchar: 0"
    return "\n".join(f"==> {path} <==\n{content}\n" for path, content in files.items()).encode()


def _load_run(samples: tuple[bytes, ...]) -> tuple[ActiveLoad, _Guest]:
    link, guest = _link(samples)
    with GuestLoad(link, SPINS, 1, 2.0) as running:
        load = ActiveLoad(LoadStated("mine"), running)
        running.warm_up(0.25, lambda seconds: True)
        list(link.start(MEASURE.split()).lines())
        assert running.head().commands == (("sh", "-c", "spin"),)
    assert link.background is None
    return load, guest


def test_a_load_is_started_with_the_measurement_and_proved_by_the_samples() -> None:
    both = (LOAD_PID, WORKER_PID)
    load, guest = _load_run((_sample(3, 10, *both), _sample(4, 80, *both), _sample(5, 150, *both)))
    lines, background = guest.boots[-1]
    assert lines == [MEASURE]
    assert background == Background((("sh", "-c", "spin"),), ("/var/tmp/fastenough-0",), 0.25)
    proof, use = load.proof(), load.follow()
    assert proof.ran and proof.cpu_time_s == 1.4 and proof.window_s == 2.0 and proof.processes == 1
    shares = [use(), use()]
    assert [share.cpu_ns if share else None for share in shares] == [700_000_000, 700_000_000]
    assert use() is None


def test_a_weak_load_and_one_that_ended_are_named() -> None:
    both = (LOAD_PID, WORKER_PID)
    weak, _ = _load_run((_sample(3, 10, *both), _sample(5, 12, *both)))
    assert not weak.proof().ran
    ended, _ = _load_run((_sample(3, 10, *both), _sample(5, 150)))
    assert any("exited too early" in reason for reason in ended.proof().reasons)


def test_a_load_of_a_guest_without_results_is_not_proved() -> None:
    link, _ = _link()
    with GuestLoad(link, SPINS, 1, 2.0) as running:
        assert ActiveLoad(LoadStated("mine"), running).proof().ran is False


def test_a_load_that_needs_a_trial_is_refused() -> None:
    link, _ = _link()
    with pytest.raises(NotApplicable):
        GuestLoad(link, Load("mine", "here", trial=("true",)), 1, 1.0)
