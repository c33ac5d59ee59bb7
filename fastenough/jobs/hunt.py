# SPDX-License-Identifier: GPL-2.0-or-later
"""Hunt: the search requests trials, runs on the board answer them; each trial is a run of one campaign."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from fastenough.analysis.machine import emulation_cautions
from fastenough.analysis.merged import load_name
from fastenough.analysis.paired import judged_name
from fastenough.board import AS_BOOTED, Board
from fastenough.board.base import Booted
from fastenough.board.labgrid import stoppable
from fastenough.campaign import Plan, Progress, run_campaign
from fastenough.campaign.expand import expand, plan_sha256
from fastenough.campaign.ledger import new_campaign
from fastenough.campaign.stop import StopRequest, stop_on_signals
from fastenough.campaign.transcript import Writer
from fastenough.facts import collect
from fastenough.hunt.extent import HuntExtent, HuntProgress
from fastenough.hunt.recipes import load_of, turn_of
from fastenough.hunt.search import Search
from fastenough.hunt.space import Space
from fastenough.hunt.stressors import STRESSORS, space_of
from fastenough.hunt.trials import FinishedTrial, TrialRequest, TrialResult
from fastenough.jobs.job_store import OneCampaign
from fastenough.link import Link
from fastenough.loads import Expectation, Load, find_load
from fastenough.loads.tools import bring
from fastenough.model import FastenoughError, NotApplicable, Outcome
from fastenough.recording import Recording
from fastenough.settings import Settings
from fastenough.store import Store
from fastenough.units import parse_duration_ns

FIXED = ("none", "cpu", "io", "vm", "hdd", "full", "hackbench")
"""Loads that results are compared with: those of Enea's matrix, and hackbench."""
BLOCK = "250ms"
_BLOCK_NS = parse_duration_ns(BLOCK)
HUNT_FILE = "hunt.json"
_SEARCH = "hunt 4"
"""Changes with the search and its measure: the trials of another search must not be replayed."""
_AT_ONCE = 8
_TOO_HOT_MILLIDEGREES, _COOLING_S = 90_000, 60.0
_STRESS_NG = Load("hunt", "", ("stress-ng",), (), Expectation())
_TRY_ALL = """
PATH=${1:+$1:}$PATH; scratch=$2; shift 2; mkdir -p "$scratch"; count=0
for name; do
	( setsid stress-ng --$name 1 --timeout 5s --temp-path "$scratch" --quiet >/dev/null 2>&1 </dev/null & tried=$!
		sleep 1; kill -KILL -$tried 2>/dev/null && echo $name ) &
	count=$((count + 1)); [ $((count % 8)) != 0 ] || wait
done
wait; rm -rf "$scratch"
"""
"""A stressor that stress-ng skips ends at once with status 0; one that works still runs after a second.  ``timeout`` is
not used: that of busybox returns the status of stress-ng, which is 0 after SIGTERM too."""


@dataclass(frozen=True)
class Hunt:
    """``plan``: one run without load.  ``only``: the stressors to use; empty: all."""

    plan: Plan
    extent: HuntExtent
    only: tuple[str, ...] = ()
    fixed: tuple[str, ...] = FIXED

    @cached_property
    def sha256(self) -> str:
        specs = expand(self.plan)
        budget_s, *trials = self.extent.identity
        identity = repr((plan_sha256(self.plan, specs), budget_s, self.only, self.fixed, _SEARCH, *trials))
        return hashlib.sha256(identity.encode()).hexdigest()


@dataclass(frozen=True)
class HuntResult:
    """The result.  ``made``: all trials in order; ``signal``: number of the signal that stopped it, or 0;
    ``cautions``: caveats of the result."""

    campaign: str
    search: Search
    cpus: int
    made: tuple[FinishedTrial, ...]
    failed: int
    signal: int = 0
    cautions: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(made.run for made in self.made)

    @property
    def load(self) -> Load | None:
        """The result as a load."""
        found = self.search.result
        return load_of(self.search.space, (found.recipe,), self.cpus) if found else None


@dataclass(frozen=True)
class BoardCapacity:
    """CPUs, usable stressors and available memory of the board before the hunt."""

    cpus: int
    present: tuple[str, ...]
    available_bytes: int

    def space(self, only: Sequence[str], options: tuple[str, ...]) -> Space:
        chosen = [name for name in self.present if not only or name in only]
        if len(chosen) < 2:
            raise NotApplicable(
                f"only {', '.join(chosen) or 'none'} of the requested stressors works on this board; "
                "a hunt requires two"
            )
        space = space_of(chosen, self.cpus, self.available_bytes, options)
        if sum(space.fits(name) for name in chosen) < 2:
            raise NotApplicable(
                f"{self.available_bytes >> 20} MB of memory are available on this board; a hunt uses a quarter of "
                "that, which is too little for two of the stressors"
            )
        return space


