# SPDX-License-Identifier: GPL-2.0-or-later
"""The recording format (docs/format.md): reading, writing and its types.

Each name is imported on first use: numpy takes 0.1 s, and lists of runs do not need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastenough.recording.building import RecordingWriter
    from fastenough.recording.content import Recording, damaged_recording
    from fastenough.recording.head import End, Event, Head, Instant, LoadProof, LoadStated, LoadUse, SeriesEnd
    from fastenough.recording.histogram import Histogram
    from fastenough.recording.interval import Interval
    from fastenough.recording.reader import Reading, read_from, read_recording
    from fastenough.recording.rises import Rises
else:

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "End",
    "Event",
    "Head",
    "Histogram",
    "Instant",
    "Interval",
    "LoadProof",
    "LoadStated",
    "LoadUse",
    "Reading",
    "Recording",
    "RecordingWriter",
    "Rises",
    "SeriesEnd",
    "damaged_recording",
    "read_from",
    "read_recording",
]

_MODULES = {
    "fastenough.recording.content": ("Recording", "damaged_recording"),
    "fastenough.recording.head": ("End", "Event", "Head", "Instant", "LoadProof", "LoadStated", "LoadUse", "SeriesEnd"),
    "fastenough.recording.histogram": ("Histogram",),
    "fastenough.recording.interval": ("Interval",),
    "fastenough.recording.reader": ("Reading", "read_from", "read_recording"),
    "fastenough.recording.rises": ("Rises",),
    "fastenough.recording.building": ("RecordingWriter",),
}
"""The names that each module defines."""
