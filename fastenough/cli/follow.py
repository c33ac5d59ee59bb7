# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough show --follow``: shows a run while this or another process measures it.

Reads only what was added to the recording, at a lower priority than the measurement.
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
from fastenough.cli.progress_wording import clock, final_lines, heading, newest_wakeups, plain_line, wakeup_line
from fastenough.folder import Folder
from fastenough.jobs.live import LiveFile, LiveRecording, StoreRuns, at_path, is_path
from fastenough.model import ExitStatus
from fastenough.recording import read_from
from fastenough.store.directory import SEALED_FILE

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_LOOK_S = 0.25
_DRAW_S = 1.0
"""Between two pictures; half of it if there are new data."""
_NICE = 10
_WAIT_S = 0.5


def follow(named: str | None, store: Path) -> ExitStatus:
    """Show a run until it ends; returns status 0 whatever its outcome, 4 if it was left unfinished."""
    os.nice(_NICE)
    folder, name = at_path(Path(named)) if named is not None and is_path(named) else _in_store(named, store)
    if name.endswith(".zst"):
        return _status_of_sealed(folder, name)
    with closing(LiveFile(folder, name)) as watch, screen_on(sys.stdout) as screen:
        while not watch.over:
            screen.show(watch)
        return screen.end(watch)


def _in_store(named: str | None, store: Path) -> tuple[Folder, str]:
    """The recording of the named run, of the newest in progress, or of the next one that begins."""
    with closing(StoreRuns(store)) as runs:
        if named is not None:
            return runs.recording(runs.find(named))
        under_way = runs.under_way()
        if under_way is None:
            print(
                f"fastenough: no run in progress in {store}; waiting for the next one (Ctrl-C stops)",
                file=sys.stderr,
                flush=True,
            )
        while under_way is None:
            time.sleep(_WAIT_S)
            under_way = runs.under_way()
        return runs.recording(under_way)


def _status_of_sealed(folder: Folder, name: str) -> ExitStatus:
    """Print a run that has ended already."""
    with folder, folder.open_file(name) as stream:
        recording = read_from(stream, str(folder.path / name))
    print(clean(heading(recording.head)))
    if recording.end is None:
        print(clean(f"run {recording.run_id} was interrupted; no process writes it"))
        return ExitStatus.BROKEN
    print("\n".join(map(clean, final_lines(recording.head, recording.end, name == SEALED_FILE))))
    return ExitStatus.DONE


class Screen:
    """A live view on a terminal; plain lines in a file, a pipe or a dumb terminal."""

    def __init__(self, terminal: Console, live: Live | None) -> None:
        self._live = live
        self._console = terminal
        self._drawn_mono_s = 0.0
        self._headed = False
        self._printed_quiet = False
        self._printed_seq = -1
        self._printed_culprits = 0

    def show(self, watch: LiveFile) -> None:
        """Read new data and draw once a second; older data are read first."""
        new = watch.look()
        if watch.remark:
            self._say(f"{watch.path}: {watch.remark}")
            watch.remark, self._headed, self._printed_seq, self._printed_culprits = "", False, -1, 0
        catching_up = new and watch.behind_bytes > 0
        if self._live is None:
            self._plain(watch, drawing=new and not catching_up)
        elif watch.over or time.monotonic() - self._drawn_mono_s >= (_DRAW_S / 2 if new else _DRAW_S):
            self._drawn_mono_s = time.monotonic()
            size = self._live.console.size
            drawing = import_module("fastenough.cli.run_picture")  # which loads rich, and plain lines do without
            self._live.update(
                drawing.picture(watch.following, self._state(watch), size.width, size.height), refresh=True
            )
        if not (catching_up or watch.over):
            time.sleep(_LOOK_S)

    def _plain(self, watch: LiveFile, *, drawing: bool) -> None:
        head = watch.following.head
        if head is not None and not self._headed:
            self._headed = True
            self._say(heading(head))
        last = watch.following.last
        if drawing and last is not None and watch.following.end is None and last.seq != self._printed_seq:
            self._printed_seq = last.seq
            self._say(plain_line(watch.following))
        self._culprits(watch.following)
        if not watch.quiet_s or watch.over:
            self._printed_quiet = False
        elif not self._printed_quiet:
            self._printed_quiet = True
            self._say(self._state(watch))

    def _culprits(self, following: LiveRecording) -> None:
        """Print the causes that are new since the last call."""
        events = following.culprits_after(self._printed_culprits)
        self._printed_culprits = following.culprits_seen
        for wakeup in reversed(newest_wakeups(following.head, events)):
            self._say(f"  {wakeup_line(wakeup)}")

    @staticmethod
    def _state(watch: LiveFile) -> str:
        if watch.quiet_s:
            left_s = max(0.0, watch.patience_s - watch.quiet_s)
            return f"no new data since {_when(watch.grown_wall_ns)}; stopping in {left_s:.0f} s"
        behind = watch.behind_bytes
        return f"catching up: {words.number(behind >> 10)} KiB left to read" if behind else ""

    def _say(self, text: str) -> None:
        self._console.print(clean(text), soft_wrap=True)

    def end(self, watch: LiveFile) -> ExitStatus:
        """Stop the live view and print the outcome."""
        following = watch.following
        if self._live is not None:
            self._live.stop()
        if following.head is not None and following.end is not None:
            for line in final_lines(following.head, following.end, watch.path.name != SEALED_FILE):
                self._say(line)
            return ExitStatus.DONE
        self._say(f"unfinished: {watch.over}; no new data since {_when(watch.grown_wall_ns)}")
        return ExitStatus.BROKEN


def _when(wall_ns: int) -> str:
    return f"{wall_text(wall_ns)}, {clock(time.time_ns() - wall_ns)} ago"


@contextmanager
def screen_on(stream: TextIO) -> Iterator[Screen]:
    """The view that suits a stream."""
    terminal = console(stream)
    if not terminal.is_terminal or terminal.is_dumb_terminal:
        yield Screen(terminal, None)
        return
    from rich.live import Live  # noqa: PLC0415 - see console

    with Live(console=terminal, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        yield Screen(terminal, live)
