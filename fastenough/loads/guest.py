# SPDX-License-Identifier: GPL-2.0-or-later
"""A load of a deterministic guest: in its initramfs with the probe, and proved by samples that the guest takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from types import TracebackType
from typing import Self

from fastenough.link import FakeLink
from fastenough.link.base import printed_files
from fastenough.loads.load import TOOL_PACKAGES, Load
from fastenough.loads.proof import Stretches, UsageSample, look, prove, used
from fastenough.loads.tools import lacking_tools, require_tools
from fastenough.model import FastenoughError, NotApplicable
from fastenough.recording.head import LoadProof, LoadStated, LoadUse
from fastenough.virtual.deterministic import TOOLS_FOLDER, Background, Results
from fastenough.virtual.deterministic_link import DeterministicLink
from fastenough.virtual.tools import fetch_tools
from fastenough.words import output_lines

_SAMPLED = ("/proc/uptime", "/proc/[0-9]*/stat", "/proc/[0-9]*/status", "/proc/[0-9]*/io")
"""The files of a sample (deterministic.sh)."""
_MARGIN_S = 120
"""Time of the guest after the planned end at which a load ends by itself."""


class GuestLoad:
    """Context manager: the guest of the next started command runs the load beside it (see ``RunningLoad``).

    Raises NotApplicable for a load with a tool that cannot be brought, with a trial or with a counter of its own.
    """

    def __init__(self, link: DeterministicLink, load: Load, cpus: int, planned_s: float) -> None:
        if load.trial or load.counter:
            raise NotApplicable(f"load {load.name} has a trial or a counter, which deterministic boards do not support")
        require_tools(link, load)
        self._link = link
        self._load = load
        self._cpus = cpus
        self._limit_s = int(planned_s + load.start_s) + _MARGIN_S
        self._scratches = tuple(f"/var/tmp/fastenough-{number}" for number, _ in enumerate(load.commands))
        self._command_lines = load.command_lines(cpus, list(self._scratches), self._limit_s)
        self._brought = ""
        self._files: dict[str, bytes] = {}

    def head(self) -> LoadStated:
        """The entry in the head of the recording."""
        return LoadStated(
            self._load.name,
            tuple(map(tuple, self._command_lines)),
            self._load.source + self._brought,
            self._load.bounds(self._cpus, self._limit_s),
        )

    def __enter__(self) -> Self:
        tools = lacking_tools(self._link, self._load)
        if tools:
            fetched = fetch_tools(TOOL_PACKAGES, self._link.arch)
            names = {name for tool in tools for name in fetched.files[tool]}
            self._files = {f"{TOOLS_FOLDER}/{name}": (fetched.folder / name).read_bytes() for name in sorted(names)}
            packages = sorted({TOOL_PACKAGES[tool] for tool in tools})
            versions = ", ".join(f"{package} {fetched.versions[package]}" for package in packages)
            self._brought = f"; brought by the bench: {versions}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._link.background = None

    def warm_up(self, seconds: float, sleep: Callable[[float], bool]) -> None:
        """Let the load of the next guest run for so many of the guest's seconds before the command."""
        argvs = tuple(map(tuple, self._command_lines))
        self._link.background = Background(argvs, self._scratches, seconds, self._files)

    def begin(self) -> None:
        """Do nothing: the guest takes its first sample when the command starts."""

    def follow(self) -> Callable[[], LoadUse | None]:
        """A function that returns the use of the load in the next second of the guest; None after the last one."""
        uses = self._uses()
        return lambda: next(uses, None)

    def _uses(self) -> Iterator[LoadUse]:
        for before, after in pairwise(_samples(self._results())):
            yield used(before, after)

    def proof(self) -> LoadProof:
        """Use of resources between the first and the last sample, and whether it proves that the load ran."""
        results = self._results()
        samples = _samples(results)
        first, last = samples[0], samples[-1]
        proof = prove(self._load.name, self._load.expects, self._cpus, first, last)
        stretches = Stretches(self._load, self._cpus, first)
        for sample in samples[1:-1]:
            if stretches.due(sample.mono_s):
                stretches.take(sample)
        reasons = (*proof.reasons, *stretches.reasons(), *self._early_ends(results, last))
        return replace(proof, ran=not reasons, reasons=reasons)

    def _early_ends(self, results: Results, last: UsageSample) -> Iterator[str]:
        alive = {pid for pid, _ in last.uses}
        for argv, pid, errors in zip(self._command_lines, results.background, results.errors, strict=True):
            if pid not in alive:
                reason = "".join(f": {line}" for line in output_lines(errors)[-1:])
                yield f"{argv[0]} of load {self._load.name} exited too early{reason}"

    def _results(self) -> Results:
        if self._link.results is None:
            raise FastenoughError("the guest has no results")
        return self._link.results


def _samples(results: Results) -> list[UsageSample]:
    """The samples of a guest; the first and the last one always exist."""
    samples = []
    for content in results.samples:
        files = {path: text.decode(errors="replace") for path, text in printed_files(content, _SAMPLED).items()}
        samples.append(look(FakeLink(files), results.background, float(files["/proc/uptime"].split()[0])))
    return samples
