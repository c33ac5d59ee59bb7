# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person sees while a campaign runs: a bar with the time left and the worst case so far.

All of it goes to standard error, so that standard output stays for the result.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn

from fastenough.analysis import words
from fastenough.campaign import Progress as Standing
from fastenough.cli.output import clean, console


def _worst(standing: Standing) -> str:
    """The greatest value so far, missed periods charged where the probe counts them."""
    worst_ns = max(standing.worst_ns.values(), default=None)
    return "" if worst_ns is None else f"worst {words.latency(worst_ns)}"


def _what(standing: Standing) -> str:
    where = f" {standing.spec.place}" if standing.spec.place else ""
    return clean(f"[{standing.run}/{standing.runs}] {standing.spec.probe}{where}, load {standing.spec.load}")


class Display:
    """Call it with each Progress; a terminal gets a live bar, a file or pipe one line per run."""

    def __init__(self) -> None:
        self._console = console(sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(24, complete_style="green"),
            TextColumn("{task.fields[left]}"), TextColumn("{task.fields[worst]}"), console=self._console,
            transient=True, disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=1.0, left="", worst="")
        self._spent_s = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, standing: Standing) -> None:
        done_s = self._spent_s + standing.elapsed_s
        self._bar.update(
            self._task, description=f"{_what(standing)}: {standing.phase}", worst=_worst(standing),
            completed=done_s, total=max(done_s + standing.remaining_s, 0.1), left=f"{standing.remaining_s:.0f} s left",
        )
        if standing.phase == "ended":
            self._spent_s = done_s
            self._console.print(f"{_what(standing)}: {standing.outcome or 'cut off'} {_worst(standing)}")
            for reason in standing.reasons:
                self.tell(f"  {reason}")

    def tell(self, line: str) -> None:
        """A line of its own, above the bar."""
        self._console.print(clean(line))
