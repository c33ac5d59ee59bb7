# SPDX-License-Identifier: GPL-2.0-or-later
"""The load of one run: at work while the run is made, with what it did and the proof that it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastenough.campaign.expand import RunSpec
from fastenough.campaign.stopping import Stopping
from fastenough.campaign.transcript import no_load
from fastenough.link import Link
from fastenough.loads import Load, RunningLoad
from fastenough.model import FastenoughError
from fastenough.recording import LoadProof, LoadStated, LoadUse


@dataclass(frozen=True)
class Loaded:
    """A load at work, or none."""

    stated: LoadStated
    running: RunningLoad | None = None

    def warm_up(self, seconds: float, stopping: Stopping) -> None:
        """Let it run for so long, and until all its processes are there; no longer than until asked to end."""
        if self.running is not None:
            stopping.sleep(seconds)
            self.running.await_processes(lambda seconds: not stopping.sleep(seconds))

    def begin(self) -> None:
        """What it did before does not count."""
        if self.running is not None:
            self.running.begin()

    def proof(self) -> LoadProof:
        """Whether it ran; what cannot be asked any more proves nothing."""
        try:
            return LoadProof(self.stated.name, True) if self.running is None else self.running.proof()
        except FastenoughError as error:
            return LoadProof(self.stated.name, False, (f"the load could not be verified: {error}",))

    def follow(self) -> Callable[[], LoadUse | None]:
        """For each recording one of its own: what the load did since its last interval."""
        return no_load if self.running is None else self.running.follow()


@contextmanager
def loaded(link: Link, load: Load, spec: RunSpec, profile: Mapping[str, Any]) -> Iterator[Loaded]:
    """While inside, the load runs, for as many CPUs as the board's profile says."""
    if not load.commands:
        yield Loaded(LoadStated(load.name, source=load.source))
        return
    cpus = (profile.get("cpu") or {}).get("count") or 1
    with RunningLoad(link, load, cpus, spec.whole_s) as running:
        yield Loaded(running.head(), running)
