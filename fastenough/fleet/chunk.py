# SPDX-License-Identifier: GPL-2.0-or-later
"""Chunks that a board publishes: consecutive intervals of one run, with all that is needed to store them.

A chunk is complete in itself (it repeats the recording's head), so that no taker needs to remember a board.  Its
payload is text compressed with zstd: a preface in JSON, the head, then lines of intervals and events as in the
recording."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import zstandard

from fastenough.model import BadInput

SHARDS = 16
"""Number of shards of a fleet, by the first digit of the machine id; one process at a time stores a shard."""
FORMAT = 1
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_RUN = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MOST_PACKED = 1 << 20
_MOST_BYTES = 16 << 20
_MOST_HEAD = 1 << 20
_MOST_MORE = 1 << 20
"""Bytes of all lines but the longest; the publisher sends at most as much in addition to the first interval."""
_MOST_LINES = 1 << 14
"""An event has more than 64 bytes."""
_MOST_INTERVALS = 1 << 40
_MOST_NS = 1 << 63


def is_machine_id(text: str) -> bool:
    """Whether a text has the form of a machine id."""
    return _MACHINE_ID.fullmatch(text) is not None


def require_machine_id(text: str) -> None:
    """Raise BadInput for an argument of another form."""
    if not is_machine_id(text):
        raise BadInput(f"{text[:80]!r} is not a machine id; write its 32 hexadecimal digits")


@dataclass(frozen=True)
class Chunk:
    """Consecutive intervals of one run of one machine, from number ``first`` on.

    ``type``: type of the board, as its publisher states.  ``oldest``: the oldest interval of the run that the board
    still holds; earlier ones are lost if they are not stored.  ``head``, ``lines``: as in the recording, each ending
    with a line feed.  ``now_ns``: wall clock of the board when it published; None: not stated.
    """

    machine: str
    type: str
    run: str
    first: int
    oldest: int
    head: bytes
    lines: tuple[bytes, ...]
    now_ns: int | None = None

    def packed(self) -> bytes:
        preface: dict[str, str | int] = {
            "fleet": FORMAT,
            "machine": self.machine,
            "type": self.type,
            "run": self.run,
            "first": self.first,
            "oldest": self.oldest,
        }
        if self.now_ns is not None:
            preface["now_ns"] = self.now_ns
        return zstandard.compress(b"".join((json.dumps(preface).encode(), b"\n", self.head, *self.lines)), 3)


def shard_of(machine: str) -> int:
    return int(machine[0], 16)


def ring_topic(machine: str) -> str:
    """MQTT topic on which a board publishes; its levels have no dots or spaces, which NATS refuses."""
    return f"fe/ring/{shard_of(machine):x}/{machine}"


def order_topic(machine: str) -> str:
    """MQTT topic of the answers to a board."""
    return f"fe/order/{machine}"


def unpacked(payload: bytes, machine: str) -> Chunk:
    """The chunk in a message on the topic of ``machine``; raises BadInput for an invalid one."""
    if len(payload) > _MOST_PACKED:
        raise BadInput(f"a chunk of {machine} is longer than {_MOST_PACKED} bytes")
    try:
        # the library allocates what the frame states, whatever the limit
        if zstandard.frame_content_size(payload) > _MOST_BYTES:
            raise BadInput(f"a chunk of {machine} states more than {_MOST_BYTES} bytes")
        text = zstandard.ZstdDecompressor().decompress(payload, max_output_size=_MOST_BYTES)
        first, _, rest = text.partition(b"\n")
        preface = json.loads(first)
    except (zstandard.ZstdError, ValueError, RecursionError) as error:
        raise BadInput(f"not a chunk of a recording, from {machine}: {str(error)[:100]}") from None
    if not isinstance(preface, dict) or preface.get("fleet") != FORMAT:
        raise BadInput(f"a chunk of {machine} is not of format {FORMAT}; update the publisher or this fastenough")
    kind, run, numbers = preface.get("type"), preface.get("run"), [preface.get("first"), preface.get("oldest")]
    if preface.get("machine") != machine or not is_machine_id(machine):
        raise BadInput(f"a chunk on the topic of {machine} is of another machine")
    if not isinstance(kind, str) or not kind.isprintable() or not isinstance(run, str) or not _RUN.fullmatch(run):
        raise BadInput(f"a chunk of {machine} has no valid type or run")
    if not all(_is_number(number) for number in numbers):
        raise BadInput(f"a chunk of {machine} has no valid numbers of intervals")
    now_ns = preface.get("now_ns")
    if now_ns is not None and not _is_number(now_ns, _MOST_NS):
        raise BadInput(f"a chunk of {machine} has no valid time of its board")
    head, *lines = _lines_of(rest, machine)
    if len(head) > _MOST_HEAD or sum(map(len, lines)) - max(map(len, lines), default=0) > _MOST_MORE:
        raise BadInput(f"a chunk of {machine} has more than 1 MiB of head, or of lines without the longest one")
    return Chunk(machine, kind[:200], run, preface["first"], preface["oldest"], head, tuple(lines), now_ns)


def _lines_of(text: bytes, machine: str) -> list[bytes]:
    """The lines of a chunk, at least one; counted before they are split, since a short message may state millions."""
    if text.count(b"\n") + text.count(b"\r") > _MOST_LINES:
        raise BadInput(f"a chunk of {machine} has more than {_MOST_LINES} lines")
    lines = text.splitlines(keepends=True)
    if not lines or not lines[-1].endswith(b"\n"):
        raise BadInput(f"a chunk of {machine} is cut off")
    return lines


def stated_size(payload: bytes) -> int:
    """Length of the text that `unpacked` makes of a message, or of the message if it is greater."""
    try:
        size = zstandard.frame_content_size(payload)
    except zstandard.ZstdError:
        size = 0
    if size > _MOST_BYTES:  # it is refused
        size = 0
    return max(len(payload), size if size >= 0 else _MOST_BYTES)


def _is_number(value: object, bound: int = _MOST_INTERVALS) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < bound


@dataclass(frozen=True)
class Stored:
    """A taker's answer: all intervals of ``run`` before ``next`` are stored, and the board may drop them.

    If ``next`` is not greater than in an earlier answer, the board publishes again from there.
    """

    run: str
    next: int

    def packed(self) -> bytes:
        return json.dumps({"run": self.run, "next": self.next}).encode()


def stored_of(payload: bytes) -> Stored:
    """Parse a taker's answer; raises BadInput for anything else."""
    try:
        document = json.loads(payload[:1000])
        answer = Stored(document["run"], document["next"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"not an answer of a taker: {error}") from None
    if not isinstance(answer.run, str) or not _is_number(answer.next):
        raise BadInput("not an answer of a taker: run and next are missing")
    return answer
