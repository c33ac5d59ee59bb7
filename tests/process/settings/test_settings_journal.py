# SPDX-License-Identifier: GPL-2.0-or-later
"""The journal survives full disks and sudden deaths, and nobody gets a file written by what stands in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fastenough.link import FakeLink, LocalLink
from fastenough.model import FastenoughError
from fastenough.settings import SETTINGS, Settings
from fastenough.settings.journal import Journal, JournalEntry, UnusableEntry, place_and_original
from fastenough.settings.place import FilePlace
from tests.support.presence import present
from tests.support.privileges import needs_root, own_mounts
from tests.support.processes import ROOT

pytestmark = pytest.mark.untimed

GOVERNOR = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
BOOT_ID = {"/proc/sys/kernel/random/boot_id": "aaaa\n"}


def _link() -> FakeLink:
    return FakeLink({GOVERNOR.format(cpu): "powersave\n" for cpu in (0, 1)} | BOOT_ID)


def _entry(place: Mapping[str, object], original: object = "performance", boot_id: str = "aaaa") -> JournalEntry:
    return {"boot_id": boot_id, "place": place, "original": original}


def _file(path: object) -> dict[str, Any]:
    return {"kind": "file", "path": path}


def _journal(folder: Path, *lines: object) -> Path:
    path = folder / "board.journal"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


GOOD = _entry(_file(GOVERNOR.format(1)))
HOSTILE: list[tuple[object, str]] = [
    (_entry(_file("/etc/passwd")), "no setting writes '/etc/passwd'"),
    (_entry(_file("/proc/../etc/x")), "/proc/../etc/x"),
    (_entry(_file("/sys/devices/system/cpu/../cpufreq/scaling_governor")), "no setting writes"),
    (_entry(_file("/proc/sysrq-trigger"), "b"), "no setting writes"),
    (_entry(_file("/proc/sys/kernel/core_pattern"), "|/tmp/x"), "no setting writes"),
    (_entry(_file("/proc/self/root/etc/passwd")), "no setting writes"),
    (_entry(_file("/sys/devices/system/cpu/cpu0/x/scaling_governor")), "no setting writes"),
    (_entry(_file(GOVERNOR.format(0)), ["a"]), "invalid original:"),
    (_entry(_file(GOVERNOR.format(0)), "a\0b"), "invalid original:"),
    (_entry(_file(GOVERNOR.format(0)), None), "invalid original:"),
    (_entry(_file(7)), "invalid path: 7"),
    (_entry(_file(GOVERNOR.format(0) + "\0")), "invalid path:"),
    (_entry({"kind": "file"}), "invalid path: None"),
    (_entry({"kind": "else"}), "unknown kind of place: 'else'"),
    (_entry({"kind": ["file"]}), "unknown kind of place"),
    (_entry({"kind": "task", "tid": -1, "start_ticks": 0, "comm": "x"}, "fifo:1"), "invalid tid: -1"),
    (_entry({"kind": "task", "tid": 10**30, "start_ticks": 0, "comm": "x"}, "fifo:1"), "invalid tid:"),
    (_entry({"kind": "task", "tid": 1, "start_ticks": 0, "comm": "x"}, "fifo"), "invalid original: 'fifo'"),
    (_entry({"kind": "pin", "number": 1, "name": "x"}, "high"), "invalid original:"),
    (_entry({"kind": "module", "name": "-f x"}, "absent"), "invalid name:"),
    (_entry({"kind": "module", "name": "x"}, "present"), "invalid original:"),
    (_entry({"kind": "trace"}, "present"), "invalid original:"),
    (_entry({}) | {"place": "somewhere"}, "not an entry of a setting"),
    ([1, 2], "not an entry of a setting"),
    ("garbage \x1b[31m", "not an entry of a setting"),
    ("[" * 100_000, "not an entry of a setting"),
]


@pytest.mark.parametrize(("line", "reason"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_no_setting_noted_is_skipped_and_named(tmp_path: Path, line: object, reason: str) -> None:
    written: list[str] = []

    class Watched(FakeLink):
        def write(self, path: str, content: bytes) -> None:
            written.append(path)

    link = Watched({GOVERNOR.format(cpu): "powersave\n" for cpu in (0, 1)} | BOOT_ID)
    journal = _journal(tmp_path, line, GOOD)
    settings = Settings(link, journal)
    assert written == [GOVERNOR.format(1)]
    assert len(settings.restored) == 1
    [told] = settings.warnings
    assert reason in told and str(journal) in told
    assert told.isprintable()
    assert journal.read_bytes() == b""
    assert len(Path(f"{journal}.damaged").read_text().splitlines()) == 1


def test_a_link_that_leads_out_of_proc_and_sys_is_refused() -> None:
    with pytest.raises(UnusableEntry, match="leads to '/etc/passwd', outside"):
        place_and_original(_entry(_file("/proc/self/root/etc/passwd")), LocalLink(), ["/proc/self/root/*/*"])


def test_a_file_of_this_machine_is_not_written(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("as it was")
    boot_id = LocalLink().read("/proc/sys/kernel/random/boot_id").decode().strip()
    settings = Settings(LocalLink(), _journal(tmp_path, _entry(_file(str(target)), "changed", boot_id)))
    assert target.read_text() == "as it was"
    assert len(settings.warnings) == 1


def test_a_value_the_kernel_never_takes_does_not_bar_the_way_for_ever(tmp_path: Path) -> None:
    class Strict(FakeLink):
        def write(self, path: str, content: bytes) -> None:
            raise OSError(22, "Invalid argument")

    link = Strict({GOVERNOR.format(1): "powersave\n"} | BOOT_ID)
    journal = _journal(tmp_path, _entry(_file(GOVERNOR.format(1)), "no-such-governor"))
    with Settings(link, journal) as settings:
        assert "cannot have been 'no-such-governor'" in settings.warnings[0]
    with Settings(link, journal) as settings:
        assert settings.warnings == []


ZERO_OR_ONE = {
    "timer-migration": "/proc/sys/kernel/timer_migration",
    "numa-balancing": "/proc/sys/kernel/numa_balancing",
    "page-merging": "/sys/kernel/mm/ksm/run",
    "nmi-watchdog": "/proc/sys/kernel/nmi_watchdog",
    "soft-watchdog": "/proc/sys/kernel/soft_watchdog",
    "split-lock-penalty": "/proc/sys/kernel/split_lock_mitigate",
}
ONE_NUMBER = ZERO_OR_ONE | {
    "swappiness": "/proc/sys/vm/swappiness",
    "compaction": "/proc/sys/vm/compaction_proactiveness",
    "stat-interval": "/proc/sys/vm/stat_interval",
}


def test_every_setting_names_the_files_it_writes(tmp_path: Path) -> None:
    cpu = "/sys/devices/system/cpu"
    link = FakeLink(
        {
            GOVERNOR.format(0): "powersave",
            f"{cpu}/cpu0/cpufreq/scaling_available_governors": "performance powersave",
            f"{cpu}/cpu0/cpuidle/state2/latency": "99",
            f"{cpu}/cpu0/cpuidle/state2/disable": "0",
            "/proc/sys/kernel/sched_rt_runtime_us": "950000",
            f"{cpu}/online": "0-1",
            "/sys/kernel/mm/transparent_hugepage/enabled": "[always] never",
            "/proc/irq/9/smp_affinity_list": "0-1",
            f"{cpu}/cpu0/cpufreq/energy_performance_preference": "power",
            f"{cpu}/cpu0/cpufreq/energy_performance_available_preferences": "performance power",
            "/proc/sys/kernel/printk": "7\t4\t1\t7",
            "/sys/kernel/debug/sched/preempt": "none voluntary full",
        }
        | dict.fromkeys(ONE_NUMBER.values(), "1")
        | BOOT_ID
    )
    all_requested: dict[str, str | int] = {
        "governor": "performance",
        "idle-latency": 1,
        "rt-throttling": -1,
        "transparent-huge-pages": "never",
        "irq-affinity": "0",
        "energy-preference": "performance",
        "console-level": "4\t4\t1\t7",
        "preemption": "full",
        **dict.fromkeys(ONE_NUMBER, 7),
        **dict.fromkeys(ZERO_OR_ONE, 0),
    }
    assert set(all_requested) == {name for name, setting in SETTINGS.items() if setting.files}
    with Settings(link, tmp_path / "journal") as settings:
        for name, requested in all_requested.items():
            made = settings.apply(name, str(requested).partition("\t")[0])
            assert [entry.in_effect for entry in made] == [str(requested)], name


def test_what_could_not_be_put_back_is_not_changed(tmp_path: Path) -> None:
    link = FakeLink({"/proc/other": "1"} | BOOT_ID)
    with Settings(link, tmp_path / "journal") as settings:
        entry = settings._set("other", FilePlace("/proc/other"), "2")
    assert entry.in_effect == "1" and "could not be restored" in present(entry.reason, "reason")
    assert link.read("/proc/other") == b"1"


def _run(script: str, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


_FILL = """
import sys
from pathlib import Path
from fastenough.model import FastenoughError
from fastenough.settings.journal import Journal
journal = Journal(Path(sys.argv[1]))
noted = 0
try:
    while noted < 10_000:
        journal.append({"boot_id": "aaaa", "place": {"kind": "file", "path": "/" + "x" * 700}, "original": str(noted)})
        noted += 1
