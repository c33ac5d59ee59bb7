# SPDX-License-Identifier: GPL-2.0-or-later
"""A monitor that the board starts and ends with the measurement: its recording is taken afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fastenough.board import Booted
from fastenough.campaign.expand import RunSpec
from fastenough.campaign.monitoring import TYPES, monitor_beside, own_thread_name
from fastenough.campaign.transcript import Transcript
from fastenough.link import FakeLink
from fastenough.link.base import Completed
from fastenough.model import Configuration, Outcome
from fastenough.recording import LoadProof
from fastenough.recording.building import HeadAdditions, line_bytes
from fastenough.recording.head import NOT_APPLICABLE, RecordedSetting
from fastenough.settings import Settings
from fastenough.settings.place import PlaceEntry
from fastenough.settings.setting import Requested
from fastenough.settings.tracing import INSTANCE, InstancePlace
from fastenough.store import Store
from tests.support.monitor_recordings import Watched, lines

SPEC = RunSpec(0, "timer", {"interval": "1ms"}, "none", 1.0)
PROGRAM = "/bin/fastenough-monitor"


class _WithMonitor(FakeLink):
    def which(self, tool: str) -> str | None:
        return PROGRAM


def _board(done: Completed) -> tuple[Booted, list[list[str]]]:
    """A board whose monitor did this, and the command lines it was given."""
    given: list[list[str]] = []

    @contextmanager
    def watch(argv: Sequence[str]) -> Iterator[Callable[[], Completed]]:
        given.append(list(argv))
        yield lambda: done

    link = _WithMonitor({TYPES: ""})
    return Booted(link, Configuration("stock", None, None, None), "probe", watch=watch), given


def _watched(booted: Booted, store: Store) -> tuple[Transcript, list[str]]:
    told: list[str] = []
    transcript = Transcript(
        partial(store.begin, {}),
        HeadAdditions("deterministic", booted.configuration, None),
        lambda: LoadProof(None, True),
    )
    with monitor_beside(
        booted, SPEC, transcript, store, told.append, thread_name=own_thread_name(booted), settings=None
    ):
        assert transcript.writer is None, "the monitor has not run yet"
    return transcript, told


def test_its_recording_is_taken_after_the_measurement(tmp_path: Path) -> None:
    recording = b"".join(map(line_bytes, lines(Watched())))
    booted, given = _board(Completed(0, recording, b""))
    store = Store(tmp_path)
    transcript, told = _watched(booted, store)
    assert transcript.writer is not None and told == []
    assert store.load(transcript.writer.id).outcome is Outcome.COMPLETED
    assert given[0][0] == PROGRAM and {"--comm=fastenough-0000", "--until-interrupt", "--record=-"} <= set(given[0])


def test_a_monitor_that_could_not_run_is_told_with_its_message(tmp_path: Path) -> None:
    booted, _ = _board(Completed(5, b"", b"fastenough-monitor: no BPF\n"))
    transcript, told = _watched(booted, Store(tmp_path))
    assert transcript.outcome is Outcome.NOT_APPLICABLE and "no BPF" in told[0]


class _TracingSettings(Settings):
    """The settings of a run that traces."""

    def __init__(self) -> None:
        """Open no journal."""

    @property
    def places(self) -> list[PlaceEntry]:
        return [InstancePlace().entry()]

    def apply_all(self, all_requested: Mapping[str, Requested]) -> list[RecordedSetting]:
        why = f"{NOT_APPLICABLE}{INSTANCE} exists: another fastenough is using it"
        return [RecordedSetting(name, requested, None, reason=why) for name, requested in all_requested.items()]


def test_a_run_that_traces_has_no_monitor_without_type_information(tmp_path: Path) -> None:
    """The instance of the histograms is that of the run, not one of another program."""
    booted, store, told = Booted(FakeLink({}), Configuration("stock"), "probe"), Store(tmp_path), list[str]()
    transcript = Transcript(
        partial(store.begin, {}), HeadAdditions("board", booted.configuration, None), lambda: LoadProof(None, True)
    )
    with monitor_beside(booted, SPEC, transcript, store, told.append, thread_name="", settings=_TracingSettings()):
        pass
    assert transcript.outcome is Outcome.NOT_APPLICABLE
    assert "the run uses the tracing instance" in told[0] and "another" not in told[0]


def test_a_recording_without_end_has_failed(tmp_path: Path) -> None:
    recording = b"".join(map(line_bytes, list(lines(Watched()))[:-1]))
    booted, _ = _board(Completed(137, recording, b""))
    transcript, told = _watched(booted, Store(tmp_path))
    assert transcript.outcome is Outcome.FAILED and "137" in told[0]
