# SPDX-License-Identifier: GPL-2.0-or-later
"""Sending recordings to the website of a farm, with a token."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import quote, urlsplit

from fastenough.model import BadInput, FastenoughError
from fastenough.web.addresses import is_loopback
from fastenough.words import output_lines

_PATIENCE_S = 660.0
_MOST_ANSWER_BYTES = 1 << 16


@dataclass(frozen=True)
class Goal:
    """Destination of uploads; ``path``: that of the website."""

    encrypted: bool
    host: str
    port: int | None
    path: str


def parse_goal(url: str) -> Goal:
    """The address of a website; raises BadInput if others could read the token on the way."""
    try:
        parts = urlsplit(url)
        goal = Goal(parts.scheme == "https", parts.hostname or "", parts.port, parts.path.rstrip("/"))
    except ValueError as error:
        raise BadInput(f"--to: invalid address ({error}); use --to https://HOST") from error
    if parts.scheme not in ("http", "https") or not goal.host or parts.username or parts.query or parts.fragment:
        raise BadInput("--to: invalid address; use https://HOST without user name, query or fragment")
    if not goal.encrypted and not is_loopback(goal.host):
        raise BadInput(f"--to: http:// would send the token to {goal.host} unencrypted; use https://")
    return goal


def push(goal: Goal, token: str, run: str, recording: BinaryIO, length: int) -> bool:
    """Send one recording; returns False if the store already has it.  Redirects are not followed.

    Raises BadInput if the website refuses it, FastenoughError if there is no answer.
    """
    kind = http.client.HTTPSConnection if goal.encrypted else http.client.HTTPConnection
    connection = kind(goal.host, goal.port, timeout=_PATIENCE_S)
    try:
        connection.request(
            "POST",
            f"{goal.path}/upload/{quote(run, safe='')}",
            recording,
            {"Authorization": f"Bearer {token}", "Content-Length": str(length), "Content-Type": "application/zstd"},
        )
        answer = connection.getresponse()
        body = answer.read(_MOST_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise FastenoughError(
            f"{goal.host}: {str(error) or type(error).__name__}; repeat the command to send the rest"
        ) from error
    finally:
        connection.close()
    return _is_stored(goal, run, answer.status, body)


def _is_stored(goal: Goal, run: str, status: int, body: bytes) -> bool:
    if status in (200, 201):
        try:
            return bool(json.loads(body)["stored"])
        except (ValueError, KeyError, TypeError) as error:
            raise FastenoughError(f"{goal.host}: the server is not a fastenough website") from error
    why = (output_lines(body) or ["no reason given"])[0] if status != 404 else "the website does not accept uploads"
    refused = BadInput if 400 <= status < 500 and status not in (408, 429) else FastenoughError
    raise refused(f"{run}: refused by {goal.host} (HTTP status {status}): {why}")
