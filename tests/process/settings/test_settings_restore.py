# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings are read back, and put back whatever happens to the bench."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fastenough.facts.cpu import list_form
from fastenough.link import FakeLink, LocalLink
from fastenough.link.base import Completed
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.recording.head import RecordedSetting
from fastenough.recording.parsing import changes
from fastenough.settings import SETTINGS, STATE_SETTING, Settings, default_journal, restore, run_journal, unrestored
from fastenough.settings.place import FilePlace, TaskPlace, start_ticks
from fastenough.settings.setting import Requested
from tests.support.huge_pages import HUGE_PAGES, other_value
from tests.support.presence import present
from tests.support.privileges import needs_root, require_root
from tests.support.processes import eventually, start_bench

CPUFREQ = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_{}"
IDLE = "/sys/devices/system/cpu/cpu0/cpuidle/state{}/{}"
BOOT_ID = {"/proc/sys/kernel/random/boot_id": "aaaa\n"}
ONLINE = {"/sys/devices/system/cpu/online": "0-1\n"}


def _governors() -> FakeLink:
    files = {CPUFREQ.format(cpu, "governor"): "powersave\n" for cpu in (0, 1)}
    files[CPUFREQ.format(0, "available_governors")] = "performance powersave\n"
    return FakeLink(files | BOOT_ID | ONLINE)


