# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress on standard error: the current step, the remaining time, the maximum so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from fastenough.campaign import Progress
from fastenough.cli.output import clean, console, readable
from fastenough.cli.progress_wording import age, clock, kernel_of, left
from fastenough.cli.run_picture import bar

_PHASES = {
    "profile": "reading the board's profile",
    "load": "warming up",
    "measuring": "measuring",
    "booting": "booting",
}


class _Moving:
    """Lines on standard error, redrawn each second; nothing if it is not a terminal."""

    def __init__(self) -> None:
        self._console = console(sys.stderr)
        self._animated = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = Live(
            get_renderable=self._picture,
            console=self._console,
            refresh_per_second=1,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def _picture(self) -> RenderableType:
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self._animated:
            self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def _refresh(self) -> None:
        """Redraw now, so that short steps are shown too."""
        if self._live.is_started:
            self._live.refresh()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Stop redrawing during a prompt."""
        self._live.stop()
        try:
            yield
        finally:
            if self._animated:
                self._live.start()

    def tell(self, line: str) -> None:
        """Print a line above the progress lines."""
        self._console.print(clean(line))


@dataclass(frozen=True)
class _Step:
    """See ``Work``."""

    what: str
    share: Callable[[], float]
    expected_s: float | None = None
    begun_s: float = field(default_factory=time.monotonic)

    def picture(self) -> RenderableType:
        spent_s = time.monotonic() - self.begun_s
        done = self.share()
        expected_s = spent_s / done if done > 0 else self.expected_s
        if expected_s is None:
            return Text(f"{clean(self.what)}: {clock(spent_s * 1e9)} so far")
        return bar(spent_s, expected_s, clean(self.what), left((expected_s - spent_s) * 1e9))


def _unknown_share() -> float:
    return 0.0


class Work(_Moving):
    """Progress of work that is not a measurement: name, time spent, remaining time if known.

    ``share`` returns the completed fraction of a step, 0 to 1, from which the remaining time is estimated.
    """

    def __init__(self, what: str, expected_s: float | None = None) -> None:
        self._step = _Step(what, _unknown_share, expected_s)
        super().__init__()

    def step(self, what: str, share: Callable[[], float] = _unknown_share, expected_s: float | None = None) -> None:
        """Begin a step."""
        self._step = _Step(what, share, expected_s)
        self._refresh()

    def _picture(self) -> RenderableType:
        return self._step.picture()


class Display(_Moving):
    """Call it with each Progress; a terminal gets a live picture, a file or pipe one line per run."""

    def __init__(self) -> None:
        self._note = ""
        self._progress: Progress | None = None
        self._begun_s = self._heard_s = time.monotonic()
        self._worst_ns: int | None = None
        self._worst_s = 0.0
        self._step: _Step | None = None
        super().__init__()

    def step(self, what: str, share: Callable[[], float] = _unknown_share) -> None:
        """Begin a step between or after runs; as ``Work.step``."""
        self._step = _Step(what, share)
        self._refresh()

    def _picture(self) -> RenderableType:
        progress = self._progress
        if self._step is not None:
            return self._step.picture()
        if progress is None:
            return Text("starting")
        now_s = time.monotonic()
        left_s = max(progress.later_s, progress.remaining_s - (now_s - self._heard_s))
        phase = _PHASES.get(progress.phase, progress.phase)
        where = [clean(kernel_of(progress.profile))] if progress.profile else []
        return Group(
            Text(", ".join([f"{self._what(progress)}: {phase}", *where])),
            bar(now_s - self._begun_s, now_s - self._begun_s + left_s, left(left_s * 1e9), self._worst()),
        )

    def _worst(self) -> str:
        """The maximum so far, with missed periods charged if the probe counts them, and its age."""
        if self._worst_ns is None:
            return ""
        return f"maximum {readable(self._worst_ns)}, {age((time.monotonic() - self._worst_s) * 1e9)}"

    def __call__(self, progress: Progress, note: str = "") -> None:
        """``note``: text printed after probe and load of the run."""
        self._step = None
        self._progress, self._note, self._heard_s = progress, note, time.monotonic()
        worst_ns = max(progress.worst_ns.values(), default=None)
        if worst_ns != self._worst_ns:
            self._worst_ns, self._worst_s = worst_ns, self._heard_s
        if progress.phase == "ended":
            worst = "" if worst_ns is None else f", maximum {readable(worst_ns)}"
            self._console.print(f"{self._what(progress)}: {progress.outcome or 'interrupted'}{worst}")
            for reason in progress.reasons:
                self.tell(f"  {reason}")

    def _what(self, progress: Progress) -> str:
        where = f" {progress.spec.place}" if progress.spec.place else ""
        return clean(
            f"[{progress.run}/{progress.runs}] {progress.spec.probe}{where}, load {progress.spec.load}"
            + (f", {self._note}" if self._note else "")
        )
