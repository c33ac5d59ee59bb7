# SPDX-License-Identifier: GPL-2.0-or-later
"""Pins of machines without GPIO hardware: memory shared with the guest, and doorbells (QEMU's ivshmem-doorbell).

The guest's side, and the layout of the memory, are in ``target/module/pins/fastenough_pins.c``.  The bench is the
server that gives QEMU memory and bells: QEMU is peer 0, whose state can be saved, and the bench is peer 1.
"""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import select
import socket
import struct
import threading
import time
from pathlib import Path
from typing import ClassVar

from fastenough.model import BadInput, FastenoughError
from fastenough.virtual.pins import LINES, Emulator, Pins

_GUEST, _BENCH = 0, 1
_BYTES = 1 << 17
_LEVELS = 0
_RISES, _FALLS = 32, 64
_CHANGES = 128
_RING = 4096
_RING_ENTRIES = 16384


class _Memory:
    """32-bit words in the shared memory, by byte offset."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("pins")
        os.ftruncate(self.descriptor, _BYTES)
        self._bytes = mmap.mmap(self.descriptor, _BYTES)

    def read(self, offset: int) -> int:
        return int(struct.unpack_from("<I", self._bytes, offset)[0])

    def write(self, offset: int, value: int) -> None:
        struct.pack_into("<I", self._bytes, offset, value & 0xFFFFFFFF)

    def close(self) -> None:
        self._bytes.close()
        os.close(self.descriptor)


class SharedPins(Pins):
    """The lines in a memory; ``guest_bell`` and ``bench_bell`` are eventfds, which QEMU makes non-blocking."""

    def __init__(self, memory: _Memory, guest_bell: int, bench_bell: int) -> None:
        super().__init__()
        self._memory, self._guest_bell, self._bench_bell = memory, guest_bell, bench_bell
        self._ring_position = memory.read(_CHANGES)
        self._fault = ""
        self._closed = False
        self._drive_lock, self._ring_lock = threading.Lock(), threading.Lock()
        self._thread = threading.Thread(target=self._wait_for_bell, name="pins", daemon=True)
        self._thread.start()

    def drive(self, line: int, level: int) -> int:
        if not 0 <= line < LINES:
            raise BadInput(f"the virtual board has no input line {line}; choose 0 to {LINES - 1}")
        self._require_no_loss()
        with self._drive_lock:
            levels = self._memory.read(_LEVELS)
            new_levels = levels | 1 << line if level else levels & ~(1 << line)
            if new_levels != levels:
                self._memory.write(_LEVELS, new_levels)
                edges = (_RISES if level else _FALLS) + 4 * line
                self._memory.write(edges, self._memory.read(edges) + 1)
                os.eventfd_write(self._guest_bell, 1)
        return time.monotonic_ns()

    def settle(self) -> None:
        """Does nothing: edges are in the memory immediately."""
        self._read_ring()
        self._require_no_loss()

    def close(self) -> None:
        self._closed = True
        os.eventfd_write(self._bench_bell, 1)
        self._thread.join()

    def _require_no_loss(self) -> None:
        if self._fault:
            raise FastenoughError(self._fault)

    def _wait_for_bell(self) -> None:
        while not self._closed:
            select.select([self._bench_bell], [], [])
            os.eventfd_read(self._bench_bell)
            self._read_ring()

    def _read_ring(self) -> None:
        with self._ring_lock:
            changes = self._memory.read(_CHANGES)
            if changes - self._ring_position & 0xFFFFFFFF > _RING_ENTRIES:
                self._fault = (
                    f"the virtual board's outputs changed more than {_RING_ENTRIES} times before the bench "
                    "read them: this machine is too busy"
                )
                self._ring_position = changes
            while self._ring_position != changes:
                entry = self._memory.read(_RING + 4 * (self._ring_position % _RING_ENTRIES))
                self._ring_position = self._ring_position + 1 & 0xFFFFFFFF
                self.receive(entry >> 1, entry & 1)


class SharedPort:
    """The server from which a QEMU process gets memory and bells."""

    chip: ClassVar[str] = "fastenough_pins"
    modules: ClassVar[tuple[str, ...]] = ("pins",)

    def __init__(self, directory: Path) -> None:
        path = directory / "pins.sock"
        self.arguments = [
            "-chardev",
            f"socket,id=pins,path={path}",
            "-device",
            "ivshmem-doorbell,vectors=1,master=on,chardev=pins",
        ]
        self._memory = _Memory()
        self._guest_bell, self._bench_bell = (os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(2))
        self._connection: socket.socket | None = None
        self._server = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        self._server.bind(str(path))
        self._server.listen(1)
        self._thread = threading.Thread(target=self._serve, name="pins-port", daemon=True)
        self._thread.start()

    def open(self, emulator: Emulator) -> Pins:
        return SharedPins(self._memory, self._guest_bell, self._bench_bell)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()
        if self._connection is not None:
            self._connection.close()
        self._memory.close()
        for bell in (self._guest_bell, self._bench_bell):
            os.close(bell)

    def _serve(self) -> None:
        """Send the protocol version, the guest's number, the memory, and both bells."""
        with contextlib.suppress(OSError):
            self._connection, _ = self._server.accept()
            for number, descriptor in (
                (0, None),
                (_GUEST, None),
                (-1, self._memory.descriptor),
                (_BENCH, self._bench_bell),
                (_GUEST, self._guest_bell),
            ):
                ancillary = (
                    []
                    if descriptor is None
                    else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
                )
                self._connection.sendmsg([struct.pack("<q", number)], ancillary)
