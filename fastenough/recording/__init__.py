# SPDX-License-Identifier: GPL-2.0-or-later
"""The recording (SPEC sections 3 and 4): what machines write and the bench reads."""

from fastenough.recording.histogram import Histogram
from fastenough.recording.interval import Interval
from fastenough.recording.reader import Recording, SeriesEnd, read_from, read_recording, unbelievable
from fastenough.recording.writer import RecordingWriter

__all__ = ["Histogram", "Interval", "Recording", "RecordingWriter", "SeriesEnd", "read_from", "read_recording",
           "unbelievable"]
