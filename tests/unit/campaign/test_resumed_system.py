# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign is resumed only on the system of its kept runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fastenough.board import AS_BOOTED, Board, Booted
from fastenough.campaign import Plan, run_campaign, runner
from fastenough.campaign.expand import WHOLE, RunSpec, expand
from fastenough.campaign.ledger import Ledger
from fastenough.campaign.measure import BoardSetup, RunContext, store_unmeasured
from fastenough.campaign.plan import Entry
from fastenough.campaign.transcript import Transcript, Writer
from fastenough.link import FakeLink, Link
from fastenough.model import BadInput, Configuration, FastenoughError, NotApplicable
from fastenough.recording import LoadStated
from fastenough.recording.building import HeadAdditions
from fastenough.store import Store
from tests.support import recordings as made

BOARD = "ssh://board"
PLAN = Plan("test", (Entry("timer", ("none", "full"), 1.0, {}),), boards=(BOARD,))
BOOTED = Configuration("as-booted", "6.1.0-30-amd64", "c" * 64, "quiet isolcpus=1")
MACHINE = ["a" * 64]
VERSION = "#1 SMP PREEMPT_RT Debian 6.1.148-1"
KERNEL = {"release": BOOTED.kernel_release, "version": VERSION, "build_id": "cd34"}
NO_NAMES: Mapping[str, str] = {}
PROFILE: dict[str, Any] = {"machine": MACHINE, "kernel": KERNEL}


class _Reached(FastenoughError):
    """The board is ready for its first remaining run."""


@dataclass
class _Board:
    """A board that is measured as booted."""

    booted: Configuration
    name: str = BOARD

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED,)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        yield Booted(FakeLink({}), self.booted, "probe")


def _kept(store: Store, folder: Path, plan: Plan = PLAN, names: Mapping[str, str] = NO_NAMES) -> None:
    """Store the first run on each board of the plan, which had the load none; ``names``: other names in the runs."""
    specs = expand(plan)
    ledger = Ledger.of(plan, specs, store, resume=False)
    for spec in specs:
        if spec.load == "none":
            _store(
                ledger.begin(store, spec, WHOLE), folder / f"made-{spec.position}", names.get(spec.board, spec.board)
            )


def _store(writer: Writer, path: Path, board: str) -> None:
    """Write a completed recording of the system of the kept runs."""
    profile = made.PROFILE | PROFILE
    content = made.write(path, made.Plan([], writer.id, head={"profile": profile, "board": board})).read_bytes()
    release, sha256, words = BOOTED.kernel_release, BOOTED.kernel_config_sha256, BOOTED.command_line
    for name, value in (("kernel_release", release), ("kernel_config_sha256", sha256), ("command_line", words)):
        content = content.replace(f'"{name}":null'.encode(), f'"{name}":"{value}"'.encode())
    for line in content.splitlines(keepends=True):
        writer.line(line)
    writer.end()


def _resume(store: Store, booted: Configuration, profile: dict[str, Any], patch: pytest.MonkeyPatch) -> None:
    def measured(*_: Any) -> None:
        raise _Reached

    def opened(name: str) -> Board:
        return _Board(booted)

    def collected(link: Link, names: Sequence[str]) -> dict[str, Any]:
        return {name: profile.get(name) for name in names}

    patch.setattr(runner, "collect", collected)
    patch.setattr(runner, "measure", measured)
    run_campaign(PLAN, store, resume=True, opened=opened, journal=store.path / "journal")


@pytest.mark.parametrize(
    ("booted", "profile", "expected"),
    [
        (BOOTED, PROFILE, None),
        (Configuration("as-booted"), {}, None),
        (BOOTED, {"kernel": {"release": BOOTED.kernel_release, "version": None}}, None),
        (
            Configuration("as-booted", "6.1.0-31-amd64", "c" * 64, "quiet isolcpus=1"),
            PROFILE,
            r"6\.1\.0-31.*6\.1\.0-30",
        ),
        (BOOTED, PROFILE | {"kernel": {"version": "#2 SMP"}}, f"kernel version #2 SMP, .* {VERSION}; boot that"),
        (BOOTED, PROFILE | {"kernel": KERNEL | {"build_id": "ab12"}}, "kernel build ID ab12, .* cd34; boot"),
        (BOOTED, PROFILE | {"kernel": KERNEL | {"build_id": None}}, None),
        (Configuration("as-booted", "6.1.0-30-amd64", "d" * 64, "quiet isolcpus=1"), PROFILE, "kernel configuration d"),
        (Configuration("as-booted", "6.1.0-30-amd64", "c" * 64, "quiet"), PROFILE, "command line quiet, .* isolcpus=1"),
        (BOOTED, PROFILE | {"machine": ["b" * 64]}, "not the machine"),
    ],
)
def test_the_board_must_be_the_system_of_the_kept_runs(
    booted: Configuration,
    profile: dict[str, Any],
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel may have been upgraded between the two parts of the campaign, also to another build of one release."""
    store = Store(tmp_path / "store")
    _kept(store, tmp_path)
    with pytest.raises(_Reached if expected is None else BadInput, match=expected):
        _resume(store, booted, profile, monkeypatch)
    assert len(store.runs()) == 1


@pytest.mark.parametrize(
    ("profile", "expected"), [({}, f"host name is {BOARD}, theirs was 3f2a.*--hostname 3f2a"), (PROFILE, None)]
)
def test_a_machine_without_identifiers_must_have_the_name_of_its_kept_runs(
    profile: dict[str, Any], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has another host name each time it is started."""
    store = Store(tmp_path / "store")
    _kept(store, tmp_path, names={BOARD: "3f2a"})
    with pytest.raises(_Reached if expected is None else BadInput, match=expected):
        _resume(store, BOOTED, profile, monkeypatch)


@pytest.mark.parametrize("changed", [0, 1])
def test_one_changed_board_leaves_the_runs_of_the_others(
    changed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own runs are failed, with the difference, so that the next resume repeats them."""
    store, plan = Store(tmp_path / "store"), replace(PLAN, boards=(f"{BOARD}-0", f"{BOARD}-1"))
    _kept(store, tmp_path, plan)

    def measured(site: BoardSetup, spec: RunSpec, context: RunContext) -> Transcript:
        added = HeadAdditions(site.board.name, site.booted.configuration, LoadStated(spec.load))
        return store_unmeasured(spec, context, added, NotApplicable("stands for a measurement"))

    def opened(name: str) -> Board:
        return _Board(replace(BOOTED, command_line="quiet") if name == plan.boards[changed] else BOOTED, name)

    monkeypatch.setattr(runner, "collect", lambda link, names: PROFILE)
    monkeypatch.setattr(runner, "measure", measured)
    campaign = run_campaign(plan, store, resume=True, opened=opened, journal=store.path / "journal")
    reasons = [store.load(campaign.runs[position]).reasons for position in (1, 3)]
    assert "command line quiet" in reasons[changed][0]
    assert "stands for a measurement" in reasons[1 - changed][0]
