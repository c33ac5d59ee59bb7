# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign from plan to store: boot each board once per configuration, measure each run, restore the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from fastenough.board import AS_BOOTED, Board, Booted, listed_configuration, open_board
from fastenough.board.configuration import (
    Ask,
    ConfigurationChange,
    Sleep,
    SwitchableBoard,
    SystemParts,
    first_change,
    require_remote,
    system_parts,
)
from fastenough.board.labgrid import stoppable
from fastenough.campaign.acts import check_cpus
from fastenough.campaign.board_name import RecordedBoard, name_in_runs, recorded_board
from fastenough.campaign.expand import RunSpec, expand, recordings_of
from fastenough.campaign.instrument import OpenInstrument, open_instrument
from fastenough.campaign.ledger import Ledger
from fastenough.campaign.measure import LATE_SETTINGS, BoardSetup, RunContext, measure, store_unmeasured
from fastenough.campaign.plan import GPIO_PROBES, Plan
from fastenough.campaign.progress import Clock, Progress
from fastenough.campaign.stop import StopRequest, stop_on_signals
from fastenough.campaign.transcript import RunStore, Transcript
from fastenough.facts import collect
from fastenough.implementations.task import Refused
from fastenough.link import BoardGone, LocalLink
from fastenough.model import BadInput, Configuration, FastenoughError, identifiers_of, is_same_machine
from fastenough.recording import LoadStated
from fastenough.recording.building import HeadAdditions
from fastenough.recording.head import Head, RecordedSetting
from fastenough.settings import BoardBusy, Settings, default_journal, print_settings, run_journal
from fastenough.settings.place import PlaceEntry
from fastenough.settings.setting import Requested

BENCH_SETTINGS = ("control-priority",)
"""Settings of the machine that the bench runs on; all others are settings of the board."""

OnProgress = Callable[[Progress], None]
Tell = Callable[[str], None]


class ChangedSystem(BadInput):
    """A board is no longer the system of its kept runs."""


class SystemFault(FastenoughError):
    """An error of the system on the board or on the way to it, such as a full disk or too many processes."""


@dataclass(frozen=True)
class Campaign:
    """Result of a campaign: run ids in the order of the plan, including those of an earlier part.

    ``signal``: number of the signal that stopped it, else 0.  ``refused``: those runs that are stored as failed because
    the task refused an option.
    """

    id: str
    runs: tuple[str, ...]
    stopped: bool
    signal: int = 0
    refused: tuple[str, ...] = ()


def run_campaign(
    plan: Plan,
    store: RunStore,
    on_progress: OnProgress | None = None,
    *,
    resume: bool = False,
    opened: Callable[[str], Board] = open_board,
    stopping: StopRequest | None = None,
    journal: Path | None = None,
    tell: Tell | None = None,
) -> Campaign:
    """Measure and store every run of the plan, in order; with an instrument, also the board's own recordings.

    ``resume``: continue the newest unfinished campaign of the same plan in the store.  ``opened``: return the board of
    a name.  The plan's settings hold from the first run of a configuration to its last and are then restored, by the
    next campaign if necessary (``journal``).  SIGINT and SIGTERM end the current run cleanly (outcome aborted), and the
    campaign with it.  ``tell``: print a line for each setting that an earlier bench left behind, and for each that
    cannot be made here.

    If a configuration does not boot, is lost before its first run, meets an error of its system, is no longer the
    system of its kept runs, or a run cannot be measured, its runs are stored as failed or not applicable with the
    reason, and the campaign continues.
    Raises BadInput for input refused at the first run, BoardBusy if another bench measures on a board, GaugeLost when
    the instrument is lost, FastenoughError when the store cannot be written; the lines recorded so far stay.  If all
    runs are of one board that is measured as booted and cannot be reached, its error is raised and no run is stored;
    ChangedSystem likewise, if all remaining runs are of one configuration of one board that has changed.
    """
    stopping = stopping or StopRequest()
    store.settle()
    specs = expand(plan)
    runner = _Runner(
        plan,
        specs,
        store,
        Ledger.of(plan, specs, store, resume),
        on_progress or _no_progress,
        stopping,
        journal,
        tell,
    )
    with stop_on_signals(stopping), ExitStack() as stack:
        for (name, configuration), left in groupby(runner.left, lambda spec: (spec.board, spec.configuration)):
            if not stopping.requested:
                runner.configuration(stoppable(opened(name), stopping.sleep), configuration, list(left), stack)
    done = runner.ledger.done
    return Campaign(
        runner.ledger.campaign,
        tuple(done[position] for position in sorted(done)),
        stopping.requested,
        stopping.signal,
        tuple(runner.refused),
    )


