# SPDX-License-Identifier: GPL-2.0-or-later
"""Upload of recordings by benches: ``POST /upload/RUN`` with a token.

An upload is not trusted until the reader has checked every line.  Until then it is in a file without a name, so that
nothing remains of a refused or interrupted one.  It is then stored once, like a pulled recording.  The same recording
again changes nothing; another one with the same name is refused.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from fastenough.history.boards import board_name
from fastenough.model import BadInput, FastenoughError
from fastenough.recording.lines import MOST_LINE_BYTES, Lines
from fastenough.recording.reader import Reading
from fastenough.store import Store
from fastenough.store.spool import BoundElsewhere

MOST_BYTES = 64 << 20
"""Maximum size of a request's body."""
MOST_CONTENT_BYTES = 512 << 20
"""Maximum size of an uncompressed recording."""
MOST_S = 600.0
"""Maximum time from a request's first byte to its last."""
_HOUR_S = 3600.0
_CHECKED_AT_ONCE = 4
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}", re.ASCII)
_RING = "upload"


class Permit(Protocol):
    """The rights of a token: recordings of these boards, and their number per hour."""

    @property
    def id(self) -> str: ...
    @property
    def boards(self) -> tuple[str, ...]: ...
    @property
    def per_hour(self) -> int: ...


Admit = Callable[[str], Permit | None]
"""The grant of a token; None for any other text."""


class UploadError(Exception):
    """The status of a refusal, and its reason in one line."""

    def __init__(self, status: int, why: str, **headers: str) -> None:
        super().__init__(why)
        self.status = status
        self.headers = headers


@dataclass
class UploadRate:
    """Uses of each permit within the last hour; lost when the server ends."""

    clock: Callable[[], float] = time.monotonic
    _used_s: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def take(self, permit: Permit) -> None:
        """Count a use of the token; raises Refusal if it was used too often."""
        now_s, used = self.clock(), self._used_s[permit.id]
        while used and used[0] <= now_s - _HOUR_S:
            used.popleft()
        if len(used) >= permit.per_hour:
            wait_s = int(used[0] + _HOUR_S - now_s) + 1
            raise UploadError(
                429,
                f"upload limit reached ({permit.per_hour} recordings per hour); retry in {wait_s} s",
                **{"Retry-After": str(wait_s)},
            )
        used.append(now_s)


def _content_sha256(part: BinaryIO, run: str) -> str:
    """SHA-256 of the uncompressed recording; raises BadInput for one that is too large or has too long a line."""
    part.seek(0)
    lines, taken = Lines(part, run, MOST_LINE_BYTES), 0
    for line in lines:
        taken += len(line)
        if taken > MOST_CONTENT_BYTES:
            raise BadInput(f"{run}: the uncompressed recording exceeds {MOST_CONTENT_BYTES} bytes")
    if lines.fault is not None:
        raise BadInput(f"{run}: {lines.fault}")
    return lines.sha256


def _checked_board(part: BinaryIO, run: str, boards: tuple[str, ...]) -> str:
    """The board of a recording that the reader believes; raises Refusal or BadInput."""
    part.seek(0)
    reading = Reading(part, run)
    board = board_name(reading.head)
    if board not in boards:
        raise UploadError(403, f"this token does not permit uploads for board {board!r}")
    if reading.head.run_id != run:
        raise UploadError(422, f"the recording belongs to run {reading.head.run_id}, not {run}")
    for _ in reading:
        pass
    reading.recording()
    return board


def store_upload(part: BinaryIO, run: str, boards: tuple[str, ...], store_path: Path) -> bool:
    """Store a complete upload; returns False if the store already has it.  Raises Refusal."""
    try:
        sha256 = _content_sha256(part, run)
        board = _checked_board(part, run, boards)
    except BadInput as error:
        raise UploadError(422, str(error)) from error
    name = f"{_RING}-{run}.jsonl"
    with closing(Store(store_path)) as store, store.spool(board, _RING, lambda: None) as spool:
        try:
            spool.bind(name, run)
            known = store.runs(id=run)
            if known:
                if known[0].sha256 != sha256:
                    raise UploadError(409, f"the store already has a different recording named {run}")
                return False
            part.seek(0)
            store.adopt(spool, Lines(part, run), run)
        except BoundElsewhere as error:
            raise UploadError(409, f"a different recording named {run} is being stored") from error
        finally:
            spool.release(name, run)
    return True


def _announced_bytes(request: Request) -> int:
    """The length stated by a request; raises Refusal."""
    text = request.headers.get("content-length", "")
    if not (text.isascii() and text.isdigit()):
        raise UploadError(411, "Content-Length is missing or invalid; send the size of the recording")
    if int(text) > MOST_BYTES:
        raise UploadError(413, f"the recording exceeds {MOST_BYTES} bytes; compress it with zstd")
    return int(text)


async def _received(request: Request, announced: int, part: BinaryIO) -> None:
    """Write the body into a file; raises Refusal if its length is not the stated one or it takes too long."""
    taken = 0
    try:
        async with asyncio.timeout(MOST_S):
            async for chunk in request.stream():
                taken += len(chunk)
                if taken > announced:
                    raise UploadError(413, "the recording is longer than its Content-Length")
                part.write(chunk)
    except TimeoutError as error:
        raise UploadError(408, f"the upload did not finish within {MOST_S:g} s") from error
    except ClientDisconnect as error:
        raise UploadError(400, "the upload was incomplete") from error
    if taken != announced:
        raise UploadError(400, "the upload was incomplete")
    part.flush()


def _ignored(_: str) -> None:
    """For a history that is updated from the store anyway."""


def upload_route(
    store_path: Path, admit: Admit, pace: UploadRate | None = None, stored: Callable[[str], None] = _ignored
) -> Route:
    """The route for uploads into the store at a path; ``admit`` is called before the body is read.

    ``stored`` is called with the id of each stored run, also if the store already had it.
    Uploads are checked in threads, one at a time for each token, so that pages and other tokens do not wait.
    """
    used, at_once = pace or UploadRate(), asyncio.Semaphore(_CHECKED_AT_ONCE)
    turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def taken(request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        permit = await run_in_threadpool(admit, token) if scheme.lower() == "bearer" else None
        if permit is None:
            raise UploadError(
                401,
                "upload token missing or invalid; create one with: fastenough farm token add",
                **{"WWW-Authenticate": "Bearer"},
            )
        run: str = request.path_params["run"]
        if _NAME.fullmatch(run) is None:
            raise UploadError(422, "invalid run ID")
        announced = _announced_bytes(request)
        used.take(permit)
        with tempfile.TemporaryFile(dir=store_path) as part:
            await _received(request, announced, part)
            async with turns[permit.id], at_once:
                return await run_in_threadpool(store_upload, part, run, permit.boards, store_path)

    async def upload(request: Request) -> Response:
        try:
            new = await taken(request)
        except UploadError as refused:
            return PlainTextResponse(f"{refused}\n", refused.status, headers={**refused.headers, **_PLAINLY})
        except (FastenoughError, OSError):
            return PlainTextResponse("the recording cannot be stored now; retry later\n", 503, headers=_PLAINLY)
        stored(request.path_params["run"])
        return JSONResponse({"run": request.path_params["run"], "stored": new}, 201 if new else 200, headers=_PLAINLY)

    return Route("/upload/{run}", upload, methods=["POST"])


_PLAINLY = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
