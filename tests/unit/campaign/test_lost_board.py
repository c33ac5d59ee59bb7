# SPDX-License-Identifier: GPL-2.0-or-later
"""A board that is lost after it has booted and before its first run."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from fastenough.board import AS_BOOTED, Booted
from fastenough.board.configuration import ConfigurationChange, SwitchableBoard
from fastenough.campaign import Plan, run_campaign, runner
from fastenough.campaign.board_name import RecordedBoard
from fastenough.campaign.expand import RunSpec
from fastenough.campaign.measure import BoardSetup, RunContext, store_unmeasured
from fastenough.campaign.plan import Entry
from fastenough.campaign.stop import StopRequest
from fastenough.campaign.transcript import StorageFailure, Transcript
from fastenough.link import BoardGone, FakeLink
from fastenough.link.base import Completed
from fastenough.model import Configuration, FastenoughError, Outcome
from fastenough.recording import LoadStated
from fastenough.recording.building import HeadAdditions
from fastenough.settings import BoardBusy
from fastenough.store import Store
from tests.support.presence import present


class _GoneLink(FakeLink):
    """A link that was lost."""

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        raise BoardGone("the board is gone: connection reset")

    def read(self, path: str) -> bytes:
        raise BoardGone("the board is gone: connection reset")


class _LostBoard:
    """A board that boots and is then lost."""

    def __init__(self, name: str) -> None:
        self.name = name

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED,)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        yield Booted(_GoneLink({}), Configuration(configuration), "probe")


class _BusyBoard(_LostBoard):
    """A board that is not booted, because another bench measures there."""

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        raise BoardBusy("another fastenough is measuring on this board")
        yield


def plan_for(*boards: str) -> Plan:
    return Plan("test", (Entry("timer", ("none",), 1.0, {}),), boards=boards)


def test_its_error_is_raised_if_it_is_the_only_board(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(BoardGone, match="connection reset"):
        run_campaign(plan_for("ssh://a"), store, opened=_LostBoard, journal=tmp_path / "journal")
    assert not store.runs()


def test_its_runs_are_stored_as_failed_beside_other_boards(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    made = run_campaign(plan_for("ssh://a", "ssh://b"), store, opened=_LostBoard, journal=tmp_path / "journal")
    runs = [store.load(run) for run in made.runs]
    assert [(run.head.board, run.outcome) for run in runs] == [
        ("ssh://a", Outcome.FAILED),
        ("ssh://b", Outcome.FAILED),
    ]
    assert all("connection reset" in run.reasons[0] for run in runs)


def test_another_error_before_the_first_run_ends_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as another bench that measures: it is no fault of the board, and the next one would have it too."""

    def busy(*_: object) -> NoReturn:
        raise FastenoughError("another bench measures")

    monkeypatch.setattr(runner, "recorded_board", busy)
    monkeypatch.setattr(runner, "check_cpus", lambda plan, link: None)
    store = Store(tmp_path / "store")
    with pytest.raises(FastenoughError, match="another bench"):
        run_campaign(plan_for("ssh://a", "ssh://b"), store, opened=_LostBoard, journal=tmp_path / "journal")
    assert not store.runs()


def test_no_run_of_a_board_that_another_bench_uses_is_stored(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(BoardBusy):
        run_campaign(plan_for("ssh://a", "ssh://b"), store, opened=_BusyBoard, journal=tmp_path / "journal")
    assert not store.runs()


class _RefusedBoard(_LostBoard):
    """A board that cannot be booted, because this machine has too many processes."""

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        yield


def test_an_error_of_the_system_during_a_boot_fails_only_that_configuration(tmp_path: Path) -> None:
    def opened(name: str) -> _LostBoard:
        return _RefusedBoard(name) if name == "ssh://a" else _LostBoard(name)

    store = Store(tmp_path / "store")
    made = run_campaign(plan_for("ssh://a", "ssh://b"), store, opened=opened, journal=tmp_path / "journal")
    first, second = (store.load(run) for run in made.runs)
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.FAILED)
    assert re.search(f"ssh://a .* as-booted: .*{os.strerror(errno.EAGAIN)}", first.reasons[0])
    assert "connection reset" in second.reasons[0]
    with pytest.raises(FastenoughError, match=os.strerror(errno.EAGAIN)):
        run_campaign(plan_for("ssh://a"), store, opened=opened, journal=tmp_path / "journal")


