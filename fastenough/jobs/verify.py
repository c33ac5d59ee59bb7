# SPDX-License-Identifier: GPL-2.0-or-later
"""Verify a pack: its hashes and signature, and its verdict, recomputed from the recordings (docs/pack.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fastenough import words
from fastenough.analysis import Assessment, requirement_name
from fastenough.analysis.excluded_runs import Selection, exclusion_text
from fastenough.files import Untrusted, open_regular
from fastenough.jobs.assess import OnStep, no_progress
from fastenough.model import BadInput
from fastenough.pack.archive import Archive
from fastenough.pack.derived import Versions, derive, versions_here, with_current_keys
from fastenough.pack.manifest import (
    ASSESSMENT,
    MOST_SIGNATURE_BYTES,
    QUESTION,
    VERSIONS,
    Contents,
    PackedRun,
    contents_of,
    recording_name,
)
from fastenough.pack.plain import from_json
from fastenough.pack.question import PackedQuestion, judged_alone
from fastenough.pack.signature import Signer, signer_of
from fastenough.recording import Reading, Recording
from fastenough.recording.lazy_text import recording_of_text
from fastenough.recording.lines import ALWAYS_BYTES, MOST_GROWTH, Lines, parse_line

T = TypeVar("T")
_MOST_EXPANDED_BYTES = 16 << 30
_FIGURES = ("run_ids", "probe", "load", "setup", "requirement", "verdict", "n", "exceeded", "maximum_ns")
"""Keys of a judgment that must be the same with every version of the programs."""
_RESULT = ("probe", "requirement", "verdict")
"""Keys of the result of one requirement that must be, unless the pack is of a version that did not state results."""


@dataclass(frozen=True)
class Verified:
    """An intact pack.

    ``same``: whether the recomputed verdict is the stored one; ``differences``: what is not the same.  ``assessment``:
    the recomputed one.  ``signer``: None if the pack is not signed.  ``not_recomputed``: statements that rest on data
    outside the pack.
    """

    same: bool
    differences: tuple[str, ...]
    assessment: Assessment
    signer: Signer | None
    not_recomputed: tuple[str, ...]
    versions: Versions
    versions_here: Versions
    runs: tuple[str, ...]
    members: int


def verify(path: Path, signers: Path | None = None, on_step: OnStep = no_progress) -> Verified:
    """Verify a pack; raises BadInput for one that is damaged, not a pack, or not signed by an allowed signer.

    ``signers``: file of allowed signers (ssh-keygen(1)); the pack must then be signed by one of them.  Nothing is
    written to disk.
    """
    on_step("checking the hashes", lambda: 0.0)
    with _open_archive(path) as archive, _naming_errors(path):
        contents = contents_of(archive)
        signer = _signer(contents, signers)
        question = _document(contents, QUESTION, PackedQuestion)
        versions = _document(contents, VERSIONS, Versions)
        _require_bounded(contents)
        runs = contents.manifest.runs
        recordings: list[Recording] = []
        on_step("reading the runs", lambda: len(recordings) / len(runs))
        recordings += (_recording(contents, run) for run in runs)
        on_step("judging", lambda: 0.0)
        derived = derive(recordings, question, judged_alone(recordings, question))
        alike = versions == versions_here()
        same, differences = _compare_files(contents, derived.members, alike)
    return Verified(
        same,
        differences,
        derived.assessment,
        signer,
        tuple(_not_recomputed(question, runs)),
        versions,
        versions_here(),
        tuple(run.id for run in runs),
        len(contents.members),
    )


@contextmanager
def _open_archive(path: Path) -> Iterator[Archive]:
    try:
        with open_regular(path) as stream:
            yield Archive(stream, str(path))
    except Untrusted as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}; name a pack") from error


@contextmanager
def _naming_errors(path: Path) -> Iterator[None]:
    """Put the file's name before errors about its content."""
    try:
        yield
    except BadInput as error:
        if str(error).startswith(str(path)):
            raise
        raise BadInput(f"{path}: {error}") from error


def _signer(contents: Contents, signers: Path | None) -> Signer | None:
    if contents.signature is not None:
        signature = contents.archive.read(contents.signature, MOST_SIGNATURE_BYTES)
        return signer_of(contents.manifest_bytes, signature, signers)
    if signers is not None:
        raise BadInput("not signed, and --signers requires the signature of an allowed signer")
    return None


def _document(contents: Contents, name: str, kind: type[T]) -> T:
    try:
        return from_json(kind, with_current_keys(name, contents.read(name)))
    except (ValueError, BadInput) as error:
        raise BadInput(f"{name}: {str(error)[:200]}") from error


