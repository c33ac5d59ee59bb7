# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of the jobs over the archive of a fleet: archive, type of board, and where they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, TypeVar

import click

from fastenough.cli.farm_take import archive_option
from fastenough.cli.output import print_table, say
from fastenough.cli.progress import Work
from fastenough.fleet.workers import BoardJob, Workers, over_boards
from fastenough.model import BadInput

T = TypeVar("T")
_MOST_PRINTED = 40
_OPTIONS = (
    archive_option,
    click.option("--type", "kind", metavar="TYPE", help="Only boards of this type  [default: all]"),
    click.option(
        "--scheduler",
        metavar="URL",
        help="Dask scheduler of a cluster, as in tcp://HOST:8786  [default: processes of this machine]",
    ),
    click.option(
        "--workers",
        "processes",
        type=click.IntRange(1, 1024),
        help="Number of processes of this machine  [default: one for each CPU]",
    ),
)


@dataclass(frozen=True)
class ArchiveOptions:
    """The options of a job, as given."""

    archive: str
    kind: str | None
    scheduler: str | None
    processes: int | None

    def compute(self, job: BoardJob[T]) -> list[T]:
        """The result of each board, in the order of their names; shows the progress."""
        if self.scheduler is not None and self.processes is not None:
            raise BadInput("--workers and --scheduler exclude each other; omit one")
        with Work("starting workers") as work:
            return over_boards(self.archive, job, Workers(self.scheduler, self.processes), self.kind, work.step)


def print_first_rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> None:
    """Print the first rows of a table, which may have one for each board of a fleet.  ``texts``: of `print_table`."""
    print_table(title, columns, rows[:_MOST_PRINTED], texts=texts)
    if len(rows) > _MOST_PRINTED:
        say(f"and {len(rows) - _MOST_PRINTED:,} more (--json prints all)")


def archive_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --archive, --type, --scheduler and --workers, passed as ``of_archive``."""
    names = [field.name for field in fields(ArchiveOptions)]

    @wraps(command)
    def with_archive(**values: Any) -> Any:
        return command(of_archive=ArchiveOptions(*(values.pop(name) for name in names)), **values)

    for option in reversed(_OPTIONS):
        with_archive = option(with_archive)
    return with_archive