@dataclass(frozen=True)
class TrialNote:
    """Stored with each trial, to continue an interrupted hunt: trials left and time spent before it, and the board."""

    left: int
    spent_s: float
    ground: BoardCapacity

    def as_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of_json(cls, text: bytes) -> TrialNote:
        note = json.loads(text)
        ground = note["ground"]
        capacity = BoardCapacity(
            int(ground["cpus"]), tuple(map(str, ground["present"])), int(ground["available_bytes"])
        )
        return cls(int(note["left"]), float(note["spent_s"]), capacity)


def examine_board(board: Board, only: Sequence[str]) -> BoardCapacity:
    """Try each stressor on the board for a second.

    Raises NotApplicable if stress-ng cannot run there, FastenoughError while another bench measures on the board.
    """
    with board.boot(AS_BOOTED) as booted, Settings(booted.link):
        present = _working(booted, [name for name in STRESSORS if not only or name in only])
        cpus = (collect(booted.link, ("cpu",)).get("cpu") or {}).get("count") or 1
        free = next(
            line.split()[1]
            for line in booted.link.read("/proc/meminfo").decode(errors="replace").splitlines()
            if line.startswith("MemAvailable:")
        )
        return BoardCapacity(int(cpus), present, int(free) << 10)


def _working(booted: Booted, names: Sequence[str]) -> tuple[str, ...]:
    """The stressors that work on a board; stress-ng is copied to boards that lack it."""
    link, limit_s = booted.link, 30.0 + 6.0 * len(names) / _AT_ONCE
    if booted.start_load is not None:
        with booted.start_load(_STRESS_NG, 1, limit_s) as load:
            load.warm_up(0.0, lambda seconds: True)
            tried = link.start(["sh", "-c", _TRY_ALL, "sh", "", link.scratch_name(), *names], limit_s=limit_s)
            return tuple(sorted(b"".join(tried.lines()).decode().split()))
    brought = bring(link, _STRESS_NG, int(limit_s) + 1)
    try:
        output = link.run(
            ["sh", "-c", _TRY_ALL, "sh", brought.folder if brought else "", link.scratch_name(), *names],
            timeout_s=limit_s,
        )
    finally:
        if brought:
            brought.holder.stop()
    return tuple(sorted(output.text.split()))


def _cool_down(link: Link, sleep: Callable[[float], bool]) -> None:
    """Wait, at most a minute, until the hottest sensor has cooled down."""
    end_s = time.monotonic() + _COOLING_S
    while time.monotonic() < end_s:
        zones = (collect(link, ("thermal",)).get("thermal") or {}).get("zones", {})
        hottest = max((zone["millidegrees"] or 0 for zone in zones.values()), default=0)
        if hottest < _TOO_HOT_MILLIDEGREES or sleep(1.0):
            return


@dataclass(frozen=True)
class _Wrapped:
    """A board that boots in another way; all else is that of ``board``."""

    board: Board

    @property
    def name(self) -> str:
        return self.board.name

    def configurations(self) -> tuple[str, ...]:
        return self.board.configurations()


@dataclass(frozen=True)
class _Cooled(_Wrapped):
    """A board that cools down after each use, before it is released."""

    sleep: Callable[[float], bool]

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        with self.board.boot(configuration) as booted:
            yield booted
            _cool_down(booted.link, self.sleep)


@dataclass(frozen=True)
class _BootedOnce(_Wrapped):
    """A deterministic board: one boot for the profile serves all trials, each of which boots a guest of its own."""

    booted: Booted

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        yield self.booted

    def opened(self, name: str) -> Board:
        return self


def block_maxima(recording: Recording, turns: int) -> list[int]:
    """Maximum latency of each block on any CPU, in ns, ordered by turn, equally many per turn; empty if failed."""
    if recording.outcome is not Outcome.COMPLETED:
        return []
    name = judged_name(recording)
    judged = [series.id for series in recording.series if series.name == name]
    spans = []
    for interval in recording.intervals:
        maxima = [interval.histograms[number].maximum for number in judged if number in interval.histograms]
        known = [maximum for maximum in maxima if maximum is not None]
        length_ns = interval.end_mono_ns - interval.begin_mono_ns  # the wall clock may be set
        begin_ns = interval.begin_wall_ns
        spans.append((begin_ns, begin_ns + length_ns, max(known) if known else None))
    return maxima_in_turns(spans, turns)