def _no_progress(progress: Progress) -> None:
    """Progress callback that does nothing."""


@dataclass
class _Runner:
    """One campaign in progress; ``specs`` are all runs of the plan."""

    plan: Plan
    specs: list[RunSpec]
    store: RunStore
    ledger: Ledger
    on_progress: OnProgress
    stopping: StopRequest
    journal: Path | None
    tell: Tell | None
    bench_settings: Settings | None = None
    bench_entries: Sequence[RecordedSetting] = ()

    def __post_init__(self) -> None:
        self.left = [spec for spec in self.specs if not self.ledger.has(spec)]
        self.refused: list[str] = []
        self._clock = Clock(self.left)
        self._printed: set[str] = set()
        self._kept = _kept_heads(self.plan, self.store, self.ledger.done)

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
        """Make all runs of one board in one configuration; a board that is gone has no settings to restore."""
        is_up = False
        try:
            with _system_errors(board, configuration), ExitStack() as opening:
                booted, instrument = self._up(board, configuration, specs[0], opening)
                is_up = True
                recorded = recorded_board(board.name, booted.link, self.store)
                if (kept := self._kept.get((specs[0].board, configuration))) is not None:
                    require_same_system(board.name, booted, kept, recorded.name)
                site = self._prepared(recorded, booted, instrument, opening, bench)
                opened = opening.pop_all()
        except KeyboardInterrupt:
            if is_up or not self.stopping.requested:
                raise
            return
        except FastenoughError as error:
            if self._is_final(error, specs, is_up):
                raise
            self._not_up(board, configuration, specs, error)
            return
        try:
            with _system_errors(board, configuration), suppress(BoardGone), opened:
                self._run_all(site, specs)
        except SystemFault as error:
            if self._is_final(error, specs, is_up):
                raise
            self._print_once(str(error))
            left = () if self.stopping.requested else [spec for spec in specs if not self.ledger.has(spec)]
            self._not_up(board, configuration, left, error)

    def _run_all(self, site: BoardSetup, specs: Sequence[RunSpec]) -> None:
        for spec in specs:
            if not self.stopping.requested:
                self._run(site, spec)

    def _is_final(self, error: FastenoughError, specs: Sequence[RunSpec], is_up: bool) -> bool:
        """Return whether an error before these runs of one configuration ends the campaign; else it fails only them."""
        if isinstance(error, ChangedSystem):
            return len(specs) == len(self.left)
        if isinstance(error, BadInput | BoardBusy) or (is_up and not isinstance(error, BoardGone | SystemFault)):
            return True
        return specs[0].configuration == AS_BOOTED and len(specs) == len(self.specs)

    def _prepared(
        self,
        recorded: RecordedBoard,
        booted: Booted,
        instrument: OpenInstrument | None,
        stack: ExitStack,
        bench: ExitStack,
    ) -> BoardSetup:
        """Make the settings of a board in one configuration, and return what its runs have in common."""
        if not self.ledger.done:
            check_cpus(self.plan, booted.link)
        if recorded.note is not None:
            self._print_once(recorded.note)
        entries, settings_now = self._settings(booted, stack, bench)
        late = {name: value for name, value in self.plan.settings.items() if self._is_late(name)}
        journal = run_journal(self.journal or default_journal(booted.link))
        return BoardSetup(self.plan, recorded, booted, journal, entries, settings_now, late, instrument)

    def _up(
        self, board: Board, configuration: str, first: RunSpec, stack: ExitStack
    ) -> tuple[Booted, OpenInstrument | None]:
        """Boot the board and open the plan's instrument."""
        self._clock.begin()
        if configuration != AS_BOOTED:
            self._report(first, "booting", None)
        try:
            booted = stack.enter_context(board.boot(configuration))
            instrument = self.plan.instrument
            return booted, stack.enter_context(open_instrument(instrument, booted)) if instrument else None
        finally:
            self._clock.end()

    def _run(self, site: BoardSetup, spec: RunSpec) -> None:
        """Make one run; BadInput ends the campaign at the first run, while later runs are stored as failed."""
        self._clock.begin()
        context = self._context(spec)
        try:
            transcript = measure(site, spec, context)
        except BadInput as refused:
            if not self.ledger.done:
                raise
            added = HeadAdditions(
                site.board.name, site.booted.configuration, LoadStated(spec.load), requirement=spec.requirement
            )
            transcript = store_unmeasured(spec, context, added, refused)
            if isinstance(refused, Refused) and transcript.writer is not None:
                self.refused.append(transcript.writer.id)
        except OSError:
            if self.ledger.has(spec):  # it occurred after the run
                self._clock.end()
            raise
        self._clock.end()
        self._report(spec, "ended", transcript)

    def _context(self, spec: RunSpec) -> RunContext:
        return RunContext(
            self.store,
            partial(self.ledger.begin, self.store, spec),
            self.stopping,
            partial(self._report, spec),
            self._print_once,
        )

    def _print_once(self, line: str) -> None:
        """Print a line unless it was printed for an earlier run."""
        if self.tell is not None and line not in self._printed:
            self.tell(line)
        self._printed.add(line)

    def _not_up(self, board: Board, configuration: str, specs: Sequence[RunSpec], error: FastenoughError) -> None:
        """Store the runs of a configuration that did not boot, was lost before them, or is another system than that of
        its kept runs, each with the reason."""
        for spec in specs:
            added = HeadAdditions(
                name_in_runs(board.name, {}),
                Configuration(listed_configuration(board.name, configuration)),
                LoadStated(spec.load),
                requirement=spec.requirement,
            )
            self._clock.skip()
            self._report(spec, "ended", store_unmeasured(spec, self._context(spec), added, error))

    def _is_late(self, name: str) -> bool:
        return name in LATE_SETTINGS and any(entry.probe in GPIO_PROBES for entry in self.plan.entries)

    def _settings(
        self, booted: Booted, stack: ExitStack, bench: ExitStack
    ) -> tuple[list[RecordedSetting], Callable[[Sequence[PlaceEntry]], Sequence[RecordedSetting]]]:
        """Make the plan's settings (the bench's once, the board's per configuration).

        Returns them as read back, and a function that reads them again, since they may change between two runs.
        """
        on_bench = booted.link.name == "local"
        of_bench = {name: value for name, value in self.plan.settings.items() if name in BENCH_SETTINGS}
        if not on_bench and of_bench and self.bench_settings is None:
            self.bench_settings = bench.enter_context(Settings(LocalLink()))
            self.bench_entries = self._apply(self.bench_settings, of_bench)
        values = {
            name: value
            for name, value in self.plan.settings.items()
            if (on_bench or name not in BENCH_SETTINGS) and not self._is_late(name)
        }
        settings = stack.enter_context(Settings(booted.link, self.journal))
        made = self._apply(settings, values)
        if on_bench or self.bench_settings is None:
            return made, partial(_read_again, [settings], booted)
        return [*self.bench_entries, *made], partial(_read_again, [self.bench_settings, settings], booted)

    def _apply(self, settings: Settings, values: Mapping[str, Requested]) -> list[RecordedSetting]:
        entries = settings.apply_all(values)
        print_settings(settings.restored, settings.warnings, entries, self.tell)
        return entries