def test_a_deterministic_board_that_does_not_boot_has_its_kernel_in_its_runs(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    plan = plan_for("deterministic:rt", "deterministic", "ssh://a")
    made = run_campaign(plan, store, opened=_RefusedBoard, journal=tmp_path / "journal")
    heads = [store.load(run).head for run in made.runs]
    assert [present(head.configuration, "configuration").name for head in heads] == ["rt", "stock", AS_BOOTED]


class _UpBoard(_LostBoard):
    """A board that stays up; with ``fault``, an error of its system occurs when it is closed."""

    def __init__(self, name: str, fault: OSError | None = None) -> None:
        super().__init__(name)
        self.fault = fault

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        yield Booted(FakeLink({}), Configuration(configuration), "probe")
        if self.fault is not None:
            raise self.fault


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _raising(error: Exception) -> Callable[..., NoReturn]:
    """A function that raises an error."""

    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def measure_or_fail(
    raising: Sequence[Exception | None], *, stored: bool = False
) -> Callable[[BoardSetup, RunSpec, RunContext], Transcript]:
    """A function like ``measure`` that stores runs as failed, and raises an error for the runs that have one, which are
    stored before only if ``stored``."""

    def measured(site: BoardSetup, spec: RunSpec, context: RunContext) -> Transcript:
        error = raising[spec.position]
        if error is not None and not stored:
            raise error
        added = HeadAdditions(site.board.name, site.booted.configuration, LoadStated(spec.load))
        transcript = store_unmeasured(spec, context, added, FastenoughError("measured"))
        if error is not None:
            raise error
        return transcript

    return measured


@pytest.mark.parametrize("when", ["before", "within", "behind", "after"])
def test_an_error_of_the_system_after_the_boot_fails_only_that_configuration(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first run, within and directly behind one of two runs, and when the board is closed after both."""

    def recorded(board: str, *_: object) -> RecordedBoard:
        if when == "before" and board == "ssh://a":
            raise full_disk()
        return RecordedBoard(board)

    def opened(name: str) -> _UpBoard:
        return _UpBoard(name, full_disk() if when == "after" and name == "ssh://a" else None)

    lines: list[str] = []
    monkeypatch.setattr(runner, "recorded_board", recorded)
    monkeypatch.setattr(runner, "check_cpus", lambda plan, link: None)
    faults = {"within": full_disk(), "behind": full_disk()}
    monkeypatch.setattr(runner, "measure", measure_or_fail([faults.get(when), *3 * [None]], stored=when == "behind"))
    plan = Plan("test", (Entry("timer", ("none", "cpu"), 1.0, {}),), boards=("ssh://a", "ssh://b"))
    store = Store(tmp_path / "store")
    made = run_campaign(plan, store, opened=opened, journal=tmp_path / "journal", tell=lines.append)
    runs = [store.load(run) for run in made.runs]
    assert [run.head.board for run in runs] == ["ssh://a", "ssh://a", "ssh://b", "ssh://b"]
    failed = [os.strerror(errno.ENOSPC) in run.reasons[0] for run in runs]
    assert failed == [when in ("before", "within"), when != "after", False, False]
    assert len(lines) == (when != "before")
    alone = replace(plan, boards=("ssh://a",))
    with pytest.raises(FastenoughError, match=os.strerror(errno.ENOSPC)):
        run_campaign(alone, store, opened=opened, journal=tmp_path / "journal")


def test_a_full_disk_of_the_bench_ends_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "check_cpus", lambda plan, link: None)
    for place, error in (("measure", StorageFailure("the disk is full")), ("recorded_board", FastenoughError("full"))):
        with monkeypatch.context() as patched:
            patched.setattr(runner, "measure", measure_or_fail([error, None]))
            if place == "recorded_board":
                patched.setattr(runner, place, _raising(error))
            store = Store(tmp_path / f"store-{place}")
            with pytest.raises(FastenoughError, match="full"):
                run_campaign(plan_for("ssh://a", "ssh://b"), store, opened=_UpBoard, journal=tmp_path / "journal")
        assert not store.runs()


class _SilentBoard(_LostBoard):
    """A board that does not come up; a stop is requested while it boots."""

    def __init__(self, name: str, stopping: StopRequest) -> None:
        super().__init__(name)
        self.stopping = stopping

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        if not self.stopping.requested:
            self.stopping.request(signal.SIGTERM)
        raise BoardGone("no route to host")
        yield


def test_a_stop_while_a_board_boots_ends_the_campaign_without_runs(tmp_path: Path) -> None:
    stopping = StopRequest()
    changes = {"stock": ConfigurationChange()}

    def opened(name: str) -> SwitchableBoard:
        board = _SilentBoard(name, stopping)
        return SwitchableBoard(board, changes, lambda board, configuration, why: None, stopping.sleep, boot_s=3.0)

    store = Store(tmp_path / "store")
    plan = replace(plan_for("ssh://a", "ssh://b"), configurations=("stock",))
    made = run_campaign(plan, store, opened=opened, stopping=stopping, journal=tmp_path / "journal")
    assert (made.runs, made.stopped, made.signal) == ((), True, signal.SIGTERM)
    assert not store.runs()