except FastenoughError as error:
    print(error)
journal.close()
again = Journal(Path(sys.argv[1]))
entries, damaged = again.entries(), again.damaged()
print(noted, len(entries), len(damaged), [entry["original"] for entry in entries] == [str(n) for n in range(noted)])
"""


def test_on_a_full_disk_what_was_noted_can_be_read(tmp_path: Path) -> None:
    mount = f'mount -t tmpfs -o size=16k,mode=700 none {tmp_path} && exec "$@"'
    done = _run(_FILL, str(tmp_path / "journal"), before=(*own_mounts(as_user=True), "sh", "-c", mount, "sh"))
    full, counted = done.stdout.splitlines()
    assert "No space left on device; nothing was changed" in full
    noted_there, readable, damaged, same = counted.split()
    assert int(noted_there) == int(readable) > 5
    assert (damaged, same) == ("0", "True")


_DIE = """
import os, signal, sys
from pathlib import Path
import fastenough.files
from fastenough.settings.journal import Journal
journal = Journal(Path(sys.argv[1]))
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(*{"write": (os, "fsync"), "rename": (Path, "rename")}[sys.argv[2]], die)
journal.replace([{"place": {}, "original": "last"}])
"""


@pytest.mark.parametrize("where", ["write", "rename"])
def test_a_death_while_it_is_replaced_loses_nothing(tmp_path: Path, where: str) -> None:
    path = _journal(tmp_path, *(_entry({}, str(number)) for number in range(20)))
    assert _run(_DIE, str(path), where).returncode == -signal.SIGKILL
    journal = Journal(path)
    entries, damaged = journal.entries(), journal.damaged()
    journal.close()
    assert [entry["original"] for entry in entries] == [str(number) for number in range(20)]
    assert damaged == []
    assert {file.name for file in tmp_path.iterdir()} == {path.name, f"{path.name}.lock"}


def test_a_torn_last_line_is_cut_off_before_the_next(tmp_path: Path) -> None:
    path = _journal(tmp_path, _entry({}, "whole"))
    with path.open("a") as stream:
        stream.write('{"boot_id": "aa')
    journal = Journal(path)
    journal.append(_entry({}, "next"))
    entries, damaged = journal.entries(), journal.damaged()
    journal.close()
    assert [entry["original"] for entry in entries] == ["whole", "next"]
    assert damaged == []


def test_it_stays_locked_when_it_was_replaced(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(_entry({}))
    journal.replace([])
    with pytest.raises(FastenoughError, match="another fastenough is measuring"):
        Journal(tmp_path / "journal")
    journal.close()
    Journal(tmp_path / "journal").close()


def test_nobody_else_may_write_where_it_lies(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Journal(tmp_path / "state" / "fastenough" / "journal").close()
    finally:
        os.umask(before)
    folder = tmp_path / "state"
    assert [place.stat().st_mode & 0o777 for place in (folder, folder / "fastenough")] == [0o700, 0o700]
    assert {file.stat().st_mode & 0o777 for file in (folder / "fastenough").iterdir()} == {0o600}


def test_what_another_user_could_have_written_is_not_trusted(tmp_path: Path) -> None:
    path = _journal(tmp_path, GOOD)
    path.chmod(0o666)
    with pytest.raises(FastenoughError, match="not trusted"):
        Journal(path)
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(FastenoughError, match="not trusted"):
        Journal(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FastenoughError, match="not trusted"):
        Journal(path)
    path.unlink()
    tmp_path.chmod(0o777)
    with pytest.raises(FastenoughError, match="can be written by other users"):
        Journal(path)
    tmp_path.chmod(0o700)


@needs_root("it gives files away")
def test_the_journal_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    path = _journal(tmp_path, GOOD)
    os.chown(path, 65534, 65534)
    with pytest.raises(FastenoughError, match="not trusted"):
        Settings(_link(), path)
    path.unlink()
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(FastenoughError, match="belongs to user 65534"):
        Settings(_link(), path)
    os.chown(tmp_path, 0, 0)
