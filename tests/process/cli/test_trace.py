# SPDX-License-Identifier: GPL-2.0-or-later
"""A value above a threshold ends the run, and what the kernel did before it is kept, drawn and summed up."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.analysis.trace import Trace, TraceKind, read_trace, shares
from fastenough.campaign import read_plan
from fastenough.campaign.plan import BREAK
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.settings.tracing import INSTANCE, TRACEFS
from fastenough.store import Store
from tests.support.cli_calls import command_line, environment
from tests.support.ordinary_user import ordinary_user
from tests.support.privileges import own_mounts

HOG_COMM = "rt-hog"
_HOG = f"""
import os, time
open("/proc/self/comm", "w").write({HOG_COMM!r})
os.sched_setaffinity(0, {{0}})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
while True:
    time.sleep(1)
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        pass
"""
_KILLED = """
import os, signal, sys
from pathlib import Path
from fastenough.link import LocalLink
from fastenough.settings import Settings
settings = Settings(LocalLink(), Path(sys.argv[1]))
print(settings.apply("trace", 64)[0].in_effect, os.path.isdir(sys.argv[2]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
_RESTORED = """
import sys
from pathlib import Path
from fastenough.link import LocalLink
from fastenough.settings import Settings
print(*Settings(LocalLink(), Path(sys.argv[1])).restored)
"""
_MOUNTED = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    f'[ -d {TRACEFS}/instances ] || mount -t tracefs tracefs {TRACEFS} && exec "$@"',
    "sh",
]
"""Before a command: it sees tracefs, wherever this machine has it, and nobody else does."""
_UNMOUNTED = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {TRACEFS} && exec "$@"', "sh"]

PREAMBLE = """\
## per_cpu/cpu0
## entries: 9
## overrun: 0
## oldest event ts:    10.000100
## per_cpu/cpu1
## overrun: 70
## oldest event ts:    10.000300
# tracer: nop
"""
TEXT = (
    PREAMBLE
    + """\
          <idle>-0       [000] d.h..    10.000100: local_timer_entry: vector=236
          <idle>-0       [000] d.h..    10.000102: hrtimer_expire_entry: hrtimer=0000 function=hrtimer_wakeup now=1
          <idle>-0       [000] d.h1.    10.000103: sched_waking: comm=a task pid=7 prio=120 target_cpu=000
          <idle>-0       [000] d.h..    10.000106: hrtimer_expire_exit: hrtimer=0000
          <idle>-0       [000] d.h..    10.000110: local_timer_exit: vector=236
          <idle>-0       [000] d..2.    10.000120: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=a task next_pid=7 next_prio=120
 a line of something else
          a task-7       [000] ..s..    10.000150: softirq_entry: vec=1 [action=TIMER]
          a task-7       [000] d.h..    10.000160: irq_handler_entry: irq=33 name=eth 0
          a task-7       [000] d.h..    10.000165: sched_waking: comm=probe pid=9 prio=1 target_cpu=000
          a task-7       [000] d.h..    10.000170: irq_handler_exit: irq=33 ret=handled
          a task-7       [000] ..s..    10.000180: softirq_exit: vec=1 [action=TIMER]
          a task-7       [000] d..2.    10.000200: sched_switch: prev_comm=a task prev_pid=7 prev_prio=120 \
prev_state=R ==> next_comm=probe next_pid=9 next_prio=1
           other-8       [001] d..1.    10.000310: cpu_idle: state=1 cpu_id=1
"""
)
US = 1000
AT_NS = 10 * 10**9


@pytest.fixture(scope="module")
def tracefs() -> None:
    own_mounts()
    if subprocess.run([*_MOUNTED, "test", "-d", f"{TRACEFS}/instances"], check=False, capture_output=True).returncode:
        pytest.skip("the kernel has no tracefs, or this process may not mount it")


@pytest.fixture
def hog() -> Iterator[None]:
    """Takes CPU 0 from everybody below priority 90, for 0.3 s at a time."""
    process = subprocess.Popen([sys.executable, "-c", _HOG])
    yield
    process.kill()
    process.wait()


def _instance_is_gone() -> bool:
    return subprocess.run([*_MOUNTED, "test", "!", "-d", INSTANCE], check=False).returncode == 0


# --- what a trace tells


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(TEXT.encode())


def test_each_moment_of_a_cpu_counts_for_who_had_it(trace: Trace) -> None:
    found = shares(trace, 0, AT_NS + 100 * US, AT_NS + 200 * US)
    assert {(share.name, share.ns // US, share.times) for share in found} == {
        ("local timer", 6, 1),
        ("hrtimer_wakeup", 4, 1),
        ("idle", 10, 1),
        ("a task-7", 50, 1),
        ("TIMER", 20, 1),
        ("irq=33 eth 0", 10, 1),
    }
    assert {share.kind for share in found} == set(TraceKind)
    assert [share.ns for share in found] == sorted((share.ns for share in found), reverse=True)


def test_a_soft_irq_that_is_off_the_cpu_takes_nothing() -> None:
    """On PREEMPT_RT a thread runs soft-IRQs, and may be preempted in the middle of one."""
    lines = TEXT.splitlines(keepends=True)
    kept = [line for line in lines if "softirq_exit" not in line]
    preempted = read_trace("".join([*kept, " x-1 [000] d..2. 10.000300: cpu_idle: state=1 cpu_id=0\n"]).encode())
    after = shares(preempted, 0, AT_NS + 200 * US, AT_NS + 300 * US)
    assert [(share.name, share.ns) for share in after] == [("probe-9", 100 * US)]


def test_what_is_not_known_is_not_idle(trace: Trace) -> None:
    before = shares(trace, 1, AT_NS + 200 * US, AT_NS + 310 * US)
    assert [(share.kind, share.name, share.ns // US) for share in before] == [
        (None, "not known", 100),
        (TraceKind.TASK, "other-8", 10),
    ]
    assert [share.name for share in shares(trace, 5, AT_NS, AT_NS + 5)] == ["not known"]


def test_who_was_woken_and_who_runs(trace: Trace) -> None:
    waking = trace.waking(9, AT_NS + 200 * US)
    assert waking is not None and (waking.at_ns, waking.task.comm) == (AT_NS + 165 * US, "probe")
    assert trace.waking(9, AT_NS + 164 * US) is None
    running = trace.running(0, trace.end_ns)
    assert running is not None and running.task.real_time and running.begin_ns == AT_NS + 200 * US
    assert trace.known_ns == {0: AT_NS + 100 * US, 1: AT_NS + 300 * US}


@pytest.mark.parametrize("text", ["", "# tracer: nop\n", "\0\n-1 [x] y\n## oldest event ts: 1.000000\n"])
def test_a_trace_without_anything_in_it_tells_nothing(text: str) -> None:
    assert not read_trace(text.encode()).slices


def test_what_began_before_the_trace_is_not_lost() -> None:
    one = read_trace(
        b" a-7 [000] d.h.. 1.000010: cpu_idle: state=1 cpu_id=0\n"
        b" a-7 [000] d.h.. 1.000020: irq_handler_exit: irq=33 ret=handled\n"
    )
    assert {(share.name, share.ns) for share in shares(one, 0, 10**9, 10**9 + 20 * US)} == {
        ("irq_handler", 10 * US),
        ("not known", 10 * US),
    }


def test_what_the_last_lines_tell_goes_on(trace: Trace) -> None:
    longer = read_trace(TEXT.encode(), AT_NS + 500 * US)
    after = AT_NS + 310 * US, AT_NS + 500 * US
    assert [(share.name, share.ns) for share in shares(longer, 0, *after)] == [("probe-9", 190 * US)]
    assert [share.name for share in shares(trace, 0, *after)] == ["not known"]


# --- how it is asked for


def _plan(folder: Path, run: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(f'name = "break"\n[[run]]\nprobe = "timer"\n{run}\n')
    return path


def test_a_plan_says_it_by_a_key_of_its_own(tmp_path: Path) -> None:
    [entry] = read_plan(_plan(tmp_path, 'break = "100us"')).entries
    assert entry.parameters == {BREAK: ("100000ns",)}


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ('break = "100us"\nparameters = {breaktrace = "1us"}', "break and the parameter breaktrace have the same"),
        ('break = "fast"', "plan.toml:4: run 1: break: "),
        ("break = 5", "plan.toml:4: "),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(tmp_path: Path, run: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_plan(_plan(tmp_path, run))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["timer", "breaktrace=1us", "--break", "1us"], "--break and breaktrace have the same meaning"),
        (["timer", "trace-switch=/tmp/x"], "trace-switch is not a parameter of a run: use --break for a trace"),
        (["--plan", "plan.toml", "--break", "1us"], "--break cannot be used with --plan"),
        (["timer", "--implementation", "linux-kernel", "--break", "1us"], "breaktrace"),
    ],
)
def test_what_cannot_be_on_the_command_line_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    _plan(tmp_path, "")
    done = command_line("run", *words, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


# --- the trace of a run


def _run(folder: Path, *words: str, before: list[str]) -> tuple[subprocess.CompletedProcess[str], Recording]:
    store = folder / "store"
    done = command_line("run", "timer", "--store", str(store), *words, cwd=folder, before=before)
    return done, Store(store).load("last")


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
@pytest.mark.usefixtures("tracefs", "hog", "probe_binary")
def test_who_held_the_task_up_is_found(tmp_path: Path) -> None:
    """The truth is injected: a task of higher priority takes the CPU for twice the threshold."""
    done, run = _run(
        tmp_path, "interval=1ms", "priority=50", "affinity=0", "--break", "150ms", "--duration", "60s", before=_MOUNTED
    )
    assert done.returncode == 0, done.stderr
    assert _instance_is_gone()
    [setting] = [setting for setting in run.head.settings if setting.name == "trace"]
    assert setting.in_effect == setting.requested == "present"
    event = min((event for event in run.events if event.kind == "threshold"), key=lambda event: event.at.mono_ns)
    assert event.value is not None and event.value > 150_000_000
    assert run.trace is not None
    running = read_trace(run.trace(), event.at.mono_ns).running(0, event.at.mono_ns)
    assert running is not None and running.task.comm == "fastenough-probe"[:15]
    assert command_line("report", "--store", "store", "--out", "report", cwd=tmp_path).returncode == 0
    rows = _rows(tmp_path / "report", "trace-1-shares")
    assert rows[0]["running"].startswith(HOG_COMM) and float(rows[0]["share of the delay"]) > 0.5
    assert sum(int(row["time [µs]"]) for row in rows) == event.value
    assert any("(delayed)" in row["running"] for row in rows)
    page = (tmp_path / "report" / "index.html").read_text()
    assert 'id="trace"' in page and " became runnable " in page
    assert (tmp_path / "report" / "figures" / "trace-1.svg").is_file()


@pytest.mark.usefixtures("tracefs", "probe_binary")
def test_the_trace_belongs_to_the_run(tmp_path: Path) -> None:
    done, run = _run(tmp_path, "interval=1ms", "--break", "1us", before=_MOUNTED)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "store" / "runs" / run.run_id
    listed = json.loads((folder / "run.json").read_text())["files"]
    assert [line.partition(" ")[2] for line in listed] == ["trace.txt.zst"]
    assert command_line("store", "verify", "--store", "store", cwd=tmp_path).returncode == 0
    kept = folder / "trace.txt.zst"
    content = kept.read_bytes()
    kept.unlink()
    kept.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    done = command_line("store", "verify", "--store", "store", cwd=tmp_path)
    assert done.returncode != 0 and "trace.txt.zst: SHA-256 mismatch" in done.stdout + done.stderr


@pytest.mark.usefixtures("tracefs", "probe_binary")
def test_a_run_that_nothing_ended_keeps_no_trace(tmp_path: Path) -> None:
    done, run = _run(tmp_path, "interval=1ms", "--break", "100s", "--duration", "300ms", before=_MOUNTED)
    assert done.returncode == 0, done.stderr
    assert run.trace is None and not (tmp_path / "store" / "runs" / run.run_id / "trace.txt.zst").exists()
    assert _instance_is_gone()


@pytest.mark.usefixtures("tracefs", "probe_binary")
def test_without_tracefs_one_line_says_why(tmp_path: Path) -> None:
    done, run = _run(tmp_path, "interval=1ms", "--break", "1us", before=_UNMOUNTED)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "trace" in line] == [
        "no kernel trace is recorded: not applicable: tracefs is not mounted; mount -t tracefs tracefs "
        "/sys/kernel/tracing"
    ]
    assert run.trace is None and any(event.kind == "threshold" for event in run.events)


@pytest.mark.usefixtures("probe_binary")
def test_an_ordinary_user_is_told_why_there_is_none(tmp_path: Path) -> None:
    with ordinary_user(sudo=False) as user:
        done = user.call("run", "timer", "interval=1ms", "--break", "1us", "--as-granted", "--duration", "300ms")
        assert done.returncode == 0, done.stderr
        [line] = [line for line in done.stderr.splitlines() if "kernel trace is recorded" in line]
        assert "needs root" in line or "tracefs is not mounted" in line or "has no /sys/kernel/tracing" in line


@pytest.mark.usefixtures("tracefs")
def test_an_instance_outlives_no_bench(tmp_path: Path) -> None:
    """After SIGKILL the next start takes it away, with its memory and its events."""
    journal = str(tmp_path / "journal")
    words = [*_MOUNTED, sys.executable, "-c"]
    killed = subprocess.run(
        [*words, _KILLED, journal, INSTANCE], capture_output=True, text=True, env=environment(), check=False
    )
    assert killed.stdout == "present True\n", killed.stderr
    assert not _instance_is_gone()
    restored = subprocess.run(
        [*words, _RESTORED, journal], capture_output=True, text=True, env=environment(), check=True
    )
    assert restored.stdout.strip() == INSTANCE
    assert _instance_is_gone() and Path(journal).read_bytes() == b""
