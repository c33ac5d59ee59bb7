# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm compact``: merge the files of closed months in the archive of boards that publish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from fastenough.cli.commands import Command
from fastenough.cli.farm_take import archive_option, database_option
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, print_table, say
from fastenough.cli.progress import Work
from fastenough.fleet import tables
from fastenough.fleet.archive import FleetArchive
from fastenough.fleet.compaction import CompactedPartition, closed_partitions, compact
from fastenough.history import drop_months
from fastenough.model import FastenoughError


@click.command("compact", cls=Command, example="fastenough farm compact --archive archive")
@archive_option
@database_option
@json_option
def command(archive: str, database: str, as_json: bool) -> None:
    """Merge the files of closed months in the archive.

    A month is closed two days after its end.  Its files are merged into one for each table, type of board and shard.  A
    later call merges intervals that boards have published since, and completes the work of a killed one.  Takers
    continue to store data during a merge.  A month that cannot be merged stays as it is; the others are merged.

    Five-minute rows of the database are deleted 60 days after the end of their month, and events after a year.  If a
    run has several series on a CPU, its rows stay, because the archive has only one of these series.
    """
    files, history = FleetArchive(archive), tables.opened(database)
    done: list[CompactedPartition] = []
    errors: list[FastenoughError | OSError] = []
    with Work("deleting old rows of the database") as work:
        drop_months(history, int(history.wall_s()), tables.PUBLISHES)
        work.step("looking for closed months")
        closed = closed_partitions(files, history.wall_s())
        left = list(closed)
        work.step("merging closed months", lambda: 1 - len(left) / len(closed))
        while left:
            try:
                merged = compact(files, history, left[0])
                done += [] if merged is None else [merged]
            except (FastenoughError, OSError) as error:
                errors.append(error)
            del left[0]
    if done or not errors:
        _print(done, as_json)
    if errors:
        errors[0].add_note(f"partitions that were not merged: {len(errors)} of {len(closed)}; the first one:")
        raise errors[0]


def _print(done: Sequence[CompactedPartition], as_json: bool) -> None:
    if as_json:
        print_json({"compacted": [asdict(partition) for partition in done]})
    elif done:
        print_table(
            "Merged",
            ("Table", "Type", "Month", "Shard", "Files", "Rows"),
            [
                (
                    partition.table,
                    partition.type,
                    partition.month,
                    f"{partition.shard:x}",
                    str(partition.files),
                    f"{partition.rows:,}",
                )
                for partition in done
            ],
            texts=3,
        )
    else:
        say("No closed month has files to merge.")
