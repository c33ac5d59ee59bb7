# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign from plan to store: each board booted once per configuration, each run measured, everything put back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path

from fastenough.board import AS_BOOTED, Board, Booted, open_board
from fastenough.board.configuration import Ask, ConfigurationChange, SwitchableBoard, require_remote
from fastenough.campaign.acts import check_cpus
from fastenough.campaign.expand import RunSpec, expand, recordings_of
from fastenough.campaign.instrument import OpenInstrument, open_instrument
from fastenough.campaign.ledger import Ledger
from fastenough.campaign.measure import LATE_SETTINGS, BoardSetup, RunContext, measure, store_unmeasured
from fastenough.campaign.plan import GPIO_PROBES, Plan
from fastenough.campaign.progress import Clock, Progress
from fastenough.campaign.stop import StopRequest, stop_on_signals
from fastenough.campaign.transcript import RunStore, Transcript
from fastenough.link import BoardGone, LocalLink
from fastenough.model import BadInput, Configuration, FastenoughError, NotApplicable
from fastenough.recording import LoadStated
from fastenough.recording.building import HeadAdditions
from fastenough.recording.head import RecordedSetting
from fastenough.settings import Settings, default_journal, print_settings, run_journal
from fastenough.settings.setting import Requested

BENCH_SETTINGS = ("control-priority",)
"""Settings of the machine the bench runs on; all others are the board's."""

OnProgress = Callable[[Progress], None]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Campaign:
    """What came of it: run ids in the order of the plan, those found done at resuming included.

    ``signal``: the number of the signal that stopped it, 0 where it was none.
    """

    id: str
    runs: tuple[str, ...]
    stopped: bool
    signal: int = 0


def run_campaign(
    plan: Plan,
    keeper: RunStore,
    on_progress: OnProgress | None = None,
    *,
    resume: bool = False,
    opened: Callable[[str], Board] = open_board,
    stopping: StopRequest | None = None,
    journal: Path | None = None,
    tell: Tell | None = None,
) -> Campaign:
    """Make every run of the plan, in order, and keep each; with an instrument, the board's own recording beside it.

    With ``resume`` the newest unfinished campaign of the same plan in the store goes on.  ``opened`` gives the board of
    a name.  The plan's settings hold from the first run of a configuration to its last and are put back, by the next
    campaign if need be (``journal``).  SIGINT and SIGTERM end the run in progress in good order (outcome aborted) and
    the campaign with it.  ``tell`` is given a line for each setting that an earlier bench left behind, and for each
    that cannot be made here.

    A configuration that does not come up, or a run that cannot be measured, is kept as failed or not applicable with
    its reason, and the rest goes on.  Raises BadInput for what cannot be, at the first run, GaugeLost when the
    instrument is gone, FastenoughError when the store takes no more; what was recorded stays.  Where all runs are of
    one board that is measured as booted and cannot be reached, there is no rest: its error is raised, and no run kept.
    """
    stopping = stopping or StopRequest()
    keeper.settle()
    specs = expand(plan)
    making = _Making(
        plan, specs, keeper, Ledger.of(plan, specs, keeper, resume), on_progress or _nobody, stopping, journal, tell
    )
    with stop_on_signals(stopping), ExitStack() as stack:
        for (name, configuration), left in groupby(making.left, lambda spec: (spec.board, spec.configuration)):
            if not stopping.asked:
                making.configuration(opened(name), configuration, list(left), stack)
    done = making.ledger.done
    return Campaign(
        making.ledger.campaign, tuple(done[position] for position in sorted(done)), stopping.asked, stopping.signal
    )


def _nobody(progress: Progress) -> None:
    """Nobody wants to know."""


