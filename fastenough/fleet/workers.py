# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs over all boards of an archive, on workers of ``dask.distributed``: processes of this machine, or a cluster.

A job is a pure function of the rows of one board.  Boards are read in groups that depend on the archive only, so the
number of workers does not change a result.  The groups of a worker that is killed are computed again.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar, runtime_checkable

from fastenough import __version__
from fastenough.fleet.board_rows import BoardGroup, BoardRows, ShardFiles, board_groups, rows_of, shard_files
from fastenough.model import BadInput, FastenoughError, Unavailable

_KILLED_WORKERS = 10
"""A group of boards whose workers were killed more often than this fails: it needs more memory than they have.

A scheduler of a cluster has its own bound.
"""
_CONNECT_S = 10
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
OnStep = Callable[[str, Callable[[], float]], None]


class BoardJob(Protocol[T_co]):
    """A job: what it computes from each board.  It is sent to workers, so it contains plain data only.

    ``columns``: the columns of the archive that it reads besides the key.  A job that also reads columns of events is
    an `EventJob`.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...

    def of_board(self, board: BoardRows, boards: int) -> T_co:
        """The result of a board; ``boards``: number of all boards of the job."""
        ...


@runtime_checkable
class EventJob(BoardJob[T_co], Protocol[T_co]):
    """A job that also reads the events of boards.  ``event_columns``: the columns that it reads besides their key."""

    @property
    def event_columns(self) -> tuple[str, ...]: ...


def event_columns_of(job: BoardJob[Any]) -> tuple[str, ...]:
    """The columns of events that a job reads; none if it reads no events."""
    return job.event_columns if isinstance(job, EventJob) else ()


@dataclass(frozen=True)
class Workers:
    """Where jobs run: at the scheduler of a cluster, or in ``processes`` of this machine (None: one for each CPU)."""

    scheduler: str | None = None
    processes: int | None = None


def over_boards(
    archive: str, job: BoardJob[T], workers: Workers, kind: str | None = None, on_step: OnStep = lambda *_: None
) -> list[T]:
    """The result of each board of an archive, in the order of their names.  ``kind``: of this type of board only.

    Raises BadInput for an archive without boards, or without events if the job reads them, or if dask.distributed is
    missing, Unavailable if the scheduler does not answer, and FastenoughError if the archive cannot be read.
    """
    files = shard_files(archive, kind)
    if event_columns_of(job) and not any(shard.events for shard in files):
        of_type = "" if kind is None else f" of the type {kind}"
        raise BadInput(
            f"archive {archive}: contains no causes{of_type}; takers of this version store them from recordings of "
            "fastenough-monitor, so update the takers, or record the rings of boards with fastenough-monitor"
        )
    with _client(workers) as client:
        groups = _computed(client, board_groups, files, lambda share: on_step("listing boards", share))
        boards = sum(len(group) for of_shard in groups for group in of_shard)
        work = [(shard, group) for shard, of_shard in enumerate(groups) for group in of_shard]
        # a result of a task is computed again if its worker is killed; scattered data would be lost
        common = client.submit(_Common, job, tuple(files), boards, pure=False)
        results = _computed(client, _of_group, work, lambda share: on_step("reading boards", share), common=common)
    return [result for _, result in sorted((pair for group in results for pair in group), key=lambda pair: pair[0])]


@dataclass(frozen=True)
class _Common:
    """What all tasks of a job share; ``boards``: number of all boards."""

    job: BoardJob[Any]
    files: tuple[ShardFiles, ...]
    boards: int


def _of_group(work: tuple[int, BoardGroup], common: _Common) -> list[tuple[str, Any]]:
    shard, group = work
    job = common.job
    return [
        (board.board, job.of_board(board, common.boards))
        for board in rows_of(common.files[shard], group, job.columns, event_columns_of(job))
    ]


def _computed(
    client: Any, function: Callable[..., T], work: Sequence[Any], on_share: Callable[..., None], **common: Any
) -> list[T]:
    """``function`` of each part of the work, in order; ``common``: arguments that all parts share."""
    futures = client.map(function, work, pure=False, **common)
    on_share(lambda: sum(future.done() for future in futures) / len(futures))
    try:
        return list(client.gather(futures))
    except import_module("distributed").KilledWorker as error:
        raise FastenoughError(
            "too many workers were killed at the same boards; use fewer --workers, each with more memory"
        ) from error
    except CancelledError as error:
        raise Unavailable("the scheduler ended during the computation; start it and run the command again") from error


@contextmanager
def _client(workers: Workers) -> Iterator[Any]:
    """A client of the scheduler; that of this machine ends with the block."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise BadInput(
            "jobs over an archive require dask.distributed, which is not installed; run setup/install fleet, or "
            "pip install 'fastenough[fleet]'"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if workers.scheduler is not None:
        with _connected(distributed, workers.scheduler) as client:
            yield client
        return
    with (
        tempfile.TemporaryDirectory() as scratch,
        distributed.LocalCluster(
            n_workers=workers.processes or len(os.sched_getaffinity(0)),
            threads_per_worker=1,
            host="127.0.0.1",
            security=True,  # encrypted, with a certificate of its own: other users cannot connect
            dashboard_address=None,
            worker_dashboard_address=None,
            local_directory=scratch,
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={"allowed_failures": _KILLED_WORKERS},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextmanager
def _connected(distributed: Any, scheduler: str) -> Iterator[Any]:
    """A client of a cluster whose workers have this version of fastenough."""
    try:
        client = distributed.Client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise Unavailable(f"--scheduler {scheduler}: {error}; start it with: dask scheduler") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise Unavailable(f"--scheduler {scheduler}: no worker is connected; start one with: dask worker") from None
        for worker, version in client.run(_version).items():
            if version != __version__:
                raise BadInput(
                    f"--scheduler {scheduler}: worker {worker} has fastenough {version}, this is {__version__}; "
                    "install the same version on both"
                )
        yield client


def _version() -> str:
    return __version__
