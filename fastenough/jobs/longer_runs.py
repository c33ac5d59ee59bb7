# SPDX-License-Identifier: GPL-2.0-or-later
"""Find longer runs of the same kind in the store, which test the estimates of a report."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.analysis.differences import differing_keys, run_values
from fastenough.analysis.longer_runs import LongerRecording, longer_recording
from fastenough.analysis.merged import grouped, load_name
from fastenough.model import Outcome
from fastenough.recording import Recording
from fastenough.store import Store

_MOST_READ = 5
"""Maximum number of runs that are read for each group: the longest with its board, probe, implementation and load."""


def longer_runs(recordings: Sequence[Recording], store: Store) -> dict[str, LongerRecording]:
    """By the id of the first run of each group that may be merged: the longest other run of the same kind, if it is
    longer than all of the group together."""
    usable = [
        recording
        for recording in recordings
        if recording.outcome is not Outcome.NOT_APPLICABLE and recording.damage is None
    ]
    longest = ((group[0].run_id, _longest_alike(group, store)) for group in grouped(usable))
    return {run_id: longer_recording(recording) for run_id, recording in longest if recording is not None}


def _longest_alike(group: Sequence[Recording], store: Store) -> Recording | None:
    first = group[0]
    alike = store.runs(
        brief=True,
        board=first.head.board,
        probe=first.head.probe,
        implementation=first.head.implementation,
        load=load_name(first),
    )
    taken = {recording.run_id for recording in group}
    measured_ns = sum(recording.duration_ns for recording in group)
    durations = {run.id: run.duration_ns or 0 for run in alike if run.state == "ended" and run.id not in taken}
    longest = sorted(durations, key=durations.__getitem__, reverse=True)[:_MOST_READ]
    values = run_values(first)
    recordings = (store.load(run_id) for run_id in longest if durations[run_id] > measured_ns)
    return next(
        (
            recording
            for recording in recordings
            if recording.damage is None and not differing_keys(values, run_values(recording))
        ),
        None,
    )
