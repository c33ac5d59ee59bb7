# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of a probe on their way into the store, when the board is lost or its output is invalid."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fastenough.campaign.transcript import Transcript
from fastenough.implementations.task import Task
from fastenough.jobs.monitor import MonitorRun
from fastenough.link import BoardGone
from fastenough.model import FastenoughError, Outcome
from fastenough.recording import LoadProof
from fastenough.recording.building import HeadAdditions, line_bytes
from fastenough.store import Store
from tests.support.monitor_recordings import Watched, lines

RECORDING = [*map(line_bytes, lines(Watched()))]


class _LostTask(Task):
    """A task whose board was lost after its last line."""

    def __init__(self) -> None:
        pass

    def wait(self, timeout_s: float) -> None:
        raise BoardGone("the board is gone")


def begun(store: Store, taken: list[bytes]) -> Transcript:
    transcript = Transcript(partial(store.begin, {}), HeadAdditions("board"), lambda: LoadProof(None, True))
    for line in taken:
        transcript.take(line)
    return transcript


def sealed(store: Store, transcript: Transcript) -> Outcome | None:
    """The outcome of the run as the store reads it."""
    transcript.seal()
    assert transcript.writer is not None
    return store.load(transcript.writer.id).outcome


@pytest.mark.parametrize(("taken", "outcome"), [(RECORDING, Outcome.COMPLETED), (RECORDING[:-1], Outcome.FAILED)])
def test_a_board_lost_after_the_last_line_leaves_one_end(tmp_path: Path, taken: list[bytes], outcome: Outcome) -> None:
    store = Store(tmp_path)
    transcript = begun(store, taken)
    MonitorRun(_LostTask(), transcript, store).finish()
    assert sealed(store, transcript) is outcome


INVALID = {
    "no JSON": b"hello\n",
    "a number": b"5\n",
    "a list for a type": b'{"type":["head"]}\n',
    "an unknown type": b'{"type":"note"}\n',
    "deep": b"[" * 100_000 + b"\n",
    "a deep value": b'{"type":"event","at":' + b"[" * 100_000 + b"\n",
    "an empty head": b'{"type":"head"}\n',
    "a head without settings": b'{"type":"head","series":[]}\n',
    "a head with an empty series": b'{"type":"head","series":[{}]}\n',
    "an empty interval": b'{"type":"interval"}\n',
    "an interval with an empty series": b'{"type":"interval","series":[{}]}\n',
    "an interval with a text as count": b'{"type":"interval","series":[{"id":0,"count":"1","lost":0,"missed":0}]}\n',
    "an interval without its number": b'{"type":"interval","series":[]}\n',
    "an empty event": b'{"type":"event"}\n',
    "an empty end": b'{"type":"end"}\n',
    "an end with an unknown outcome": b'{"type":"end","outcome":"fine","reasons":[],"counters":{}}\n',
    "an end without counters": b'{"type":"end","outcome":"completed","reasons":[]}\n',
}


@pytest.mark.check
@pytest.mark.parametrize("line", INVALID.values(), ids=INVALID)
def test_an_invalid_line_is_refused_and_not_stored(tmp_path: Path, line: bytes) -> None:
    store = Store(tmp_path)
    empty, transcript = begun(store, []), begun(store, RECORDING[:1])
    for taking in (empty, transcript):
        with pytest.raises(FastenoughError, match="invalid recording line"):
            taking.take(line)
    assert empty.writer is None
    for more in RECORDING[1:]:
        transcript.take(more)
    assert sealed(store, transcript) is Outcome.COMPLETED


def test_a_second_head_is_refused_and_not_stored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    transcript = begun(store, RECORDING[:1])
    with pytest.raises(FastenoughError, match="invalid recording line"):
        transcript.take(RECORDING[0])
    assert len(store.runs()) == 1
    transcript.fail(["invalid"], store)
    assert sealed(store, transcript) is Outcome.FAILED


@pytest.mark.parametrize("taken", range(1, 6))
def test_a_run_that_fails_at_any_line_is_readable(tmp_path: Path, taken: int) -> None:
    """Also between the event of a new maximum and the interval that counts it."""
    store = Store(tmp_path)
    transcript = begun(store, RECORDING[:taken])
    transcript.fail(["the board is gone"], store)
    assert sealed(store, transcript) is Outcome.FAILED


def test_lines_that_arrive_after_a_run_has_failed_are_not_stored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    transcript = begun(store, RECORDING[:4])
    transcript.fail(["the task has not ended in time"], store)
    for line in RECORDING[4:]:
        with pytest.raises(FastenoughError, match="after its end"):
            transcript.take(line)
    assert sealed(store, transcript) is Outcome.FAILED


def test_a_run_that_has_not_begun_gets_no_end(tmp_path: Path) -> None:
    store = Store(tmp_path)
    transcript = begun(store, [])
    transcript.fail(["the board is gone"], store)
    assert transcript.outcome is None and not store.runs()
