# SPDX-License-Identifier: GPL-2.0-or-later
"""The command prints and writes the result of a hunt, however its run with the monitor ends."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from fastenough.campaign.runner import Campaign
from fastenough.cli import hunt as command
from fastenough.jobs import hunt_report
from fastenough.jobs.hunt import HuntResult
from fastenough.link import BoardGone
from fastenough.loads import find_load
from fastenough.model import BadInput
from fastenough.store import Store
from tests.support.hunt_machines import searched


@pytest.fixture
def hunted(monkeypatch: pytest.MonkeyPatch) -> HuntResult:
    search, made = searched()
    hunted = HuntResult("hunt-1", search, 2, tuple(made), 0)
    assert hunted.load is not None
    monkeypatch.setattr(command, "make_hunt", lambda *others, **more: hunted)
    monkeypatch.setattr(command, "boards_for", lambda plan, *others: (None, plan))
    return hunted


def _call(folder: Path) -> int:
    assert command.command.callback is not None
    status = command.command.callback(
        probe="timer",
        parameters=(),
        budget_ns=None,
        trials=None,
        load_space=None,
        out=folder / "worst.toml",
        report_path=None,
        board="local",
        resume=False,
        as_granted=False,
        store_path=folder / "store",
        as_json=True,
    )
    assert isinstance(status, int)
    return status


def test_a_board_that_is_gone_under_the_worst_load_does_not_take_the_result_along(
    tmp_path: Path, hunted: HuntResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*others: object, **more: object) -> Campaign:
        raise BoardGone("the board is gone")

    concluded: list[tuple[str, ...]] = []
    monkeypatch.setattr(hunt_report, "run_campaign", gone)
    monkeypatch.setattr(hunt_report, "store_conclusion", lambda store, runs, section: concluded.append(runs))
    with pytest.raises(BoardGone):
        _call(tmp_path)
    document = json.loads(capsys.readouterr().out)
    assert hunted.load is not None
    assert document["culprit"] is None and document["load"]["name"] == hunted.load.name
    assert hunted.load.name in (tmp_path / "worst.toml").read_text()
    assert concluded == [hunted.runs]


def test_a_run_with_the_monitor_that_is_stopped_gives_no_cause(
    tmp_path: Path, hunted: HuntResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hunt_report, "run_campaign", lambda *others, **more: Campaign("hunt-2", (), True, 2))
    assert _call(tmp_path) == 128 + signal.SIGINT
    printed = capsys.readouterr()
    assert "--resume" in printed.err and json.loads(printed.out)["culprit"]["cause"].startswith("not searched")
    assert Store(tmp_path / "store").runs() == []


@pytest.mark.parametrize("exists", [False, True])
def test_the_load_file_takes_the_place_of_no_link(tmp_path: Path, exists: bool) -> None:
    """Another user can put a link into the folder, before the hunt or while it runs."""
    victim, out = tmp_path / "victim.toml", tmp_path / "worst.toml"
    if exists:
        victim.write_text("before")
    out.symlink_to(victim)
    with pytest.raises(BadInput, match=r"symbolic link[^;]+; remove it$"):
        command._require_place(out)
    assert command._write(out, find_load("cpu")) is None
    assert out.is_symlink() and victim.exists() == exists and (not exists or victim.read_text() == "before")


def test_a_load_file_is_replaced_whole(tmp_path: Path) -> None:
    out = tmp_path / "worst.toml"
    out.write_text("before" * 1000)
    command._require_place(out)
    assert command._write(out, find_load("cpu")) == out and "before" not in out.read_text()
    assert list(tmp_path.iterdir()) == [out]
