# SPDX-License-Identifier: GPL-2.0-or-later
"""Pack runs of the store with question and verdict into one file (docs/pack.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from fastenough.analysis import Assessment, load_name
from fastenough.analysis.excluded_runs import ExcludedRuns
from fastenough.campaign.expand import PLAN_FILE
from fastenough.jobs.assess import OnStep, Question, excluded_by, no_progress
from fastenough.model import BadInput
from fastenough.pack.archive import ArchiveWriter
from fastenough.pack.derived import Derived, derive, versions_here
from fastenough.pack.manifest import (
    DOCUMENTS,
    MANIFEST,
    MOST_DOCUMENT_BYTES,
    MOST_RUNS,
    QUESTION,
    SIGNATURE,
    VERSIONS,
    PackedRun,
    manifest_of,
    plan_name,
    recording_name,
)
from fastenough.pack.plain import to_json
from fastenough.pack.question import PackedQuestion, judged_alone
from fastenough.pack.signature import sign
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor
from fastenough.store import Store


@dataclass(frozen=True)
class PackResult:
    """The verdict in the pack, its runs, and the runs of the same kind that it does not hold."""

    assessment: Assessment
    runs: tuple[str, ...]
    excluded: tuple[ExcludedRuns, ...]


@dataclass(frozen=True)
class Prepared:
    """What a pack will hold: the runs in the order of their ids, the question, and what follows from both."""

    store: Store
    runs: tuple[str, ...]
    question: PackedQuestion
    derived: Derived

    @property
    def result(self) -> PackResult:
        return PackResult(self.derived.assessment, self.runs, self.question.excluded)


def prepare(
    recordings: Sequence[Recording], question: Question, store: Store, on_step: OnStep = no_progress
) -> Prepared:
    """Judge runs of the store; raises BadInput for runs that a pack cannot hold."""
    by_id = {recording.run_id: recording for recording in recordings}
    if not 1 <= len(by_id) <= MOST_RUNS:
        raise BadInput(f"{len(by_id)} runs; a pack holds 1 to {MOST_RUNS}")
    chosen = [by_id[run] for run in sorted(by_id)]
    for recording in chosen:
        recording_name(recording.run_id)
        _require_sealed(recording, store)
    on_step("judging", lambda: 0.0)
    packed, alone = _packed_question(chosen, question, store)
    return Prepared(store, tuple(sorted(by_id)), packed, derive(chosen, packed, alone))


def _require_sealed(recording: Recording, store: Store) -> None:
    if recording.damage is not None:
        raise BadInput(f"run {recording.run_id}: {recording.damage}; a pack holds intact runs only: name the others")
    if all(run.sha256 is None for run in store.runs(brief=True, id=recording.run_id)):
        raise BadInput(
            f"run {recording.run_id} is not sealed; wait until it has ended, or seal the runs of a bench that died "
            "with: fastenough store rebuild"
        )


def _packed_question(
    recordings: Sequence[Recording], question: Question, store: Store
) -> tuple[PackedQuestion, Assessment]:
    """The question with what the store knows of it, and the verdict on these recordings alone."""
    judged = [recording for recording in recordings if not is_monitor(recording.head)]
    loads = dict.fromkeys(name for recording in judged if (name := load_name(recording)) is not None)
    packed = PackedQuestion(
        question.required,
        question.confidence,
        question.probe,
        tuple(loads),
        question.missing,
        question.selection.name,
        excluded=(),
        planned=question.planned,
    )
    alone = judged_alone(recordings, packed)
    exclusion = excluded_by(judged, alone, question.selection, store)
    return replace(
        packed,
        excluded=exclusion.runs,
        all_runs_agree=exclusion.all_runs_agree,
        agreed_results=exclusion.agreed_results,
    ), alone


def write_members(prepared: Prepared, stream: BinaryIO, on_step: OnStep = no_progress) -> tuple[ArchiveWriter, bytes]:
    """Write all members except the signature; returns the archive and its manifest.

    Raises BadInput, also for a run that was changed meanwhile.
    """
    archive = ArchiveWriter(stream)
    count = len(prepared.runs)
    on_step("writing the pack", lambda: min(1.0, len(archive.entries) / count))
    sha256 = {run: prepared.store.runs(brief=True, id=run)[-1].sha256 or "" for run in prepared.runs}
    for run in prepared.runs:
        archive.add(recording_name(run), prepared.store.sealed(run))
    plans = _add_plans(prepared, archive.add)
    documents = {
        QUESTION: to_json(prepared.question),
        VERSIONS: to_json(versions_here()),
        **prepared.derived.members,
    }
    for name in DOCUMENTS:
        if len(documents[name]) > MOST_DOCUMENT_BYTES:
            raise BadInput(f"{name} is longer than the {MOST_DOCUMENT_BYTES} bytes it may have; pack fewer runs")
        archive.add(name, documents[name])
    packed = [PackedRun(run, sha256[run], plans.get(run)) for run in prepared.runs]
    manifest = to_json(manifest_of(archive.entries, packed))
    archive.add(MANIFEST, manifest)
    return archive, manifest


def end_pack(archive: ArchiveWriter, manifest: bytes, key: Path | None) -> None:
    """Sign the manifest if ``key`` is given, which may ask for its passphrase, and end the archive."""
    if key is not None:
        archive.add(SIGNATURE, sign(manifest, key))
    archive.end()


def _add_plans(prepared: Prepared, add: Callable[[str, bytes], None]) -> dict[str, str]:
    """Add each different plan once; returns the name of the member by run."""
    names: dict[str, str] = {}
    of_run: dict[str, str] = {}
    for run in prepared.runs:
        text = prepared.store.attached(run, PLAN_FILE)
        if text is None:
            continue
        digest = hashlib.sha256(text).hexdigest()
        if digest not in names:
            names[digest] = plan_name(len(names) + 1)
            add(names[digest], text)
        of_run[run] = names[digest]
    return of_run