def _require_bounded(contents: Contents) -> None:
    """Raises BadInput if the recordings of the pack expand to too much together, or are not those of the manifest."""
    left = min(_MOST_EXPANDED_BYTES, ALWAYS_BYTES + MOST_GROWTH * contents.archive.bytes)
    for run in contents.manifest.runs:
        name = recording_name(run.id)
        with contents.archive.open_member(contents.members[name]) as member:
            lines = Lines(member, name)
            for chunk in lines.chunks():
                left -= len(chunk)
                if left < 0:
                    raise BadInput("its recordings expand to too many bytes for a file of its size")
        if lines.fault is not None or lines.sha256 != run.sha256:
            raise BadInput(f"{name}: {lines.fault or 'SHA-256 mismatch: not the recording of the manifest'}")


def _recording(contents: Contents, run: PackedRun) -> Recording:
    """The recording of a run; raises BadInput for one that is malformed, or of another run."""
    text = partial(_text, contents, run)
    with text() as lines:
        recording = recording_of_text(lines, text)
    if recording.run_id != run.id:
        raise BadInput(f"{recording_name(run.id)}: it is the recording of another run, {recording.run_id[:80]}")
    return recording


@contextmanager
def _text(contents: Contents, run: PackedRun) -> Iterator[Reading]:
    name = recording_name(run.id)
    with contents.archive.open_member(contents.members[name]) as member:
        yield Reading(member, name, run.sha256)


def _compare_files(contents: Contents, derived: Mapping[str, bytes], alike: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether the verdict is the same, and the differences; ``alike``: both are by the same versions.

    Other versions may word a sentence differently, or compute another last digit; the same versions never do.
    """
    packed = {name: contents.read(name) for name in derived}
    if packed[ASSESSMENT] != derived[ASSESSMENT]:
        packed[ASSESSMENT] = with_current_keys(ASSESSMENT, packed[ASSESSMENT])
    differing = [name for name, content in derived.items() if packed[name] != content]
    if not differing:
        return True, ()
    stored, computed = (_object(raw) for raw in (packed[ASSESSMENT], derived[ASSESSMENT]))
    decisive = tuple(_verdict_differences(stored, computed))
    other = [f"{name} is not what follows from the recordings{_keys(name, stored, computed)}" for name in differing]
    return not alike and not decisive, (*decisive, *other)


def _keys(name: str, stored: Mapping[str, Any], computed: Mapping[str, Any]) -> str:
    """The keys of the assessment that differ, as the end of a sentence."""
    keys = [key for key in computed if stored.get(key) != computed[key]] if name == ASSESSMENT else []
    return f" ({', '.join(keys)})" if keys else ""


def _object(raw: bytes) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    try:
        value = parse_line(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _verdict_differences(stored: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    if stored.get("verdict") != computed["verdict"]:
        yield f"the verdict is {str(stored.get('verdict'))[:80]} in the pack and {computed['verdict']} recomputed"
    yield from _figure_differences("judgment", stored.get("judgments"), computed["judgments"], _FIGURES)
    results = stored.get("requirement_results")
    if results:
        yield from _figure_differences("requirement", results, computed["requirement_results"], _RESULT)


def _figure_differences(what: str, stored: Any, computed: Any, keys: Sequence[str]) -> Iterator[str]:
    """Differences of two lists of objects in these keys; ``what``: the name of one object."""
    stated, expected = _objects(stored), _objects(computed)
    if len(stated) != len(expected):
        yield f"the pack states {words.counted(len(stated), what)}, and {len(expected)} were recomputed"
        return
    for number, (before, now) in enumerate(zip(stated, expected, strict=True), start=1):
        for key in keys:
            if before.get(key) != now.get(key):
                yield (
                    f"{what} {number}: {key} is {str(before.get(key))[:80]} in the pack and "
                    f"{str(now.get(key))[:80]} recomputed"
                )


def _objects(value: Any) -> Sequence[Mapping[str, Any]]:
    """The objects of a list, an empty one for anything else."""
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


def _not_recomputed(question: PackedQuestion, runs: Sequence[PackedRun]) -> Iterator[str]:
    """Statements of the pack that rest on the store from which it was made."""
    planned = [run for run in runs if run.plan is not None]
    if question.excluded:
        yield exclusion_text(question.excluded)
    else:
        yield "the store had no other run of the same kind when the pack was made"
    if question.missing:
        yield f"the store lacked planned runs: {'; '.join(question.missing)[:200]}"
    elif planned and question.compared_with_plan:
        yield "the store lacked no planned run"
    if question.excluded and question.selection != Selection.ONLY_THESE.name:
        contradict = "do not contradict" if question.all_runs_agree else "contradict"
        yield f"all runs of the same kind, combined, {contradict} the verdict on the runs in the pack"
        results = question.agreed_results or ()
        if results:
            names = (f"probe {one.probe}, {requirement_name(one.requirement)}: {one.verdict}" for one in results)
            yield f"all runs of the same kind, combined, do not contradict: {'; '.join(names)[:400]}"
    if planned:
        were = "was" if len(planned) == 1 else "were"
        yield f"{words.counted(len(planned), 'run')} {were} measured by the plans in the pack"
