# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment from plan to store: each configuration booted once, each cell measured, everything put back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough.campaign import Campaign, Progress, RunSpec
from fastenough.campaign.plan import OWN
from fastenough.campaign.runner import Keeper, configuration_in
from fastenough.campaign.stopping import Stopping, listening
from fastenough.campaign.transcript import Transcript, Writer, no_proof
from fastenough.experiment.bench import Bench, open_bench
from fastenough.experiment.cell import CellRun, own_lines
from fastenough.experiment.plan import Cell, Experiment, read_experiment
from fastenough.facts import collect, profile_sha256
from fastenough.facts.cpu import cpu_list
from fastenough.gauge.session import GaugeLost
from fastenough.link import BoardGone, LocalLink
from fastenough.loads import RunningLoad, find_load
from fastenough.model import BadInput, Configuration, FastenoughError, NotApplicable, Outcome
from fastenough.recording import LoadProof, LoadStated, LoadUse
from fastenough.recording.building import Added
from fastenough.recording.head import Setting
from fastenough.settings import Settings, default_journal, tell_settings

_BENCH_SETTINGS = ("control-priority",)
"""Settings of the machine the bench runs on; all others are the board's."""
_LATE_SETTINGS = ("irq-threads",)
"""Made for each cell once its task has asked for its pins."""
_OVERHEAD_S = 12.0
"""What a cell takes beyond its measuring, roughly: only the time left that is shown depends on it."""

OnProgress = Callable[[Progress], None]


def run_experiment(plan_path: Path, store: Keeper, on_progress: OnProgress | None = None,
                   stopping: Stopping | None = None, tell: Callable[[str], None] | None = None) -> Campaign:
    """Make every run of the plan, in order, and keep each: the instrument's, and the board's own beside it.

    A configuration that does not come up, or a cell that cannot be measured, is kept as failed or not applicable with
    its reason, and the rest goes on.  Raises BadInput for a plan, pin or port that cannot be used, and GaugeLost when
    the instrument is gone; what was recorded stays.
    """
    plan = read_experiment(plan_path)
    store.settle()
    stopping = stopping or Stopping()
    campaign = f"{plan.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
    making = _Making(plan, store, campaign, on_progress or _no_progress, stopping, tell)
    with listening(stopping), ExitStack() as stack:
        if plan.board != "local":
            settings = stack.enter_context(Settings(LocalLink()))
            making.bench_settings = settings.apply_all(_wishes(plan, _BENCH_SETTINGS))
            tell_settings(settings.put_back, settings.told, making.bench_settings, tell)
        for configuration in plan.configurations:
            if not stopping.asked:
                making.configuration(configuration)
    return Campaign(campaign, tuple(making.runs), stopping.asked, stopping.signal)


def _no_progress(progress: Progress) -> None:
    """Nobody wants to know."""


def _wishes(plan: Experiment, names: tuple[str, ...]) -> dict[str, str | int | float | bool]:
    return {name: wish for name, wish in plan.settings.items() if name in names}


def _pins(plan: Experiment, cell: Cell) -> str:
    """Where a response follows the gauge's idle level; a period starts low, so that its edges can be told from ours."""
    output = f"{plan.wires.chip}/{plan.wires.output}=out"
    return output if cell.probe == "periodic" else f"{plan.wires.chip}/{plan.wires.input}=in,{output}"


def _title(cell: Cell) -> str:
    return f"{cell.probe} by {cell.implementation} on {cell.configuration}, load {cell.load}"


