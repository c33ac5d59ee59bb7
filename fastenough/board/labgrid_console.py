# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the serial console of a labgrid place, as a separate process, and holds its last output.

    python labgrid_console.py PORT        PORT: the exported NetworkSerialPort's arguments, one object in JSON

Each line on standard input is answered by one line, a JSON object: ``output``, the last output in base64, and
``fault``, why the console cannot be read.  It ends with its standard input.  A lost console is retried every second.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
import threading
import time
from typing import Any

from labgrid import Target
from labgrid.driver import SerialDriver
from labgrid.resource import NetworkSerialPort
from pexpect import TIMEOUT  # type: ignore[import-untyped]

_TAIL_BYTES = 16384
_READ_BYTES = 4096
_READ_S = 0.2
_RETRY_S = 1.0


class Reader:
    """The tail of a console, read by a separate thread."""

    def __init__(self, port: dict[str, Any]) -> None:
        extra = port.pop("extra", {})
        self._target = Target("console")
        resource = NetworkSerialPort(self._target, None, **port)
        resource.extra = extra
        self._driver = SerialDriver(self._target, None)
        self._tail = b""
        self._fault: str | None = None

    def follow(self) -> None:
        while True:
            try:
                self._target.activate(self._driver)
                self._fault = None
                while True:
                    self._read_tail()
            except Exception as error:  # any error of a back end: retry
                self._fault = f"{type(error).__name__}: {error}"
            self._target.deactivate(self._driver)
            time.sleep(_RETRY_S)

    def _read_tail(self) -> None:
        with contextlib.suppress(TIMEOUT):
            self._tail = (self._tail + self._driver.read(_READ_BYTES, _READ_S))[-_TAIL_BYTES:]

    def answer(self) -> str:
        return json.dumps({"output": base64.b64encode(self._tail).decode(), "fault": self._fault})


def main(port: str) -> int:
    reader = Reader(json.loads(port))
    threading.Thread(target=reader.follow, daemon=True).start()
    for _ in sys.stdin:
        print(reader.answer(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