@dataclass
class _Making:
    """One campaign on its way; ``specs`` are all runs of the plan."""

    plan: Plan
    specs: list[RunSpec]
    keeper: RunStore
    ledger: Ledger
    on_progress: OnProgress
    stopping: StopRequest
    journal: Path | None
    tell: Tell | None
    bench_settings: list[RecordedSetting] | None = None

    def __post_init__(self) -> None:
        self.left = [spec for spec in self.specs if not self.ledger.has(spec)]
        self._clock = Clock(self.left)
        self._told: set[str] = set()

    def _report(self, spec: RunSpec, phase: str, transcript: Transcript | None) -> None:
        writer = transcript.writer if transcript else None
        self.on_progress(
            Progress(
                self.ledger.campaign,
                spec.position + 1,
                len(self.specs),
                spec,
                phase,
                self._clock.remaining_s(),
                self._clock.later_s(),
                dict(transcript.worst_ns) if transcript else {},
                writer.id if writer else None,
                transcript.outcome if transcript else None,
                transcript.reasons if transcript else (),
                transcript.profile if transcript else None,
            )
        )

    def configuration(self, board: Board, configuration: str, specs: Sequence[RunSpec], bench: ExitStack) -> None:
        """All runs of one board in one configuration; on a board that is gone nothing is left to be put back."""
        try:
            with ExitStack() as opening:
                booted, instrument = self._up(board, configuration, specs[0], opening)
                opened = opening.pop_all()
        except BadInput:
            raise
        except FastenoughError as error:
            if configuration == AS_BOOTED and len(specs) == len(self.specs):
                raise
            self._not_up(board, configuration, specs, error)
            return
        with suppress(BoardGone), opened as stack:
            if not self.ledger.done:
                check_cpus(self.plan, booted.link)
            entries = self._settings(booted, stack, bench)
            late = {name: value for name, value in self.plan.settings.items() if self._is_late(name)}
            journal = run_journal(self.journal or default_journal(booted.link))
            site = BoardSetup(self.plan, board.name, booted, journal, entries, late, instrument)
            for spec in specs:
                if not self.stopping.asked:
                    self._run(site, spec)

    def _up(
        self, board: Board, configuration: str, first: RunSpec, stack: ExitStack
    ) -> tuple[Booted, OpenInstrument | None]:
        """The board booted, and the plan's instrument beside it."""
        self._clock.begin()
        if configuration != AS_BOOTED:
            self._report(first, "booting", None)
        try:
            booted = stack.enter_context(board.boot(configuration))
            wanted = self.plan.instrument
            return booted, stack.enter_context(open_instrument(wanted, booted)) if wanted else None
        finally:
            self._clock.end()

    def _run(self, site: BoardSetup, spec: RunSpec) -> None:
        """What is refused at the first run ends the campaign while its user is there; later ones are kept as such."""
        self._clock.begin()
        context = self._context(spec)
        try:
            transcript = measure(site, spec, context)
        except BadInput as refused:
            if not self.ledger.done:
                raise
            added = HeadAdditions(
                site.board, site.booted.configuration, LoadStated(spec.load), requirement=spec.requirement
            )
            transcript = store_unmeasured(spec, context, added, NotApplicable(str(refused)))
        self._clock.end()
        self._report(spec, "ended", transcript)

    def _context(self, spec: RunSpec) -> RunContext:
        return RunContext(
            self.keeper,
            partial(self.ledger.begin, self.keeper, spec),
            self.stopping,
            partial(self._report, spec),
            self._tell_once,
        )

    def _tell_once(self, line: str) -> None:
        """What holds for every run is told with the first."""
        if self.tell is not None and line not in self._told:
            self.tell(line)
        self._told.add(line)

    def _not_up(self, board: Board, configuration: str, specs: Sequence[RunSpec], error: FastenoughError) -> None:
        """Runs that could not be measured, each with the reason."""
        for spec in specs:
            added = HeadAdditions(
                board.name, Configuration(configuration), LoadStated(spec.load), requirement=spec.requirement
            )
            self._clock.skip()
            self._report(spec, "ended", store_unmeasured(spec, self._context(spec), added, error))

    def _is_late(self, name: str) -> bool:
        return name in LATE_SETTINGS and any(entry.probe in GPIO_PROBES for entry in self.plan.entries)

    def _settings(self, booted: Booted, stack: ExitStack, bench: ExitStack) -> list[RecordedSetting]:
        """The plan's settings, as read back: the bench's own are made once, the board's for each configuration."""
        on_bench = booted.link.name == "local"
        if not on_bench and self.bench_settings is None:
            values = {name: value for name, value in self.plan.settings.items() if name in BENCH_SETTINGS}
            self.bench_settings = self._applied(bench.enter_context(Settings(LocalLink())), values) if values else []
        values = {
            name: value
            for name, value in self.plan.settings.items()
            if (on_bench or name not in BENCH_SETTINGS) and not self._is_late(name)
        }
        made = self._applied(stack.enter_context(Settings(booted.link, self.journal)), values)
        return [*(self.bench_settings or []), *made] if not on_bench else [*made]

    def _applied(self, settings: Settings, values: Mapping[str, Requested]) -> list[RecordedSetting]:
        entries = settings.apply_all(values)
        print_settings(settings.restored, settings.warnings, entries, self.tell)
        return entries


def on_board(plan: Plan, board: str) -> Plan:
    """The plan on the board that the command names; raises BadInput where the plan itself names another."""
    if plan.boards and plan.boards != (board,):
        raise BadInput(f"the plan names its own board ({', '.join(plan.boards)}); remove --board {board}")
    return replace(plan, boards=(board,))


def with_configurations(
    plan: Plan, opened: Callable[[str], Board], ask: Ask, seen: Mapping[str, Mapping[str, Configuration]]
) -> Callable[[str], Board]:
    """As ``opened``, but a board that is measured as it is found is changed as the plan says, or by hand.

    ``seen``: by board, what its configurations were found to be so far.  A plan with one configuration of which it
    says nothing gives it a name, and changes nothing.
    """
    changes = {name: plan.changes.get(name, ConfigurationChange()) for name in plan.configurations}

    @cache
    def of(name: str) -> Board:
        board = opened(name)
        if board.configurations() != (AS_BOOTED,) or (len(changes) < 2 and not plan.changes):
            return board
        require_remote(board, changes)
        return SwitchableBoard(board, changes, ask, dict(seen.get(name, {})))

    return of


def known_configurations(plan: Plan, keeper: RunStore, done: Mapping[int, str]) -> dict[str, dict[str, Configuration]]:
    """By board, what its configurations were when they were measured; ``done``: run ids by position in the store."""
    specs, each = expand(plan), len(recordings_of(plan))
    seen: dict[str, dict[str, Configuration]] = {}
    for position, run in done.items():
        spec = specs[position // each]
        found = seen.setdefault(spec.board, {})
        if spec.configuration not in found:
            configuration = keeper.load(run).head.configuration
            if configuration is not None and configuration.kernel_release is not None:
                found[spec.configuration] = configuration
    return seen