def _value(link: FakeLink | LocalLink, path: str) -> str:
    return link.read(path).decode().strip()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A task of real-time priority 20 that does nothing."""
    require_root("real-time priorities")
    process = subprocess.Popen(["sleep", "1000"])
    try:
        os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(20))
    except PermissionError:
        process.kill()
        process.wait()
        pytest.skip("may not use real-time priorities")
    yield process
    process.kill()
    process.wait()


def test_governor_is_set_read_back_and_put_back(tmp_path: Path) -> None:
    link = _governors()
    with Settings(link, tmp_path / "journal") as settings:
        entries = settings.apply("governor", "performance")
        assert entries == [RecordedSetting("governor", "performance", "performance", cpu) for cpu in (0, 1)]
        assert _value(link, CPUFREQ.format(1, "governor")) == "performance"
    assert _value(link, CPUFREQ.format(0, "governor")) == _value(link, CPUFREQ.format(1, "governor")) == "powersave"
    assert (tmp_path / "journal").read_bytes() == b""


def test_the_governor_of_a_cpu_that_is_offline_is_left(tmp_path: Path) -> None:
    """As with SMT switched off: the kernel answers EBUSY."""

    class Busy(FakeLink):
        def read(self, path: str) -> bytes:
            if path.startswith("/sys/devices/system/cpu/cpu0/"):
                raise OSError(16, "Device or resource busy")
            return super().read(path)

    files = {CPUFREQ.format(cpu, "governor"): "powersave\n" for cpu in (0, 1)}
    offered = {CPUFREQ.format(cpu, "available_governors"): "performance powersave\n" for cpu in (0, 1)}
    with Settings(Busy(files | offered | BOOT_ID | dict.fromkeys(ONLINE, "1\n")), tmp_path / "journal") as settings:
        entries = settings.apply("governor", "performance")
    assert entries == [RecordedSetting("governor", "performance", "performance", 1)]


def test_a_governor_of_offline_cpus_only_is_not_applicable(tmp_path: Path) -> None:
    files = {CPUFREQ.format(0, "governor"): "powersave\n", CPUFREQ.format(0, "available_governors"): "performance\n"}
    link = FakeLink(files | BOOT_ID | dict.fromkeys(ONLINE, "1\n"))
    with Settings(link, tmp_path / "journal") as settings, pytest.raises(NotApplicable):
        settings.apply("governor", "performance")


def test_idle_states_deeper_than_allowed_are_disabled(tmp_path: Path) -> None:
    files = BOOT_ID.copy()
    for state, latency_us in ((0, 0), (1, 2), (2, 133)):
        files |= {IDLE.format(state, "latency"): f"{latency_us}\n", IDLE.format(state, "disable"): "0\n"}
    link = FakeLink(files)
    with Settings(link, tmp_path / "journal") as settings:
        entries = settings.apply("idle-latency", 10)
        assert [(entry.name, entry.in_effect) for entry in entries] == [("idle-latency state2", "1")]
    assert _value(link, IDLE.format(2, "disable")) == "0"


def test_what_the_kernel_refuses_is_recorded_as_it_is(tmp_path: Path) -> None:
    class Stubborn(FakeLink):
        def write(self, path: str, content: bytes) -> None:
            raise OSError(5, "Input/output error")

    irq = "/proc/irq/9/smp_affinity_list"
    link = Stubborn({irq: "0-1\n", "/sys/devices/system/cpu/online": "0-1\n"} | BOOT_ID)
    with Settings(link, tmp_path / "journal") as settings:
        [entry] = settings.apply("irq-affinity", "0")
    assert entry == RecordedSetting("irq-affinity 9", "0", "0-1", reason="refused: Input/output error")


def test_not_applicable_has_its_reason(tmp_path: Path) -> None:
    with Settings(FakeLink(BOOT_ID), tmp_path / "journal") as settings:
        with pytest.raises(NotApplicable, match="no cpufreq driver"):
            settings.apply("governor", "performance")
        [entry] = settings.apply_all({"timer-threads": 99})
    assert entry.in_effect is None
    assert "not applicable" in present(entry.reason, "reason")


@pytest.mark.parametrize(
    ("name", "requested"),
    [
        ("governor", "fastest"),
        ("idle-latency", -1),
        ("rt-throttling", "all"),
        ("transparent-huge-pages", "some"),
        ("irq-affinity", "7-9"),
        ("irq-affinity", "x"),
        ("rt-ceiling", 0),
        ("rt-ceiling", 100),
        ("irq-threads", "high"),
        ("timer-threads", True),
        ("control-priority", 0),
        ("housekeeping", "first"),
        ("housekeeping", "7"),
        ("no-such-setting", 1),
    ],
)
def test_values_that_cannot_be(tmp_path: Path, name: str, requested: str | int) -> None:
    files = {
        CPUFREQ.format(0, "governor"): "powersave",
        CPUFREQ.format(0, "available_governors"): "powersave",
        "/sys/devices/system/cpu/online": "0-1",
        "/proc/irq/1/smp_affinity_list": "0",
    }
    with Settings(FakeLink(files | BOOT_ID), tmp_path / "journal") as settings, pytest.raises(BadInput, match=name):
        settings.apply(name, requested)


@needs_root("it changes settings")
def test_huge_pages_of_this_machine(tmp_path: Path, huge_pages: None) -> None:
    before, requested = HUGE_PAGES.read_text(), other_value()
    with Settings(LocalLink(), tmp_path / "journal") as settings:
        [entry] = settings.apply("transparent-huge-pages", requested)
        assert entry.in_effect == requested
        assert f"[{requested}]" in HUGE_PAGES.read_text()
    assert HUGE_PAGES.read_text() == before


def test_a_task_is_lowered_and_put_back(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    link = LocalLink()
    ticks = start_ticks(link, sleeper.pid)
    assert ticks is not None
    place = TaskPlace(sleeper.pid, ticks, "sleep")
    assert place.read(link) == "fifo:20"
    steps = SETTINGS["rt-ceiling"].steps(link, 5)
    assert (place, "fifo:5") in steps
    assert not any(step[0].tid == os.getpid() for step in steps if isinstance(step[0], TaskPlace))
    with Settings(link, tmp_path / "journal") as settings:
        settings._set("rt-ceiling", place, "fifo:5")
        assert os.sched_getparam(sleeper.pid).sched_priority == 5
    assert os.sched_getparam(sleeper.pid).sched_priority == 20


def test_a_task_that_has_ended_needs_no_putting_back(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    link = LocalLink()
    place = TaskPlace(sleeper.pid, start_ticks(link, sleeper.pid) or 0, "sleep")
    with Settings(link, tmp_path / "journal") as settings:
        settings._set("rt-ceiling", place, "fifo:5")
        sleeper.kill()
        sleeper.wait()
    assert (tmp_path / "journal").read_bytes() == b""


def test_control_priority_is_the_benchs_own(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    before = os.sched_getscheduler(0)
    with Settings(LocalLink(), tmp_path / "journal") as settings:
        [entry] = settings.apply("control-priority", 10)
        assert (entry.in_effect, entry.thread) == ("fifo:10:reset", "bench")
        assert os.sched_getparam(0).sched_priority == 10
        answer = LocalLink().run(["chrt", "-p", "0"]).text
        assert "SCHED_OTHER" in answer
    assert os.sched_getscheduler(0) == before


def test_housekeeping_is_the_benchs_own(tmp_path: Path) -> None:
    """What it starts may use every CPU that it could use before: the probe and its load are not the bench."""
    before = os.sched_getaffinity(0)
    with Settings(LocalLink(), tmp_path / "journal") as settings:
        (entry,) = settings.apply("housekeeping", min(before))
        assert (entry.in_effect, entry.thread) == (str(min(before)), "bench")
        threads = [int(thread.name) for thread in Path("/proc/self/task").iterdir()]
        assert all(os.sched_getaffinity(thread) == {min(before)} for thread in threads)
        assert LocalLink().run(["sh", "-c", "grep Cpus_allowed_list /proc/$$/status"]).text.split()[1] == (
            list_form(set(before))
        )
    assert os.sched_getaffinity(0) == before


_BENCH = """
import sys, time
from pathlib import Path
from fastenough.link import LocalLink
from fastenough.settings import Settings
from fastenough.settings.place import TaskPlace, start_ticks
link = LocalLink()
settings = Settings(link, Path(sys.argv[1]))
print("open", flush=True)
pid = int(sys.argv[2])
place = TaskPlace(pid, start_ticks(link, pid), "sleep")
for priority in range(1, 90):
    settings._set("rt-ceiling", place, f"fifo:{priority}")
    print(priority, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_the_next_bench_puts_back_what_is_left(tmp_path: Path, sleeper: subprocess.Popen[bytes], steps: int) -> None:
    journal = tmp_path / "journal"
    bench = start_bench(_BENCH, str(journal), str(sleeper.pid))
    assert bench.stdout is not None
    for _ in range(steps + 1):
        bench.stdout.readline()
    bench.send_signal(signal.SIGKILL)
    bench.communicate()
    time.sleep(0.2)
    if steps:
        assert os.sched_getparam(sleeper.pid).sched_priority != 20
    with Settings(LocalLink(), journal):
        assert os.sched_getparam(sleeper.pid).sched_priority == 20
    assert journal.read_bytes() == b""


def test_two_benches_at_once(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    journal = tmp_path / "journal"
    bench = start_bench(_BENCH, str(journal), str(sleeper.pid))
    assert bench.stdout is not None
    bench.stdout.readline()
    bench.send_signal(signal.SIGSTOP)
    assert eventually(lambda: "(stopped)" in Path(f"/proc/{bench.pid}/status").read_text())
    with pytest.raises(FastenoughError, match="another fastenough is measuring") as caught:
        Settings(LocalLink(), journal)
    assert "\n" not in str(caught.value)
    assert f"(process {bench.pid} (" in str(caught.value) and ", stopped: kill -CONT" in str(caught.value)
    bench.kill()
    bench.communicate()


def test_benches_of_two_users_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a journal of his own, and would restore what the other one has set."""
    own = [tmp_path / "first" / "local.journal", tmp_path / "second" / "local.journal"]
    monkeypatch.setattr("fastenough.settings.journal._MACHINE", tmp_path)
    user = iter([own[0], own[1], own[1], own[1]])
    monkeypatch.setattr("fastenough.settings.default_journal", lambda link: next(user))
    monkeypatch.delenv(STATE_SETTING)
    with Settings(LocalLink()):
        with pytest.raises(FastenoughError, match="another fastenough is measuring"):
            Settings(LocalLink())
        with pytest.raises(FastenoughError, match="another fastenough is measuring"):
            Settings(LocalLink(), own[1])
    with Settings(LocalLink()) as settings:
        assert settings.restored == ()


def _noted(boot_id: str, original: str) -> bytes:
    place = FilePlace(CPUFREQ.format(0, "governor")).entry()
    return json.dumps({"boot_id": boot_id, "place": place, "original": original}).encode() + b"\n"


def test_first_original_wins(tmp_path: Path) -> None:
    link = _governors()
    (tmp_path / "journal").write_bytes(_noted("aaaa", "first") + _noted("aaaa", "second") + b'{"boot_id": "aa')
    settings = Settings(link, tmp_path / "journal")
    assert len(settings.restored) == 2
    assert _value(link, CPUFREQ.format(0, "governor")) == "first"


class _WithoutBootId(FakeLink):
    """A board whose boot id cannot be read at first."""

    failures = 1

    def read(self, path: str) -> bytes:
        if path in BOOT_ID and self.failures:
            self.failures -= 1
            raise OSError(24, "Too many open files")
        return super().read(path)


def test_original_values_of_an_unknown_boot_are_neither_restored_nor_discarded(tmp_path: Path) -> None:
    path = CPUFREQ.format(0, "governor")
    link = _WithoutBootId({path: "powersave\n"} | BOOT_ID)
    journal = tmp_path / "journal"
    content = _noted("bbbb", "other") + _noted("aaaa", "original")
    journal.write_bytes(content)
    with pytest.raises(FastenoughError, match=r"lists 2 original values, .*boot_id cannot be read; make it readable"):
        Settings(link, journal)
    assert journal.read_bytes() == content and _value(link, path) == "powersave"
    link.failures = 1
    with pytest.raises(FastenoughError, match="boot_id cannot be read"):
        unrestored(link, journal)
    assert unrestored(link, journal) == (path,)
    assert Settings(link, journal).restored == (path,)
    assert journal.read_bytes() == b"" and _value(link, path) == "original"


def test_nothing_is_changed_in_an_unknown_boot(tmp_path: Path) -> None:
    """Whether it would have to be restored could not be known later."""
    link = _WithoutBootId({CPUFREQ.format(0, "governor"): "powersave\n"} | BOOT_ID | ONLINE)
    link.write(CPUFREQ.format(0, "available_governors"), b"performance powersave\n")
    with Settings(link, tmp_path / "journal") as settings:
        (entry,) = settings.apply("governor", "performance")
    assert (entry.in_effect, (entry.reason or "").split(":")[0]) == (
        "powersave",
        f"not changed, because {next(iter(BOOT_ID))} cannot be read",
    )
    assert _value(link, CPUFREQ.format(0, "governor")) == "powersave"


@pytest.mark.parametrize("by", ["the next campaign", "doctor"])
def test_what_a_run_changed_is_put_back_before_what_its_campaign_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Both were killed: the run's journal has the campaign's value as the original."""
    monkeypatch.setenv(STATE_SETTING, str(tmp_path))
    link = _governors()
    journal, path = default_journal(link), CPUFREQ.format(0, "governor")
    for of, original in ((journal, "powersave"), (run_journal(journal), "performance")):
        entry = {"boot_id": "aaaa", "place": FilePlace(path).entry(), "original": original}
        of.write_text(json.dumps(entry) + "\n")
        of.chmod(0o600)
    link.write(path, b"schedutil")
    if by == "doctor":
        assert restore(link) == [path, path]
    else:
        with Settings(link) as settings:
            assert settings.restored == (path, path)
    assert _value(link, path) == "powersave"
    assert journal.read_bytes() == run_journal(journal).read_bytes() == b""


class _SpeedGovernor(FakeLink):
    """As Linux does: another governor forgets the speed, and only `userspace` takes one."""

    def write(self, path: str, content: bytes) -> None:
        speed = path.replace("governor", "setspeed")
        if path == speed and self.read(path.replace("setspeed", "governor")) != b"userspace":
            raise OSError(22, "Invalid argument")
        super().write(path, content)
        if path != speed:
            super().write(speed, b"2000000" if content == b"userspace" else b"<unsupported>")


@pytest.mark.parametrize("requested", ["performance", "userspace"])
def test_the_speed_of_the_governor_userspace_is_put_back(tmp_path: Path, requested: str) -> None:
    speeds = {0: "1200000", 1: "1500000"}
    files = {CPUFREQ.format(cpu, "governor"): "userspace" for cpu in speeds}
    files |= {CPUFREQ.format(cpu, "available_governors"): "performance userspace" for cpu in speeds}
    files |= {CPUFREQ.format(cpu, "setspeed"): speed for cpu, speed in speeds.items()}
    link = _SpeedGovernor(files | BOOT_ID | ONLINE)
    with Settings(link, tmp_path / "journal") as settings:
        entries = settings.apply("governor", requested)
        assert entries == [RecordedSetting("governor", requested, requested, cpu) for cpu in (0, 1)]
    for cpu, speed in speeds.items():
        assert _value(link, CPUFREQ.format(cpu, "governor")) == "userspace"
        assert _value(link, CPUFREQ.format(cpu, "setspeed")) == speed


class _Refusing(FakeLink):
    """Refuses what is written to a file, as often as stated."""

    refused: str = ""
    times: int = 0

    def write(self, path: str, content: bytes) -> None:
        if path == self.refused and self.times:
            self.times -= 1
            raise PermissionError(13, "Permission denied")
        super().write(path, content)


@pytest.mark.parametrize("same", [False, True])
def test_a_value_of_a_run_that_cannot_be_put_back_keeps_none_of_its_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """Of the same file, the value of before the campaign is the one to have, also when it is tried again."""
    monkeypatch.setenv(STATE_SETTING, str(tmp_path))
    of_campaign, of_run = (CPUFREQ.format(cpu, "governor") for cpu in (0, 0 if same else 1))
    link = _Refusing({path: "performance" for path in (of_campaign, of_run)} | BOOT_ID)
    link.refused, link.times = of_run, 1
    journal = default_journal(link)
    for of, path, original in ((journal, of_campaign, "ondemand"), (run_journal(journal), of_run, "schedutil")):
        entry = {"boot_id": "aaaa", "place": FilePlace(path).entry(), "original": original}
        of.write_text(json.dumps(entry) + "\n")
        of.chmod(0o600)
    with pytest.raises(FastenoughError, match="doctor --restore, as root or with sudo"):
        restore(link)
    assert (_value(link, of_campaign), _value(link, of_run)) == ("ondemand", "ondemand" if same else "performance")
    assert restore(link) == ([] if same else [of_run])
    assert (_value(link, of_campaign), _value(link, of_run)) == ("ondemand", "ondemand" if same else "schedutil")


def test_the_speed_of_a_governor_waits_for_it(tmp_path: Path) -> None:
    """Without the governor the kernel takes no speed."""
    governor, speed = (CPUFREQ.format(0, name) for name in ("governor", "setspeed"))
    available = {CPUFREQ.format(0, "available_governors"): "performance userspace\n"}
    link = _Refusing({governor: "userspace", speed: "1200000"} | available | BOOT_ID | ONLINE)
    settings = Settings(link, tmp_path / "journal")
    settings.apply("governor", "performance")
    link.write(speed, b"0")
    link.refused, link.times = governor, 1
    with pytest.raises(FastenoughError, match="doctor --restore, as root or with sudo"), settings:
        pass
    assert _value(link, speed) == "0"
    with Settings(link, tmp_path / "journal") as later:
        assert set(later.restored) == {governor, speed} and later.warnings == []
    assert (_value(link, governor), _value(link, speed)) == ("userspace", "1200000")


def test_after_a_reboot_there_is_nothing_to_put_back(tmp_path: Path) -> None:
    link = _governors()
    (tmp_path / "journal").write_bytes(_noted("before the reboot", "other"))
    Settings(link, tmp_path / "journal")
    assert _value(link, CPUFREQ.format(0, "governor")) == "powersave"


def test_what_cannot_be_put_back_stays_noted(tmp_path: Path) -> None:
    class ReadOnly(FakeLink):
        def write(self, path: str, content: bytes) -> None:
            raise PermissionError(13, "Permission denied")

    path = CPUFREQ.format(0, "governor")
    (tmp_path / "journal").write_bytes(_noted("aaaa", "ondemand"))
    with pytest.raises(FastenoughError, match="doctor --restore, as root or with sudo"):
        Settings(ReadOnly({path: "performance"} | BOOT_ID), tmp_path / "journal")
    link = FakeLink({path: "performance"} | BOOT_ID)
    Settings(link, tmp_path / "journal")
    assert _value(link, path) == "ondemand"


def test_no_journal_no_change(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FastenoughError, match="is not a directory"):
        Settings(FakeLink(BOOT_ID), tmp_path / "file" / "journal")


def test_a_disk_that_takes_no_more_changes_nothing(tmp_path: Path) -> None:
    link = _governors()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    settings = Settings(link, tmp_path / "journal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(FastenoughError, match="nothing was changed"):
            settings.apply("governor", "performance")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert _value(link, CPUFREQ.format(0, "governor")) == "powersave"


def test_one_journal_per_board(state_directory: Path) -> None:
    assert default_journal(LocalLink()) == state_directory / "local.journal"
    assert default_journal(FakeLink({})) != default_journal(LocalLink())


def test_boards_that_end_with_their_benches_do_not_lock_each_other_out(tmp_path: Path) -> None:
    """Two guests of one kernel have one name and two journals."""
    first, second = FakeLink(BOOT_ID), FakeLink(BOOT_ID)
    first.own_directory, second.own_directory = tmp_path / "first", tmp_path / "second"
    with Settings(first), Settings(second):
        assert default_journal(first) == tmp_path / "first" / "fake.journal"
        assert default_journal(second) == tmp_path / "second" / "fake.journal"


def test_the_thread_of_an_input_has_one_name_in_recordings() -> None:
    """The kernel truncates it, after more or fewer digits of the interrupt; another thread is named as it is."""
    fields = " ".join(["S", *["0"] * 18, "7", *["0"] * 17, "50", "1", *["0"] * 10])
    names = {1: "irq/9-fastenoug", 2: "irq/123-fasteno", 3: "irq/45-gpio-fan"}
    stats = {f"/proc/{tid}/task/{tid}/stat": f"{tid} ({name}) {fields}\n" for tid, name in names.items()}
    places = [place for place, _ in SETTINGS["irq-threads"].steps(FakeLink(stats, {"chrt": ""}), 60)]
    assert [dict(place.label()) for place in places] == [
        {"thread": "fasten"},
        {"thread": "fasten"},
        {"thread": "irq/45-gpio-fan (3)"},
    ]


class _TaskLink(FakeLink):
    """One interrupt thread of this priority, whose scheduling can be changed."""

    def __init__(self, priority: int) -> None:
        super().__init__(BOOT_ID, {"chrt": ""})
        self.set_priority(priority)

    def set_priority(self, priority: int) -> None:
        fields = " ".join(["S", *["0"] * 5, str(0x00200000), *["0"] * 12, "7", *["0"] * 17, str(priority), "1"])
        for path in ("/proc/3/stat", "/proc/3/task/3/stat"):
            self.write(path, f"3 (irq/45-gpio) {fields}\n".encode())

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        assert argv[:3] == ["chrt", "-f", "-p"]
        self.set_priority(int(argv[3]))
        return Completed(0, b"", b"")


def test_a_place_of_two_settings_has_the_value_of_the_later_one(tmp_path: Path) -> None:
    """Also if the later one is of a run within the campaign."""
    link = _TaskLink(50)
    both: dict[str, Requested] = {"rt-ceiling": 5, "irq-threads": "99:gpio"}
    with Settings(link, tmp_path / "journal") as settings:
        before = settings.apply_all(both)
        assert [entry.in_effect for entry in before] == ["fifo:5", "fifo:99"]
        after = settings.read_again()
        assert [(entry.name, entry.in_effect) for entry in after] == [("irq-threads", "fifo:99")]
        assert not list(changes(before, after))
        with Settings(link, tmp_path / "run") as of_run:
            of_run.apply("irq-threads", 60)
            assert settings.read_again(of_run.places) == []
        link.set_priority(1)
        assert [change.after for change in changes(before, settings.read_again())] == ["fifo:1"]
    assert link.read("/proc/3/stat").split()[39:40] == [b"50"]


@pytest.mark.parametrize("error", [FileNotFoundError(2, "no such file"), OSError(16, "busy")])
def test_a_value_that_cannot_be_read_again_has_not_changed(tmp_path: Path, error: OSError) -> None:
    """As of a CPU that went offline."""
    link = _governors()
    with Settings(link, tmp_path / "journal") as settings:
        before = settings.apply("governor", "performance")
        with pytest.MonkeyPatch.context() as patch:
            read = link.read

            def read_other(path: str) -> bytes:
                if path == CPUFREQ.format(0, "governor"):
                    raise error
                return read(path)

            patch.setattr(link, "read", read_other)
            after = settings.read_again()
    assert [entry.cpu for entry in after] == [1]
    assert not list(changes(before, after))


def test_every_setting_says_what_it_is() -> None:
    assert all(setting.summary and setting.name == name for name, setting in SETTINGS.items())
