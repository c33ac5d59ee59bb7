# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough show --follow``: looks into a run while it is measured, by this or by any other process.

It reads what was added to the recording and nothing else, and runs at a lower priority than what is measured.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from fastenough import words
from fastenough.cli.output import clean, console, wall_text
from fastenough.cli.progress_words import clock, final_lines, heading, newest_wakeups, plain_line, wakeup_line
from fastenough.folder import Folder
from fastenough.jobs.following import Following
from fastenough.jobs.watching import Runs, Watch, at_path, is_path
from fastenough.model import ExitStatus
from fastenough.recording import read_from
from fastenough.store.directory import SEALED_FILE

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_LOOK_S = 0.25
_DRAW_S = 1.0
"""Between two pictures; half of it where something is new."""
_NICE = 10
_WAIT_S = 0.5


def follow(named: str | None, store: Path) -> ExitStatus:
    """Until the run has ended: then status 0, whatever its outcome; 4 where it was left unfinished."""
    os.nice(_NICE)
    folder, name = at_path(Path(named)) if named is not None and is_path(named) else _in_store(named, store)
    if name.endswith(".zst"):
        return _sealed(folder, name)
    with closing(Watch(folder, name)) as watch, shown(sys.stdout) as screen:
        while not watch.over:
            screen.show(watch)
        return screen.end(watch)


def _in_store(named: str | None, store: Path) -> tuple[Folder, str]:
    """The recording of the run named, or of the newest under way, or of the next one that begins."""
    with closing(Runs(store)) as runs:
        if named is not None:
            return runs.recording(runs.find(named))
        under_way = runs.under_way()
        if under_way is None:
            print(
                f"fastenough: no run is under way in {store}; waiting for the next one to begin (Ctrl-C ends this)",
                file=sys.stderr,
                flush=True,
            )
        while under_way is None:
            time.sleep(_WAIT_S)
            under_way = runs.under_way()
        return runs.recording(under_way)


def _sealed(folder: Folder, name: str) -> ExitStatus:
    """A run that has ended already."""
    with folder, folder.open_file(name) as stream:
        recording = read_from(stream, str(folder.path / name))
    print(clean(heading(recording.head)))
    if recording.end is None:
        print(clean(f"run {recording.run_id} was cut off, and nothing writes it any more"))
        return ExitStatus.BROKEN
    print("\n".join(map(clean, final_lines(recording.head, recording.end, name == SEALED_FILE))))
    return ExitStatus.DONE


class Screen:
    """A picture that is drawn again and again on a terminal; lines in a file or pipe, or on a dumb terminal."""

    def __init__(self, drawn: Console, live: Live | None) -> None:
        self._live = live
        self._console = drawn
        self._drawn_mono_s = 0.0
        self._headed = False
        self._told_quiet = False
        self._told_seq = -1
        self._told_culprits = 0

    def show(self, watch: Watch) -> None:
        """Take what there is, and draw once a second; what was recorded before is caught up with first."""
        new = watch.look()
        if watch.remark:
            self._say(f"{watch.path}: {watch.remark}")
            watch.remark, self._headed, self._told_seq, self._told_culprits = "", False, -1, 0
        catching_up = new and watch.behind_bytes > 0
        if self._live is None:
            self._plain(watch, drawing=new and not catching_up)
        elif watch.over or time.monotonic() - self._drawn_mono_s >= (_DRAW_S / 2 if new else _DRAW_S):
            self._drawn_mono_s = time.monotonic()
            size = self._live.console.size
            drawing = import_module("fastenough.cli.drawing")  # which loads rich, and plain lines do without
            self._live.update(
                drawing.picture(watch.following, self._state(watch), size.width, size.height), refresh=True
            )
        if not (catching_up or watch.over):
            time.sleep(_LOOK_S)

    def _plain(self, watch: Watch, *, drawing: bool) -> None:
        head = watch.following.head
        if head is not None and not self._headed:
            self._headed = True
            self._say(heading(head))
        last = watch.following.last
        if drawing and last is not None and watch.following.end is None and last.seq != self._told_seq:
            self._told_seq = last.seq
            self._say(plain_line(watch.following))
        self._culprits(watch.following)
        if not watch.quiet_s or watch.over:
            self._told_quiet = False
        elif not self._told_quiet:
            self._told_quiet = True
            self._say(self._state(watch))

    def _culprits(self, following: Following) -> None:
        """Those that came since the last look."""
        events = following.culprits_after(self._told_culprits)
        self._told_culprits = following.culprits_seen
        for wakeup in reversed(newest_wakeups(following.head, events)):
            self._say(f"  {wakeup_line(wakeup)}")

    @staticmethod
    def _state(watch: Watch) -> str:
        if watch.quiet_s:
            left_s = max(0.0, watch.patience_s - watch.quiet_s)
            return f"nothing was added since {_when(watch.grown_wall_ns)}; this ends in {left_s:.0f} s"
        behind = watch.behind_bytes
        return f"{words.number(behind >> 10)} KiB of what was recorded before are still to be read" if behind else ""

    def _say(self, text: str) -> None:
        self._console.print(clean(text), soft_wrap=True)

    def end(self, watch: Watch) -> ExitStatus:
        """The last words, when the picture stands still."""
        following = watch.following
        if self._live is not None:
            self._live.stop()
        if following.head is not None and following.end is not None:
            for line in final_lines(following.head, following.end, watch.path.name != SEALED_FILE):
                self._say(line)
            return ExitStatus.DONE
        self._say(f"unfinished: {watch.over}; it does not grow since {_when(watch.grown_wall_ns)}")
        return ExitStatus.BROKEN


def _when(wall_ns: int) -> str:
    return f"{wall_text(wall_ns)}, {clock(time.time_ns() - wall_ns)} ago"


@contextmanager
def shown(stream: TextIO) -> Iterator[Screen]:
    """What suits a stream."""
    drawn = console(stream)
    if not drawn.is_terminal or drawn.is_dumb_terminal:
        yield Screen(drawn, None)
        return
    from rich.live import Live  # noqa: PLC0415 - see console

    with Live(console=drawn, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        yield Screen(drawn, live)
