# SPDX-License-Identifier: GPL-2.0-or-later
"""One run: profile, load, probe, proof, and all of it into the store."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fastenough.campaign.plan import Plan, RunSpec
from fastenough.campaign.stopping import Stopping
from fastenough.campaign.transcript import Transcript, Writer, no_proof
from fastenough.facts import collect, profile_sha256
from fastenough.link import Link
from fastenough.loads import RunningLoad
from fastenough.model import BadInput, Configuration, ExitStatus, NotApplicable, Outcome
from fastenough.recording import LoadStated
from fastenough.recording.building import Added
from fastenough.recording.head import Setting

_WARM_UP_S = 1.0
_BY_SIGNAL = {128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}
_STOPPED = "stopped before the probe began"
_GRACE_S = 60.0
"""How much longer than planned a probe may take before its guard ends it."""


class ProbeRefused(BadInput):
    """What the probe says of its options, in its own words: ``--interval`` and the like."""


class Keeper(Protocol):
    """Where runs are kept: the store."""

    def begin(self, origin: Mapping[str, Any] | None = None) -> Writer: ...

    def runs(self, **equal: Any) -> list[Any]: ...

    def settle(self) -> None: ...

    def fault(self, run_id: str) -> str | None: ...


def configuration_in(profile: Mapping[str, Any]) -> Configuration:
    """What was found booted, named by its kernel."""
    kernel, config = profile.get("kernel") or {}, profile.get("kernel_config") or {}
    return Configuration(f"{kernel.get('release', 'unknown')} {kernel.get('version', '')}".strip(),
                         kernel.get("release"), config.get("sha256"), profile.get("cmdline"))


@dataclass(frozen=True)
class Runner:
    """Measures the runs of one campaign on one board.

    ``origin`` is what every run's summary says of its campaign; ``bench_settings`` are the settings the bench made,
    as read back.
    """

    link: Link
    plan: Plan
    keeper: Keeper
    probe: str
    stopping: Stopping
    origin: Mapping[str, Any]
    bench_settings: Sequence[Setting] = ()

    def _added(self, profile: dict[str, Any]) -> Added:
        """What the bench adds to a head, the load apart."""
        marks = tuple(mark for mark, holds in (("emulated", self.link.emulated or profile.get("emulated")),
                                          ("virtual-machine", profile.get("hypervisor"))) if holds)
        board = profile.get("hostname") if self.link.name == "local" else self.link.name
        return Added(
            str(board or self.link.name), configuration_in(profile), None, profile, profile_sha256(profile),
            tuple(self.bench_settings), marks)

    def measure(self, spec: RunSpec, report: Callable[[str, Transcript | None], None]) -> Transcript:
        """Make one run and store it, whatever becomes of it."""
        report("profile", None)
        profile = collect(self.link)
        load = self.plan.load(spec.load)
        added = replace(self._added(profile), load=LoadStated(spec.load))

        def begin() -> Writer:
            return self.keeper.begin({**self.origin, "position": spec.position})

        try:
            cpus = (profile["cpu"] or {}).get("count") or 1
            with RunningLoad(self.link, load, cpus, spec.duration_s) as running:
                transcript = Transcript(begin, replace(added, load=running.head()), running.proof, running.used)
                report("load", transcript)
                self.stopping.sleep(_WARM_UP_S if load.commands else 0.0)
                running.begin()
                if self.stopping.asked:
                    transcript.make(spec, Outcome.ABORTED, _STOPPED)
                else:
                    self._listen(spec, transcript, lambda: report("measuring", transcript))
        except NotApplicable as reason:
            transcript = Transcript(begin, added, no_proof)
            transcript.make(spec, Outcome.NOT_APPLICABLE, str(reason))
        assert transcript.writer is not None
        transcript.writer.end()
        return transcript

    def _listen(self, spec: RunSpec, transcript: Transcript, tick: Callable[[], None]) -> None:
        """Run the probe and pass on what it says."""
        command = [self.probe, *spec.probe_arguments()]
        process = self.link.raised.start(command, limit_s=spec.duration_s + _GRACE_S)
        try:
            with self.stopping.telling(process):
                for raw in process.lines():
                    if transcript.take(raw) in ("head", "interval"):
                        tick()
                status = process.wait()
        except BaseException:
            process.stop()
            if transcript.writer is not None:
                transcript.writer.close()
            raise
        if transcript.writer is None:
            stderr = process.stderr().decode(errors="replace")
            _silent(spec, transcript, 128 + signal.SIGINT if self.stopping.asked else status, stderr)


def _silent(spec: RunSpec, transcript: Transcript, status: int, stderr: str) -> None:
    """The probe ended without a head: its exit status and its one line say why."""
    said = (stderr.strip().splitlines() or [f"the probe ended with status {status} and said nothing"])[-1]
    if status == ExitStatus.BAD_INPUT:
        raise ProbeRefused(said.removeprefix("fastenough-probe: "))
    if status == ExitStatus.NOT_APPLICABLE:
        transcript.make(spec, Outcome.NOT_APPLICABLE, said)
    elif status in _BY_SIGNAL:
        transcript.make(spec, Outcome.ABORTED, _STOPPED)
    else:
        transcript.make(spec, Outcome.FAILED, f"the probe ended with status {status}: {said}")
