# SPDX-License-Identifier: GPL-2.0-or-later
"""A wall clock that a test sets for one Python process and all that it starts, while boards go by the machine's own.

libfaketime cannot do that: under it Python's sleep never ends.  So the module `sitecustomize`, which Python imports
before all else, adds what stands in a file to what `time` and `datetime` say.
"""

from __future__ import annotations

import os
from pathlib import Path

_SHIM = """
import datetime, time
true_time, true_time_ns, true_datetime = time.time, time.time_ns, datetime.datetime

def ahead_s():
    with open({path!r}) as file:
        return int(file.read())

class Set(true_datetime):
    @classmethod
    def now(cls, tz=None):
        return true_datetime.now(tz) + datetime.timedelta(seconds=ahead_s())

time.time = lambda: true_time() + ahead_s()
time.time_ns = lambda: true_time_ns() + ahead_s() * 10**9
datetime.datetime = Set
"""


class SetClock:
    """``environment``: of whoever is to go by it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._ahead = folder / "ahead"
        self.put(0)
        (folder / "sitecustomize.py").write_text(_SHIM.format(path=str(self._ahead)))
        root = Path(__file__).resolve().parents[2]
        self.environment = {"PYTHONPATH": os.pathsep.join((str(folder), str(root)))}

    def put(self, ahead_s: int) -> None:
        """So many seconds ahead from now on; written whole."""
        new = self._ahead.with_suffix(".new")
        new.write_text(str(ahead_s))
        new.replace(self._ahead)