def maxima_in_turns(spans: Sequence[tuple[int, int, int | None]], turns: int) -> list[int]:
    """Maxima of the blocks, ordered by turn, equally many per turn.

    ``spans``: begin and end of each interval in ns, and its maximum, None without values.  Of one turn, each interval
    with values is a block.  Of several turns, a long interval counts as all blocks that it covers, and the values of an
    interval without any come at the end of its stall, in a later one: a load that stalls the machine for its whole turn
    is not left out.
    """
    if turns == 1:
        return [maximum for _, _, maximum in spans if maximum is not None]
    by_turn: dict[int, list[int]] = {turn: [] for turn in range(turns)}
    waiting: list[int] = []
    for begin_ns, end_ns, maximum in spans:
        blocks = max(1, round((end_ns - begin_ns) / _BLOCK_NS))
        waiting += [begin_ns + (end_ns - begin_ns) * (2 * block + 1) // (2 * blocks) for block in range(blocks)]
        if maximum is not None:
            for middle_ns in waiting:
                by_turn[turn_of(middle_ns, turns)].append(maximum)
            waiting = []
    least = min(map(len, by_turn.values()))
    return [value for values in by_turn.values() for value in values[:least]]


@dataclass
class _HuntCampaign(OneCampaign):
    """The trials of one hunt.  ``spent_s``: time of the hunt so far, including ``before_s`` before the first trial;
    ``title``, ``note``: of the current trial, the note as stored; ``notes``: notes of an interrupted hunt by trial."""

    hunt: Hunt
    left: int = 0
    spent_s: float = 0.0
    before_s: float = 0.0
    title: str = ""
    note: bytes = b""
    notes: dict[int, TrialNote] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.campaign = new_campaign("hunt")

    @property
    def progress(self) -> HuntProgress:
        return HuntProgress(self.position, self.spent_s, self.before_s)

    def resume(self) -> None:
        """Continue the latest hunt with the same arguments; raises BadInput if there is none or it is running.

        Its trials are used up to the first that is damaged or missing, or older than the one before it: such a trial
        followed one that was damaged later and repeated.
        """
        mine = self.newest(self.hunt.sha256, "hunt with the same probe, board, budget and load space")
        whole = {
            run.position: run.id
            for run in mine
            if run.state == "ended"
            and run.position is not None
            and run.outcome in (Outcome.COMPLETED.value, Outcome.FAILED.value)
        }
        newest = ""
        for position in range(len(whole)):
            run = whole.get(position, "")
            if run <= newest or self.store.fault(run) is not None:
                break
            note = self.store.attached(run, HUNT_FILE)
            if note is None:
                break
            self.made[position], self.notes[position], newest = run, TrialNote.of_json(note), run

    def stored_trial(self, load: str) -> Recording | None:
        """The trial of an interrupted hunt at the current position.

        None if there is none, or if it had another load: then it and all later ones are not used.
        """
        if self.position not in self.notes:
            return None
        recording = self.load(self.made[self.position])
        if load_name(recording) == load:
            return recording
        self.made = {position: run for position, run in self.made.items() if position < self.position}
        self.notes = {position: note for position, note in self.notes.items() if position < self.position}
        return None

    def begin(self, origin: Mapping[str, Any] | None = None) -> Writer:
        writer = self.placed(self.hunt.sha256, (*[""] * self.position, self.title))
        writer.attach(HUNT_FILE, self.note)
        return writer

    def settle(self) -> None:
        """Nothing to do: the hunt settled the store when it began."""


@dataclass
class _HuntRun:
    """A hunt in progress; ``counted_s``: time up to which ``trials.spent_s`` counts."""

    hunt: Hunt
    trials: _HuntCampaign
    ground: BoardCapacity
    search: Search
    opened: Callable[[str], Board]
    on_progress: Callable[[Progress, TrialRequest], None]
    tell: Callable[[str], None] | None
    counted_s: float
    stopping: StopRequest = field(default_factory=StopRequest)
    failed: int = 0
    made: list[FinishedTrial] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)

    def run(self) -> int:
        """Run until the search is over or a signal stops it; returns the number of the signal, or 0."""
        left = self._trials_left()
        asking = self.search.run(left)
        with suppress(StopIteration):
            ask = next(asking)
            while True:
                self.trials.left = left
                plan = self._plan(ask)
                recording = self.trials.stored_trial(plan.entries[0].loads[0]) or self._run_trial(plan, ask)
                if self.stopping.requested or recording is None:
                    return self.stopping.signal
                self.cautions = self.cautions or emulation_cautions([recording])
                self.failed += recording.outcome is not Outcome.COMPLETED
                self.trials.position += 1
                left = self._trials_left()
                turns = 1 if isinstance(ask.subject, str) else len(ask.subject)
                self.made.append(FinishedTrial(ask, block_maxima(recording, turns), recording.run_id))
                ask = asking.send(TrialResult(self.made[-1].block_maxima_ns, left))
        return 0

    def _trials_left(self) -> int:
        """Number of trials that fit into the remaining time; for replayed trials, the number noted at that time."""
        note = self.trials.notes.get(self.trials.position)
        if note is not None:
            self.trials.spent_s = note.spent_s
            return note.left
        return self.hunt.extent.trials_left(self.trials.progress)

    def _plan(self, ask: TrialRequest) -> Plan:
        if isinstance(ask.subject, str):
            load = find_load(ask.subject)
        else:
            load = load_of(self.search.space, ask.subject, self.ground.cpus)
        phase_ns = self.hunt.extent.phase_ns(self.trials.position)
        entry = replace(self.hunt.plan.entries[0], loads=(load.name,), phase_ns=phase_ns)
        loads = {} if isinstance(ask.subject, str) else {load.name: load}
        return replace(self.hunt.plan, entries=(entry,), loads=loads)

    def _run_trial(self, plan: Plan, ask: TrialRequest) -> Recording | None:
        """Run one trial; None if it was stopped."""
        self.trials.title = f"{ask.phase}: {expand(plan)[0].title}"
        self.trials.note = TrialNote(self.trials.left, self.trials.spent_s, self.ground).as_json()
        campaign = run_campaign(
            plan,
            self.trials,
            lambda progress: self._report_progress(progress, ask),
            opened=lambda name: _Cooled(stoppable(self.opened(name), self.stopping.sleep), self.stopping.sleep),
            stopping=self.stopping,
            tell=self.tell,
        )
        if campaign.stopped or not campaign.runs:
            return None
        self._count_time()
        recording = self.trials.load(campaign.runs[0])
        if recording.outcome is Outcome.NOT_APPLICABLE:
            raise NotApplicable("; ".join(recording.reasons) or "no reason recorded")
        return recording

    def _count_time(self) -> None:
        """Count all time that has passed, including time between trials."""
        now_s = time.monotonic()
        self.trials.spent_s += now_s - self.counted_s
        self.counted_s = now_s

    def _report_progress(self, progress: Progress, ask: TrialRequest) -> None:
        self.on_progress(
            replace(
                progress,
                campaign=self.trials.campaign,
                run=self.trials.position + 1,
                runs=self.trials.position + max(1, self.trials.left),
                remaining_s=self.hunt.extent.remaining_s(self.trials.progress, self.trials.left),
                later_s=0.0,
            ),
            ask,
        )


