# SPDX-License-Identifier: GPL-2.0-or-later
"""Watchdog of a process tree: the tree ends with its command, on request, or with the bench, however that ends.

Run as a separate program: ``guard.py LIFELINE LIMIT_S SCRATCH CPUS COMMAND...``.  LIFELINE is the read end of a pipe
whose other end only the bench holds: when the bench dies, even by SIGKILL, the kernel closes it.  LIFELINE 0, standard
input, is for a guard started through sudo, which closes all others.  Signals come as bytes through the lifeline: they
wait there until the guard listens, and need no permission, while a user may not send any to root's processes.
The guard adopts orphans of its tree (PR_SET_CHILD_SUBREAPER), so nothing escapes by double fork or by a new session.
SIGTERM, the end of the lifeline, or LIMIT_S (when not 0) end the tree: the command is asked first, and after GRACE_S
the rest is killed; other signals are passed on.  SCRATCH, when not empty, is a directory created first and removed
last; its lock shows that the guard is running.  CPUS, numbers separated by commas, are the CPUs that the command may
use, even if the bench itself is bound to others.

When the guard itself is killed, the kernel kills the command.  One with a scratch directory is a load of many
processes: if permitted, it runs in a PID namespace, and the kernel kills all of it.  Otherwise the remaining processes
are identified by TREE in their environment, and ended by the bench or by the next one (``leftovers.py``).
If permitted, such a load also runs in an IPC namespace: the kernel removes its System V objects and its POSIX message
queues with its last process.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

GRACE_S = 2.0
TREE = "FASTENOUGH_TREE"
"""Environment variable of all processes below a guard: the guard's process id and start time in ticks."""
_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWPID = 0x20000000
_MS_REC_PRIVATE = 0x4000 | 0x40000
_MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_RETRY_S = 0.02
_OURS = {signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD}
_libc = ctypes.CDLL(None, use_errno=True)


def _become_ordinary() -> None:
    """Set the ordinary scheduling policy, whatever the bench has; a probe sets its own priority."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def _use(cpus: str) -> None:
    """Allow those of the CPUs that are online."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, map(int, cpus.split(",")))


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot; None if it does not exist or has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _claim(scratch: str) -> int:
    """Create the directory and lock it; repeat if a cleanup removed it in between."""
    while True:
        Path(scratch).mkdir(mode=0o700)
        try:
            file = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(file), os.lstat(scratch)):
                return file
        except FileNotFoundError:
            pass
        os.close(file)


def _execute(command: list[str]) -> None:
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _own_proc() -> None:
    """Mount a /proc of this namespace for the load only; without it tools would see processes of other namespaces."""
    if _libc.unshare(_CLONE_NEWNS) == 0 and _libc.mount(None, b"/", None, _MS_REC_PRIVATE, None) == 0:
        _libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID_NODEV_NOEXEC, None)


def _first_in_namespace(command: list[str]) -> None:
    """Start the command, pass signals on, and end with it: the kernel then kills the rest of the namespace."""
    numbers = {
        signal.SIGCHLD,
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
    }
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    _own_proc()
    pid = os.fork()
    if pid == 0:
        _execute(command)
    while True:
        number = signal.sigwait(numbers)
        if number != signal.SIGCHLD:
            os.kill(pid, number)
        ended = _reap()
        if pid in ended:
            os._exit(ended[pid])


def _spawn(command: list[str], apart: bool) -> int:
    """Start the command and return its process id; ``apart``: in a PID and an IPC namespace, if permitted.

    Signals are blocked until the command handles them: the guard's own handlers would swallow them.
    """
    os.environ[TREE] = f"{os.getpid()}:{start_ticks(os.getpid())}"
    namespace = apart and _libc.unshare(_CLONE_NEWPID) == 0
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if apart:
        _libc.unshare(_CLONE_NEWIPC)
    if namespace:
        _first_in_namespace(command)
    _execute(command)
    os._exit(127)


def descendants(root: int) -> list[int]:
    """Return every running process below ``root``."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    tree = {root}
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in tree} - tree
        tree |= children
        grown = bool(children)
    return sorted(tree - {root})


def _reap() -> dict[int, int]:
    """Return the exit status (128 + signal for a signal) of every child that has ended, by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _kill_rest() -> dict[int, int]:
    """Kill until no child is left; a process that is forking is caught in the next round."""
    ended: dict[int, int] = {}
    while _has_children():
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_RETRY_S)
        ended |= _reap()
    return ended


def _watch(command_pid: int, lifeline: int, wakeup: int) -> int | None:
    """Wait for the command; return its exit status, or None if it did not end within the grace."""
    poller = select.poll()
    poller.register(lifeline, select.POLLIN | select.POLLHUP)
    poller.register(wakeup, select.POLLIN)
    deadline: float | None = None
    while deadline is None or time.monotonic() < deadline:
        left_ms = None if deadline is None else max(1.0, (deadline - time.monotonic()) * 1000)
        ready = {fd for fd, _ in poller.poll(left_ms)}
        numbers = set(os.read(wakeup, 512)) if wakeup in ready else set()
        received = os.read(lifeline, 512) if lifeline in ready else None
        ended = _reap()
        if command_pid in ended:
            return ended[command_pid]
        for number in (numbers | set(received or b"")) - _OURS:
            os.kill(command_pid, number)
        end_requested = (numbers | set(received or b"")) & {signal.SIGTERM, signal.SIGALRM}
        if deadline is None and (received == b"" or end_requested):
            poller.unregister(lifeline)
            os.kill(command_pid, signal.SIGTERM)
            deadline = time.monotonic() + GRACE_S
    return None


def _away_from_stdin(lifeline: int) -> int:
    """Return the lifeline, moved away from standard input, which the command inherits."""
    if lifeline:
        return lifeline
    moved = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return moved


def main(argv: list[str]) -> int:
    lifeline, limit_s, scratch, command = int(argv[1]), float(argv[2]), argv[3], argv[5:]
    lifeline = _away_from_stdin(lifeline)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _become_ordinary()
    _use(argv[4])
    wakeup, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    if scratch:
        _claim(scratch)
    command_pid = _spawn(command, apart=bool(scratch))
    for stream in (0, 1):
        os.close(stream)
    status = _watch(command_pid, lifeline, wakeup)
    rest = _kill_rest()
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    return rest.get(command_pid, 128 + signal.SIGKILL) if status is None else status


if __name__ == "__main__":
    sys.exit(main(sys.argv))