@contextmanager
def _system_errors(board: Board, configuration: str) -> Iterator[None]:
    """Context in which an OSError becomes a SystemFault.

    A store or journal that cannot be written, such as on a full disk, raises another FastenoughError.  A broken pipe is
    that of the progress.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"
        raise SystemFault(f"{board.name} cannot be used in configuration {configuration}: {reason}") from error


def _read_again(made: Sequence[Settings], booted: Booted, set_later: Sequence[PlaceEntry]) -> list[RecordedSetting]:
    """Return the present values of settings, except at the places that a run has set later; none of a board that starts
    anew for each measurement."""
    if booted.set_phase is not None:
        return []
    return [entry for settings in made for entry in settings.read_again(set_later)]


def on_board(plan: Plan, board: str) -> Plan:
    """Return the plan on the board of the command; raise BadInput if the plan itself names another."""
    if plan.boards and plan.boards != (board,):
        raise BadInput(f"the plan names its own board ({', '.join(plan.boards)}); remove --board {board}")
    return replace(plan, boards=(board,))


def with_configurations(
    plan: Plan,
    opened: Callable[[str], Board],
    ask: Ask,
    known: Mapping[str, Mapping[str, SystemParts]],
    sleep: Sleep,
) -> Callable[[str], Board]:
    """Return a function like ``opened`` whose boards are changed to each configuration, by the plan or by a person.

    This concerns boards that do not boot their configurations themselves.  ``known``: by board and configuration, the
    systems booted so far.  A single configuration without a table in the plan is only a name: the board is not changed.
    """
    changes = {name: plan.changes.get(name, ConfigurationChange()) for name in plan.configurations}

    @cache
    def of(name: str) -> Board:
        board = stoppable(opened(name), sleep)
        if board.configurations() != (AS_BOOTED,):
            if plan.changes and all(opened(other).configurations() != (AS_BOOTED,) for other in plan.boards):
                raise plan.fault(
                    f"board {name} boots its configurations by itself; remove the [[configuration]] tables, which have "
                    "no effect on it",
                    "configuration",
                )
            return board
        if len(changes) < 2 and not plan.changes:
            return board
        require_remote(board, changes)
        return SwitchableBoard(board, changes, ask, sleep, dict(known.get(name, {})))

    return of


def known_systems(plan: Plan, store: RunStore, done: Mapping[int, str]) -> dict[str, dict[str, SystemParts]]:
    """Return by board and configuration the systems of earlier runs; ``done``: run ids by position in the store."""
    known: dict[str, dict[str, SystemParts]] = {}
    for (board, name), head in _kept_heads(plan, store, done).items():
        known.setdefault(board, {})[name] = _parts_of(head.configuration, head.profile)
    return known


def _kept_heads(plan: Plan, store: RunStore, done: Mapping[int, str]) -> dict[tuple[str, str], Head]:
    """Return by board and configuration the head of the first kept run whose kernel is known."""
    specs, per_run = expand(plan), len(recordings_of(plan))
    heads: dict[tuple[str, str], Head] = {}
    for position in sorted(done):
        spec = specs[position // per_run]
        if (spec.board, spec.configuration) not in heads:
            head = store.load(done[position]).head
            if has_known_kernel(head):
                heads[spec.board, spec.configuration] = head
    return heads


def has_known_kernel(head: Head) -> bool:
    """Return whether the head of a run states the kernel that was measured."""
    return head.configuration is not None and head.configuration.kernel_release is not None


def require_same_system(
    board: str, booted: Booted, kept: Head, name: str, otherwise: str = "start a new campaign"
) -> None:
    """Raise ChangedSystem unless a board runs the kernel of its kept runs, with the same command line, on that machine.

    ``name``: its name in further runs; where nothing identifies the machine, it must be that of the kept runs.
    ``otherwise``: what else the user can do.
    """
    profile = collect(booted.link, ("kernel", "machine"))
    same_machine = is_same_machine(identifiers_of(profile), kept.machine)
    changed = first_change(
        _parts_of(booted.configuration, profile),
        _parts_of(kept.configuration, kept.profile),
    )
    if changed is not None:
        what = f"{board} has the {changed[0]} {changed[1]}, but its kept runs had {changed[2]}; boot that"
    elif same_machine is False:
        what = f"{board} is not the machine of its kept runs (machine ID or hardware differ); connect that one"
    elif same_machine is None and kept.board not in (None, name):
        what = (
            f"{board} may be another machine than that of its kept runs: its host name is {name}, theirs was "
            f"{kept.board}, and nothing else identifies it; restore that name (docker run --hostname {kept.board})"
        )
    else:
        return
    raise ChangedSystem(f"{what}, or {otherwise}")


def _parts_of(configuration: Configuration | None, profile: Mapping[str, Any] | None) -> SystemParts:
    """Return the parts of the system of a run."""
    kernel = (profile or {}).get("kernel")
    return system_parts(configuration or Configuration(""), kernel if isinstance(kernel, Mapping) else {})
