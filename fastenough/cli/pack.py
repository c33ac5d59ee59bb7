# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough pack``: runs with question and verdict in one file that others can verify."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough import words
from fastenough.analysis.excluded_runs import Selection
from fastenough.cli.commands import Command
from fastenough.cli.options import (
    RequirementOptions,
    existing_store,
    json_option,
    only_these_option,
    requirement_options,
    store_option,
)
from fastenough.cli.output import new_file, print_json, say
from fastenough.cli.progress import Work
from fastenough.cli.report import choose_runs, probe_of
from fastenough.jobs.assess import Question, read_runs
from fastenough.jobs.pack import end_pack, prepare, write_members
from fastenough.model import BadInput

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=Command, example="fastenough pack --limit 100us --out evidence.zip --sign ~/.ssh/id_ed25519")
@click.argument("runs", nargs=-1)
@click.option("--out", type=_FILE, required=True, metavar="FILE", help="New file to write.")
@click.option("--sign", "key", type=_FILE, metavar="KEY", help="SSH key that signs the pack.")
@requirement_options
@click.option("--probe", metavar="PROBE", help="Probe whose runs --limit applies to, if the runs have several.")
@only_these_option
@store_option
@json_option
def command(
    *,
    runs: tuple[str, ...],
    out: Path,
    key: Path | None,
    limit_options: RequirementOptions,
    probe: str | None,
    only_these: bool,
    store_path: Path,
    as_json: bool,
) -> None:
    """Pack runs and their verdict as evidence.

    RUNS are ids or beginnings of ids; the default is the newest campaign.  The file contains the recordings, the facts
    about their machines, the plan, the requirement, the verdict and its assumptions.  fastenough verify checks it and
    recomputes the verdict.
    """
    required = limit_options.requirement()
    if probe is not None and required is None:
        raise BadInput("--probe requires --limit")
    store = existing_store(store_path)
    chosen = choose_runs(store, runs)
    selection = Selection.of(chosen=bool(runs), only_these=only_these)
    with new_file(out) as target:
        with Work("reading the runs") as work:
            recordings = read_runs(store, chosen.runs, work.step)
            judged = None if required is None else probe_of(recordings, probe)
            question = Question(
                required,
                limit_options.confidence,
                probe=judged,
                missing=chosen.missing,
                selection=selection,
                planned=bool(chosen.id),
            )
            prepared = prepare(recordings, question, store, work.step)
            archive, manifest = write_members(prepared, target, work.step)
        end_pack(archive, manifest, key)
    result = prepared.result
    if as_json:
        print_json(
            {
                "pack": str(out),
                "signed": key is not None,
                "runs": result.runs,
                "verdict": result.assessment.verdict,
                "headline": result.assessment.headline,
                "excluded": result.excluded,
            }
        )
        return
    say(f"{result.assessment.verdict}: {result.assessment.headline}")
    signed = "signed" if key else "not signed"
    say(f"{out}: {words.counted(len(result.runs), 'run')}, {signed}; check it with: fastenough verify {out}")