@dataclass
class _Making:
    """One campaign on its way."""

    plan: Experiment
    store: Keeper
    campaign: str
    on_progress: OnProgress
    stopping: Stopping
    tell: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self.runs: list[str] = []
        self._made: set[int] = set()
        self.bench_settings: list[Setting] = []
        self._cells = self.plan.cells()
        self._planned = tuple(f"{_title(cell)}{own}" for cell in self._cells for own in ("", OWN))
        self._begun_s = time.monotonic()

    def _spec(self, cell: Cell, own: bool = False) -> RunSpec:
        """Two positions a cell: the instrument's run, and the board's own."""
        times = {f"{name}_ns": value for name, value in self.plan.times_ns[cell.probe].items()}
        return RunSpec(2 * self._cells.index(cell) + own, cell.probe, times, cell.load, self.plan.duration_ns / 1e9)

    def _begin(self, spec: RunSpec) -> Writer:
        writer = self.store.begin({"campaign": self.campaign, "plan_sha256": self.plan.sha256,
                                   "position": spec.position, "positions": 2 * len(self._cells),
                                   "planned": self._planned})
        self.runs.append(writer.id)
        self._made.add(spec.position)
        return writer

    def _report(self, cell: Cell, phase: str, transcript: Transcript | None = None) -> None:
        left = len(self._cells) - self._cells.index(cell)
        each_s = self.plan.duration_ns / 1e9 + _OVERHEAD_S
        self.on_progress(Progress(
            self.campaign, self._cells.index(cell) + 1, len(self._cells), self._spec(cell), phase,
            time.monotonic() - self._begun_s, left * each_s, dict(transcript.worst_ns) if transcript else {},
            transcript.writer.id if transcript and transcript.writer else None,
            transcript.outcome if transcript else None, f"{cell.implementation} on {cell.configuration}",
            transcript.reasons if transcript else ()))

    def configuration(self, name: str) -> None:
        """All cells of one configuration; what it cannot give is kept with the reason.

        On a board that is gone nothing is left to be put back.
        """
        cells = [cell for cell in self._cells if cell.configuration == name]
        self._report(cells[0], "booting")
        with suppress(BoardGone), ExitStack() as stack:
            try:
                bench = stack.enter_context(open_bench(self.plan, name))
                added = self._added(bench, stack.enter_context(Settings(bench.link)))
            except BadInput:
                raise
            except FastenoughError as error:
                for cell in cells:
                    self._without(cell, error, Added(self.plan.board, Configuration(name)))
                return
            for cell in cells:
                if not self.stopping.asked:
                    self._cell(bench, cell, added)

    def _added(self, bench: Bench, settings: Settings) -> Added:
        """What the bench adds to every head of this configuration; its settings are made here."""
        profile = collect(bench.link)
        apart = (*_LATE_SETTINGS, *(_BENCH_SETTINGS if self.plan.board != "local" else ()))
        entries = settings.apply_all({name: wish for name, wish in self.plan.settings.items() if name not in apart})
        tell_settings(settings.put_back, settings.told, entries, self.tell)
        entries = [_not_requested(entry) if entry.in_effect is None else entry for entry in entries]
        configuration = replace(configuration_in(profile), name=bench.configuration)
        return Added(bench.link.name, configuration, None, profile, profile_sha256(profile),
                     (*self.bench_settings, *entries), bench.marks)

    def _without(self, cell: Cell, error: FastenoughError, added: Added) -> None:
        """A cell that could not be measured, as a run with its reason."""
        spec = self._spec(cell)
        transcript = Transcript(lambda: self._begin(spec), replace(added, load=added.load or LoadStated(cell.load)),
                                no_proof)
        outcome = Outcome.NOT_APPLICABLE if isinstance(error, NotApplicable) else Outcome.FAILED
        transcript.make(spec, outcome, str(error), cell.implementation)
        assert transcript.writer is not None
        transcript.writer.end()
        self._report(cell, "ended", transcript)

    def _cell(self, bench: Bench, cell: Cell, added: Added) -> None:
        """One cell: pins, load, instrument and board; all of it put back afterwards."""
        self._report(cell, "preparing")
        try:
            with Settings(bench.link, _cell_journal(bench)) as settings:
                entries = settings.apply("pin", _pins(self.plan, cell))
                with _loaded(bench, cell.load, self.plan.duration_ns / 1e9) as load:
                    self._measure(CellRun(bench, self.plan, cell, settings, self.stopping),
                                  replace(added, settings=(*added.settings, *entries), load=load.stated), load)
        except (BadInput, GaugeLost):
            raise
        except FastenoughError as error:
            if self._spec(cell).position not in self._made:
                self._without(cell, error, added)

    def _measure(self, cell_run: CellRun, added: Added, load: _Load) -> None:
        cell = cell_run.cell
        spec = self._spec(cell)
        transcript = Transcript(lambda: self._begin(spec), added, load.proof, load.used)
        try:
            cell_run.measure(transcript, lambda: self._report(cell, "measuring", transcript))
        except (BadInput, GaugeLost):
            raise
        except FastenoughError:
            if transcript.writer is None:
                raise
        finally:
            if transcript.writer is not None:
                transcript.writer.end()
        self._keep_own(cell_run, added, load)
        self._report(cell, "ended", transcript)

    def _keep_own(self, cell_run: CellRun, added: Added, load: _Load) -> None:
        """The board's own recording, as a run that says that nobody else saw it."""
        if cell_run.own is None:
            return
        spec = self._spec(cell_run.cell, own=True)
        transcript = Transcript(lambda: self._begin(spec), added, load.proof)
        for raw in own_lines(cell_run.own, cell_run.reasons):
            transcript.take(raw)
        if transcript.writer is not None:
            transcript.writer.end()


def _not_requested(setting: Setting) -> Setting:
    """An experiment requests the same of all its kernels; what one of them does not have is not held against it."""
    return replace(setting, requested=None)


def _cell_journal(bench: Bench) -> Path:
    """Beside the board's: what is put back after each cell, and not only at the end."""
    journal = default_journal(bench.link)
    return journal.with_name(f"{journal.stem}-cell{journal.suffix}")


@dataclass(frozen=True)
class _Load:
    """A load at work, or none."""

    stated: LoadStated
    running: RunningLoad | None = None

    def proof(self) -> LoadProof:
        """Whether it ran; what cannot be asked any more proves nothing."""
        try:
            return LoadProof(self.stated.name, True) if self.running is None else self.running.proof()
        except FastenoughError as error:
            return LoadProof(self.stated.name, False, (f"whether the load ran cannot be asked: {error}",))

    def used(self) -> LoadUse | None:
        return None if self.running is None else self.running.used()


@contextmanager
def _loaded(bench: Bench, name: str, planned_s: float) -> Iterator[_Load]:
    """While inside, the load runs."""
    load = find_load(name)
    if not load.commands:
        yield _Load(LoadStated(name))
        return
    with RunningLoad(bench.link, load, len(_online(bench)), planned_s) as running:
        running.begin()
        yield _Load(running.head(), running)


def _online(bench: Bench) -> list[int]:
    return cpu_list(bench.link.read("/sys/devices/system/cpu/online").decode())
