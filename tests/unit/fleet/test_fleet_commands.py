# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of a fleet: what they refuse before anything happens, and what they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from fastenough.cli import farm_first_change, farm_order, farm_try
from fastenough.cli.archive_options import ArchiveOptions
from fastenough.fleet.orders import Acknowledgement, Order
from fastenough.fleet.supervised_process import Usage
from fastenough.fleet.trial import FleetTrialResult
from fastenough.model import BadInput
from tests.support.fleet_archive import by_hand, machine, row, write

MACHINE = "0b1c5d7e9f00112233445566778899aa"


def _try(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[Result, int]:
    """The result of a trial of 47 hours, and how many were started."""
    parts = {"server": Usage(1692.0, 10.0, 0)}
    line = FleetTrialResult(10, 10, 10, 0, "", 169_200.0, parts)
    started: list[str] = []

    def lines(module: str, *options: object) -> list[bytes]:
        started.append(module)
        document = vars(line) | {"parts": {name: vars(usage) for name, usage in parts.items()}}
        return [json.dumps(document).encode()]

    monkeypatch.setattr(farm_try, "_lines", lines)
    return CliRunner().invoke(farm_try.command, ["--fleet=5", *words]), len(started)


@pytest.mark.parametrize(("length", "started"), [("47h", 1), ("169201s", 0), ("3d", 0)])
def test_a_trial_ends_before_takers_delete_what_it_counts(
    monkeypatch: pytest.MonkeyPatch, length: str, started: int
) -> None:
    """They delete intervals of days that ended two days ago."""
    done, count = _try(monkeypatch, f"--for={length}")
    assert count == started
    assert isinstance(done.exception, BadInput) is not bool(started)


def test_the_share_of_a_cpu_is_that_of_the_whole_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the time for which it waits for late intervals."""
    done, _ = _try(monkeypatch, "--for=40h")
    assert "1.0%" in done.stdout


def _trace(
    monkeypatch: pytest.MonkeyPatch, words: Sequence[str], before_answer: Callable[[], object]
) -> tuple[Result, int]:
    """Order a trace of a board that answers; the number of orders that were sent."""
    sent: list[Order] = []

    async def send(server: str, order: Order, message: bytes, wait_s: float) -> Acknowledgement:
        sent.append(order)
        before_answer()
        return Acknowledgement(order.id, "done", "", "", b"content")

    monkeypatch.setattr(farm_order, "send", send)
    monkeypatch.setattr(farm_order, "signed", lambda order, key: b"")
    options = ["--nats=nats://127.0.0.1:1", "--sign=key", "--signer=ann", "--json"]
    return CliRunner().invoke(farm_order.command, [MACHINE, "trace", "10min", *options, *words]), len(sent)


def test_a_trace_is_stored_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done, sent = _trace(monkeypatch, [], str)
    (file,) = tmp_path.iterdir()
    assert (sent, done.exception, file.read_bytes()) == (1, None, b"content")
    assert json.loads(done.stdout)["file"] == file.name


@pytest.mark.parametrize("words", [[], ["--out=link"], ["--out=missing/file"]])
def test_a_trace_that_cannot_be_stored_is_not_ordered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """A directory that was removed has no room for a file, for root neither."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if words:
        (folder / "link").symlink_to("nowhere")
    else:
        folder.rmdir()
    done, sent = _trace(monkeypatch, words, str)
    assert isinstance(done.exception, BadInput)
    assert sent == 0


def test_the_answer_is_printed_before_an_error_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    done, sent = _trace(monkeypatch, [f"--out={folder}/trace"], folder.rmdir)
    assert isinstance(done.exception, BadInput)
    assert sent == 1
    document = json.loads(done.stdout)
    assert (document["state"], document["file"]) == ("done", None)


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_false_changes_are_a_finite_number(tmp_path: Path, number: str) -> None:
    options = [f"--archive={tmp_path}", f"--false-changes={number}"]
    done = CliRunner().invoke(farm_first_change.command, options)
    assert done.exit_code == 2 and "--false-changes" in done.output


def test_no_change_is_stated_of_searched_boards_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, (("panel", row(machine(number), "run", (0, 0), np.array([1000]))) for number in range(2)))
    monkeypatch.setattr(ArchiveOptions, "compute", lambda options, job: by_hand(Path(options.archive), job))
    done = CliRunner().invoke(farm_first_change.command, [f"--archive={tmp_path}"])
    assert done.exit_code == 0 and "Not searched: 2 boards" in done.output
    assert "No change" not in done.output
