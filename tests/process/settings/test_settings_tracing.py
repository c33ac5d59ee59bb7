# SPDX-License-Identifier: GPL-2.0-or-later
"""What the settings that trace write into an instance, in a folder that stands for tracefs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.link import Link, LocalLink
from fastenough.link.base import Completed
from fastenough.settings.setting import Requested
from fastenough.settings.tracing import INSTANCE, SETTINGS, TRACEFS, WAKEUP_EVENT

_EVENTS = ("sched/sched_waking", "sched/sched_switch", f"synthetic/{WAKEUP_EVENT}")


class _TracingLink(LocalLink):
    """This machine, with a folder in place of its tracefs."""

    def __init__(self, tracefs: Path) -> None:
        super().__init__()
        self._tracefs = tracefs
        (tracefs / "instances").mkdir()
        (tracefs / "synthetic_events").touch()
        (tracefs / "available_tracers").write_text("timerlat nop\n")

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        completed = super().run([word.replace(TRACEFS, str(self._tracefs)) for word in argv], timeout_s, input)
        if argv[0] == "mkdir":
            for event in _EVENTS:
                (self.instance / "events" / event).mkdir(parents=True)
        return completed

    @property
    def instance(self) -> Path:
        return self._tracefs / Path(INSTANCE).relative_to(TRACEFS)

    def trigger(self, event: str) -> str:
        return (self.instance / "events" / event / "trigger").read_text()


def _apply(link: Link, name: str, requested: Requested) -> None:
    [setting] = (setting for setting in SETTINGS if setting.name == name)
    for place, value in setting.steps(link, requested):
        place.write(link, value)


@pytest.mark.parametrize(
    ("requested", "waking", "switch"),
    [
        ("16384", " if prio < 100\n", " if next_prio < 100\n"),
        ("16384:robot", ' if prio < 100 && comm ~ "robot*"\n', ' if next_prio < 100 && next_comm ~ "robot*"\n'),
    ],
)
def test_both_ends_of_a_wake_up_count_the_same_tasks(tmp_path: Path, requested: str, waking: str, switch: str) -> None:
    link = _TracingLink(tmp_path)
    _apply(link, "wakeup-histograms", requested)
    assert link.trigger("sched/sched_waking").endswith(waking)
    assert link.trigger("sched/sched_switch").endswith(switch)


def test_the_tracer_stamps_its_samples_by_the_clock_of_the_run(tmp_path: Path) -> None:
    link = _TracingLink(tmp_path)
    _apply(link, "timerlat", 64)
    assert (link.instance / "trace_clock").read_text() == "mono\n"
