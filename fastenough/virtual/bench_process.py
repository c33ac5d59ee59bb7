# SPDX-License-Identifier: GPL-2.0-or-later
"""Start and stop of a virtual bench in the background.

Each user has at most one, in a folder that only this user can write.  The bench process holds a lock beside the
directory of the bench while it runs; the kernel releases the lock when the process ends, and ends QEMU with it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fastenough.files import private_directory, replace_whole
from fastenough.link.agent import AgentLink
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.custom_kernels import KernelFiles, find_kernel, register_kernel
from fastenough.virtual.guest_link import connect_guest
from fastenough.virtual.module import build_module, has_headers
from fastenough.virtual.packages import DownloadCallback, no_progress
from fastenough.virtual.probe import build_probe, install
from fastenough.virtual.process_lock import end_holder, hold_lock, holder

_ERRORS = {kind.__name__: kind for kind in (BadInput, NotApplicable)}
_DOWN_TIMEOUT_S = 15.0
_WATCH_S = 0.5
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path += sys.argv[4:]; "
    "from fastenough.virtual.bench_process import main; sys.exit(main(*sys.argv[1:4]))"
)

RUN_SETTING = "FASTENOUGH_RUN"
"""Environment variable with another folder for the running bench."""


@dataclass(frozen=True)
class BenchState:
    """The running bench: written once by the bench process after the start."""

    kernel: str
    release: str
    pid: int
    qemu_pid: int
    boot_s: float
    restored: bool
    directory: str
    gauge: str | None
    """The simulated gauge's serial line; None when there is none, for ``gauge_reason``."""
    gauge_reason: str


def _runtime_directory() -> Path:
    """A folder that only this user can write; raises Untrusted, or BadInput if it cannot be created.

    Root uses ``/run``, where no other user can create a folder.
    """
    if RUN_SETTING in os.environ:
        path = Path(os.environ[RUN_SETTING]).absolute()
    elif os.geteuid() == 0:
        path = Path("/run/fastenough")
    else:
        path = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"fastenough-{os.geteuid()}"
    try:
        return private_directory(path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a folder of your own in {RUN_SETTING}") from error


def bench_directory() -> Path:
    """The directory of this user's virtual bench, with sockets and state."""
    return _runtime_directory() / "bench"


def _lock(directory: Path) -> Path:
    """The lock file, beside the directory of the bench."""
    return directory.with_suffix(".lock")


def bench_pid(directory: Path) -> int | None:
    """The process id of the bench process, None if there is none."""
    return holder(_lock(directory))


def bench_state() -> BenchState | None:
    """The running bench, None if there is none (or it is still starting)."""
    directory = bench_directory()
    state = directory / "state.json"
    if bench_pid(directory) is None or not state.is_file():
        return None
    return BenchState(**json.loads(state.read_text()))


def up(
    kernel: str,
    snapshot: bool = True,
    on_download: DownloadCallback = no_progress,
    custom_files: KernelFiles | None = None,
) -> BenchState:
    """Fetch, build, boot and wire; returns when the bench runs in the background.

    ``custom_files``: of a custom kernel, to register under that name.
    Raises BadInput if one is already running or the kernel is unknown, NotApplicable if a tool is missing, and
    FastenoughError if the guest does not start; nothing is left running then.
    """
    directory = bench_directory()
    running = bench_pid(directory)
    if running is not None:
        raise BadInput(f"a virtual bench is already running (process {running}); stop it with: fastenough bench down")
    guest_kernel = (
        find_kernel(kernel, on_download) if custom_files is None else register_kernel(kernel, custom_files, on_download)
    )
    if has_headers(guest_kernel):
        build_module(guest_kernel)
    build_probe(guest_kernel.arch)
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _START, str(directory), kernel, str(int(snapshot)), *_import_paths()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        output, errors = process.stdout.read(), process.stderr.read()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if not output:
        reason = (errors.splitlines() or ["it was stopped before the bench was up"])[-1]
        raise FastenoughError(f"the bench process failed: {reason}")
    reply = json.loads(output)
    if "error" in reply:
        process.wait()
        raise _ERRORS.get(reply["kind"], FastenoughError)(reply["error"])
    return BenchState(**reply)


def _import_paths() -> list[str]:
    """Import paths for the bench process without the current folder, which may contain files of any name."""
    user_paths = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [str(_PACKAGE_ROOT), *user_paths]


def down() -> bool:
    """Stop the bench and remove its files, also after a crash; False if there was none.

    Raises FastenoughError if the bench process does not stop.
    """
    directory = bench_directory()
    was_there = directory.exists()
    lock = _lock(directory)
    if not any(end_holder(lock, number, _DOWN_TIMEOUT_S) for number in (signal.SIGTERM, signal.SIGKILL)):
        pid = holder(lock)
        raise FastenoughError(
            f"the bench process (PID {pid}) did not end within {_DOWN_TIMEOUT_S:g} s of SIGKILL: it waits in the "
            f"kernel, as for a disk or a network file system. Show where with: ps -o pid,stat,wchan:32,args -p {pid}; "
            "repair that, or reboot; then run again: fastenough bench down"
        )
    try:
        with hold_lock(lock):
            shutil.rmtree(directory, ignore_errors=True)
    except BlockingIOError as error:
        raise BadInput("another virtual bench is starting") from error
    return was_there


def open_virtual(which: str) -> AgentLink:
    """The board of the running bench; ``which``: the required kernel."""
    state = bench_state()
    kernel = which or "stock"
    if state is None:
        raise BadInput(f"no virtual bench is running; start one with: fastenough bench up --kernel {kernel}")
    if which and state.kernel != which:
        raise BadInput(
            f"the virtual bench runs kernel {state.kernel}, not {which}; "
            f"change it with: fastenough bench down; fastenough bench up --kernel {which}"
        )
    return connect_guest(Path(state.directory) / "agent.sock", f"virtual:{state.kernel}")


def _run_bench(directory: Path, kernel: str, snapshot: bool) -> None:
    with VirtualBoard(kernel, snapshot=snapshot, directory=directory) as board:
        install(board.link)
        board.link.close()
        gauge, gauge_reason = _wired_gauge(board)
        state = BenchState(
            kernel,
            board.kernel.release,
            os.getpid(),
            board.qemu.pid,
            round(board.boot_s, 3),
            board.was_restored,
            str(directory),
            gauge,
            gauge_reason,
        )
        text = json.dumps(asdict(state))
        replace_whole(directory / "state.json", text.encode(), 0o600)
        print(text, flush=True)
        _detach_from_terminal()
        while board.qemu.is_running:
            time.sleep(_WATCH_S)


def _wired_gauge(board: VirtualBoard) -> tuple[str | None, str]:
    """The serial line of the gauge, or the reason why there is none."""
    try:
        return board.wire_gauge().terminal, ""
    except NotApplicable as reason:
        return None, str(reason)


def _detach_from_terminal() -> None:
    """Close the output, so that a reader of it does not wait for the end of the bench."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(null_device, stream)
    os.close(null_device)


def main(path: str, kernel: str, snapshot: str) -> int:
    """Main function of the bench process; its only line of output is the state or the error."""
    directory = Path(path)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with hold_lock(_lock(directory)):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(mode=0o700)
            _run_bench(directory, kernel, snapshot == "1")
    except BlockingIOError:
        print(json.dumps({"kind": "BadInput", "error": "another virtual bench is starting"}), flush=True)
        return 1
    except FastenoughError as error:
        print(json.dumps({"kind": type(error).__name__, "error": str(error)}), flush=True)
        return 1
    return 0
