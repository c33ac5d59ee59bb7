# SPDX-License-Identifier: GPL-2.0-or-later
"""The recording (docs/format.md): what machines write and the bench reads."""

from fastenough.recording.content import Recording, unbelievable
from fastenough.recording.head import End, Event, Head, Instant, LoadProof, LoadStated, LoadUse, SeriesEnd
from fastenough.recording.histogram import Histogram
from fastenough.recording.interval import Interval
from fastenough.recording.reader import Reading, read_from, read_recording
from fastenough.recording.rises import Rises
from fastenough.recording.writer import RecordingWriter

__all__ = ["End", "Event", "Head", "Histogram", "Instant", "Interval", "LoadProof", "LoadStated", "LoadUse", "Reading",
           "Recording", "RecordingWriter", "Rises", "SeriesEnd", "read_from", "read_recording", "unbelievable"]