def make_hunt(
    hunt: Hunt,
    store: Store,
    on_progress: Callable[[Progress, TrialRequest], None],
    *,
    opened: Callable[[str], Board],
    resume: bool = False,
    tell: Callable[[str], None] | None = None,
) -> HuntResult:
    """Hunt until the budget is spent.  With ``resume``, continue the latest hunt with the same arguments: the search
    replays the results of the stored trials.

    SIGINT and SIGTERM end the current trial in order, and the hunt.  Raises like ``run_campaign``, BadInput if the
    hunt is too short, ChangedSystem if the board is not the system of the stored trials, NotApplicable if no load can
    be tried on this board.
    """
    hunt.extent.require_enough(len(hunt.fixed))
    trials, begun_s = _HuntCampaign(store, hunt), time.monotonic()
    if resume:
        trials.resume()
    else:
        store.settle()
    with ExitStack() as stack:
        if hunt.extent.boots_once:
            board = opened(hunt.plan.boards[0])
            opened = _BootedOnce(board, stack.enter_context(board.boot(AS_BOOTED))).opened
        if trials.notes:
            noted = [trials.made[position] for position in trials.notes]
            trials.require_system_of(noted, opened(hunt.plan.boards[0]), AS_BOOTED)
            ground = trials.notes[0].ground
        else:
            ground = examine_board(opened(hunt.plan.boards[0]), hunt.only)
            trials.spent_s = trials.before_s = time.monotonic() - begun_s
        space = ground.space(hunt.only, hunt.extent.stressor_options)
        random_ = random.Random(hunt.extent.seed(trials.campaign))
        search = Search(space, hunt.fixed, hunt.extent.turns, random_)
        hunting = _HuntRun(hunt, trials, ground, search, opened, on_progress, tell, time.monotonic())
        with stop_on_signals(hunting.stopping):
            signal = hunting.run()
    if hunting.made and hunting.failed == len(hunting.made) and not signal:
        raise FastenoughError(f"every trial failed; see: fastenough show {hunting.made[-1].run}")
    return HuntResult(
        trials.campaign,
        search,
        ground.cpus,
        tuple(hunting.made),
        hunting.failed,
        signal,
        tuple(hunting.cautions),
    )
