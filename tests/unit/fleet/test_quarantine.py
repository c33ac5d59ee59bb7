# SPDX-License-Identifier: GPL-2.0-or-later
"""Lifting a quarantine: on the record, and without effect on what comes when two boards still publish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastenough.cli.farm_quarantine import command
from fastenough.fleet.chunk import Chunk
from fastenough.fleet.quarantine import LiftedQuarantine, lift, lifted, quarantined
from fastenough.fleet.simulated import CPUS
from fastenough.model import BadInput
from tests.support.fleet_shard import BEGIN_S, ShardBench, board
from tests.support.json_documents import require_valid


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ShardBench]:
    """One whose machine is quarantined: chunks of two boots have come by turns."""
    one = ShardBench(tmp_path)
    one.history.wall_s = lambda: BEGIN_S + 600
    for boot, first, refused in (("a", 0, 0), ("b", 0, 0), ("a", 1, 1)):
        assert len(one.store(of_boot(boot, first)).refused) == refused
    yield one
    one.history.close()


def of_boot(boot: str, first: int) -> Chunk:
    chunk = board().chunk(first, 1)
    run = f"{chunk.run}-{boot}"
    head = chunk.head.replace(board().machine[:8].encode() + b"-0000", boot.encode() * 8 + b"-0000")
    return replace(chunk, run=run, head=head.replace(chunk.run.encode(), run.encode()))


def test_a_lifted_quarantine_is_recorded_and_the_board_is_stored_again(bench: ShardBench) -> None:
    (found,) = quarantined(bench.history)
    assert (found.machine, found.type) == (board().machine, board().chunk(0, 1).type) and "two boards" in found.fault
    done = lift(bench.history, board().machine, "ann", "the copy has a new id")
    assert done == LiftedQuarantine(board().machine, int(BEGIN_S) + 600, "ann", "the copy has a new id", found.fault)
    assert quarantined(bench.history) == [] and lifted(bench.history) == [done]
    for first in (1, 2):
        assert not bench.store(of_boot("a", first)).refused
    assert len(bench.stored()) == 4 * CPUS


def test_two_boards_that_go_on_are_quarantined_again(bench: ShardBench) -> None:
    lift(bench.history, board().machine, "ann", "hope")
    assert [len(bench.store(of_boot(boot, first)).refused) for boot, first in (("a", 1), ("b", 1), ("a", 2))] == [
        0,
        0,
        1,
    ]
    lift(bench.history, board().machine, "bob", "hope again")
    assert [one.by for one in lifted(bench.history)] == ["ann", "bob"]


@pytest.mark.parametrize(
    ("machine", "by", "reason"),
    [
        ("f" * 32, "ann", "why"),
        ("", "ann", "why"),
        ("x'; DROP TABLE fleet_machine; --", "ann", "why"),
        (board().machine, "", "why"),
        (board().machine, "ann", " "),
        (board().machine, "ann\nbob", "why"),
        (board().machine, "ann", "\x1b[31m"),
        (board().machine, "ann", "x" * 1001),
    ],
)
def test_what_names_no_quarantine_or_no_reason_changes_nothing(
    bench: ShardBench, machine: str, by: str, reason: str
) -> None:
    with pytest.raises(BadInput):
        lift(bench.history, machine, by, reason)
    assert len(quarantined(bench.history)) == 1 and lifted(bench.history) == []


def test_a_quarantine_is_lifted_once(bench: ShardBench) -> None:
    lift(bench.history, board().machine, "ann", "why")
    with pytest.raises(BadInput):
        lift(bench.history, board().machine, "ann", "why")


def test_the_commands_print_what_their_schemas_say(bench: ShardBench, tmp_path: Path) -> None:
    def printed(*words: str) -> dict[str, Any]:
        options = ["--database", f"sqlite:///{tmp_path}/history.sqlite", "--json"]
        done = CliRunner().invoke(command, [*words, *options], catch_exceptions=False)
        document: dict[str, Any] = require_valid(f"farm quarantine {words[0]}", done.stdout)
        return document

    assert len(printed("list")["quarantined"]) == 1
    assert printed("lift", board().machine, "--reason", "because", "--by", "ann")["lifted"]["by"] == "ann"
    assert [one["reason"] for one in printed("list")["lifted"]] == ["because"]


def test_reasons_in_the_column_of_earlier_versions_are_read(bench: ShardBench) -> None:
    """The column of the database is still called ``why``."""
    with bench.history.writing() as connection:
        connection.exec_driver_sql(
            'INSERT INTO fleet_lifted (machine, at_s, "by", why, fault) '
            "VALUES ('m', 7, 'ann', 'copied', 'two boards')"
        )
    assert lifted(bench.history) == [LiftedQuarantine("m", 7, "ann", "copied", "two boards")]


def test_a_user_without_a_name_must_write_one(
    bench: ShardBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number that /etc/passwd does not list."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    words = ["lift", board().machine, "--reason", "because", "--database", f"sqlite:///{tmp_path}/history.sqlite"]
    assert isinstance(CliRunner().invoke(command, words).exception, BadInput)
    assert len(quarantined(bench.history)) == 1
