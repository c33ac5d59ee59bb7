# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual board: a kernel booted in QEMU, its link and its pins."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType

from fastenough.model import FastenoughError
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.gauge import SimulatedGauge
from fastenough.virtual.guest_link import guest_link
from fastenough.virtual.initramfs import build_initramfs
from fastenough.virtual.qemu import PACED, Qemu
from fastenough.virtual.snapshot import Snapshot, snapshot_of

_RESTORE_TIMEOUT_S = 20.0
_DIRECTORY = "fastenough-board-"


class VirtualBoard:
    """A guest: ``with VirtualBoard("rt") as board:`` has ``board.link``, ``board.pins`` and ``board.wire_gauge()``.

    ``snapshot``: boot once, later restore in a second.  ``boot_s``: time until the guest answered.
    ``arguments``: additional kernel arguments; a guest with any is always booted.
    ``boot_timeout_s``: maximum time until the guest answers.  ``pace``: PACED, or COUNTED without a
    snapshot.
    ``directory``: an empty directory with a short path, for the sockets; removed when the board is closed.
    Raises NotApplicable if a tool is missing, FastenoughError with the last lines of the console if the guest
    does not start.
    """

    def __init__(
        self,
        kernel: str = "stock",
        *,
        snapshot: bool = True,
        cpus: int = 2,
        directory: Path | None = None,
        boot_timeout_s: float = 120.0,
        pace: tuple[str, ...] = PACED,
        arguments: str = "",
    ) -> None:
        self.kernel = find_kernel(kernel)
        self.gauge: SimulatedGauge | None = None
        self._boot_timeout_s = boot_timeout_s
        self._pace, self._arguments = pace, arguments
        content = build_initramfs(self.kernel)
        self._directory = directory or make_own_directory()
        try:
            self._boot_or_restore(content, cpus, snapshot and self.kernel.machine.can_restore and not arguments)
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise

    def _boot_or_restore(self, initramfs: bytes, cpus: int, snapshot: bool) -> None:
        begin_mono_s = time.monotonic()
        (self._directory / "initramfs").write_bytes(initramfs)
        saved = snapshot_of(self.kernel, initramfs, cpus)
        self.was_restored = snapshot and saved.intact() and self._try_restore(saved, cpus)
        if not self.was_restored:
            self._start(cpus)
            if snapshot:
                self._save(saved)
        self.boot_s = time.monotonic() - begin_mono_s

    def _start(self, cpus: int, saved: Snapshot | None = None) -> None:
        self.qemu = Qemu(
            self.kernel,
            self._directory / "initramfs",
            self._directory,
            cpus=cpus,
            pace=self._pace,
            restore=saved is not None,
            arguments=self._arguments,
        )
        try:
            if saved is not None:
                self.qemu.restore(saved.path, _RESTORE_TIMEOUT_S)
            self._connect()
        except BaseException:
            self.qemu.close()
            raise

    def _try_restore(self, saved: Snapshot, cpus: int) -> bool:
        """Whether the guest was restored; an unusable state, such as that of another QEMU version, is discarded."""
        try:
            self._start(cpus, saved)
        except FastenoughError:
            saved.discard()
            return False
        return True

    def _save(self, saved: Snapshot) -> None:
        """Save the state of a guest without a connected bench, so that each restored guest connects to its own.

        If it cannot be stored, as on a full disk, the next guest boots.
        """
        self.link.close()
        self.pins.close()
        time.sleep(0.5)
        try:
            with contextlib.suppress(OSError, FastenoughError):
                saved.store(self.qemu.save)
            self._connect()
        except BaseException:
            self.qemu.close()
            raise

    def _connect(self) -> None:
        self.pins = self.qemu.pin_port.open(self.qemu)
        try:
            self.link = guest_link(self.qemu.connect("agent", 5.0), f"virtual:{self.kernel.name}", self._boot_timeout_s)
            self.link.own_directory = self._directory
            self.link.run(["date", "-s", f"@{int(time.time())}"])
        except FastenoughError as error:
            raise self.qemu.start_error(f"the guest with kernel {self.kernel.release} does not start") from error

    def wire_gauge(self) -> SimulatedGauge:
        """A simulated gauge on the guest's pins until the board is closed; raises NotApplicable."""
        self.gauge = SimulatedGauge(self._directory, self.pins)
        return self.gauge

    def close(self) -> None:
        """End the guest and remove its files."""
        if self.gauge is not None:
            self.gauge.close()
        self.link.close()
        self.pins.close()
        self.qemu.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> VirtualBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make_own_directory() -> Path:
    """A directory for the board of this process; those of killed processes are removed."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_DIRECTORY}*-*"):
        pid = directory.name.removeprefix(_DIRECTORY).partition("-")[0]
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            if directory.lstat().st_uid == os.geteuid() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(directory, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=own_prefix()))


def own_prefix() -> str:
    """Begin of the names of this process's directories, by which ``make_own_directory`` removes those left behind."""
    return f"{_DIRECTORY}{os.getpid()}-"
