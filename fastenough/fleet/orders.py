# SPDX-License-Identifier: GPL-2.0-or-later
"""Orders to boards that publish: signed lines, and the boards' acknowledgements.

The signed line names the machine, the time of issue and the time of expiry.  The time of issue is also the sequence
number: a board accepts only orders that were issued after the last one that it accepted.  The text is exact, since the
publisher (``target/publisher/order.c``) refuses any other spelling of the same content."""

from __future__ import annotations

import base64
import json
import re
import secrets
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nats.aio.subscription import Subscription
from nats.errors import TimeoutError as NatsTimeout
from nats.protocol.parser import PERMISSIONS_ERR

from fastenough.fleet.chunk import require_machine_id
from fastenough.fleet.stream import connected
from fastenough.model import BadInput
from fastenough.pack.signature import sign

NAMESPACE = "fastenough-order"
"""Namespace of signatures; one made for another purpose, such as an evidence pack, signs no order."""
ACTIONS = ("check", "interval", "trace", "plan")
REPLAYED = "replayed"
_SIGNER = re.compile(r"[0-9A-Za-z][0-9A-Za-z@._-]{0,63}")
_DURATION = re.compile(r"[1-9][0-9]{0,5}(ms|s|min|h)")
_MOST_PLAN_BYTES = 40_000
_MOST_VALID_S = 7 * 86400
_MOST_ANSWER_BYTES = 2000
_AGAIN_S = 35.0
"""Longer than a board takes to verify and carry out an order."""
_REFUSAL_S = 0.5
"""Longest wait between checks for refusals, which the server reports some time after the message."""


@dataclass(frozen=True)
class Order:
    """An order to the board of a machine id.  ``by``: name of the signer in the board's file of allowed signers."""

    id: str
    machine: str
    issued_us: int
    expires_s: int
    by: str
    action: str
    value: str

    def line(self) -> bytes:
        """The signed text."""
        return json.dumps({"order": 1, **asdict(self)}, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class Acknowledgement:
    """A board's answer: ``state`` is ``done`` or ``refused`` (with a ``reason``); ``detail``: text of the executor.

    ``attachment``: bytes that the executor sent behind that text.
    """

    order: str
    state: str
    reason: str
    detail: str
    attachment: bytes = field(default=b"", repr=False)


def make_order(machine: str, action: str, value: str, by: str, valid_s: float) -> Order:
    """A new order, valid from now on for ``valid_s`` seconds; raises BadInput if a board would refuse it."""
    require_machine_id(machine)
    if not _SIGNER.fullmatch(by):
        raise BadInput(
            f"--signer {by[:80]!r}: use up to 64 letters, digits and @ . _ -, beginning with a letter or digit"
        )
    if not 1 <= valid_s <= _MOST_VALID_S:
        raise BadInput(f"--valid: {valid_s:g} s is not between 1 s and 7 days")
    if not _is_valid(action, value):
        raise BadInput(f"{action} {value[:40]}: 'check' has no value, 'plan' has a file, others a duration such as 60s")
    issued_us = time.time_ns() // 1000
    return Order(secrets.token_hex(8), machine, issued_us, int(issued_us / 1e6 + valid_s), by, action, value)


def _is_valid(action: str, value: str) -> bool:
    if action in ("check", "plan"):
        return (action == "plan") == bool(value)
    return action in ACTIONS and _DURATION.fullmatch(value) is not None


def packed_plan(content: bytes) -> str:
    """The value of an order to run a plan."""
    if len(content) > _MOST_PLAN_BYTES:
        raise BadInput(f"the plan is longer than {_MOST_PLAN_BYTES} bytes")
    return base64.b64encode(content).decode()


def signed(order: Order, key: Path) -> bytes:
    """The message of an order; asks for the key's passphrase on the terminal.  Raises BadInput."""
    return order.line() + sign(order.line(), key, NAMESPACE)


def acknowledgement_of(payload: bytes) -> Acknowledgement:
    """Parse a board's answer to an order: a line of JSON, then its attachment; raises BadInput for anything else."""
    line, _, attachment = payload.partition(b"\n")
    try:
        document = json.loads(line[:_MOST_ANSWER_BYTES])
        order, state, reason, detail = texts = [document[name] for name in ("order", "state", "reason", "detail")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"not an answer to an order: {error}") from None
    if not all(isinstance(text, str) for text in texts) or state not in ("done", "refused"):
        raise BadInput("not an answer to an order: its members are not texts, or its state is unknown")
    return Acknowledgement(order, state, reason, detail, attachment)


async def send(server: str, order: Order, message: bytes, wait_s: float) -> Acknowledgement | None:
    """Send an order until the board answers; None after ``wait_s`` seconds or the expiry of the order.

    An order is lost if the board is not connected, so it is sent again.  A board carries it out once.  Raises
    Unavailable if the server does not answer, and BadInput if it does not permit this user to send orders to the board.
    An order that has expired before it is sent is BadInput, too.
    """
    _left_s(order)
    errors: deque[Exception] = deque(maxlen=4)
    client = await connected(server, errors)
    try:
        end_s = time.monotonic() + min(wait_s, _left_s(order))
        answers = await client.subscribe(f"fe.ack.{order.machine}")
        while time.monotonic() < end_s:
            await client.publish(f"fe.order.{order.machine}.signed", message)
            answer = await _answer_before(answers, order, min(end_s, time.monotonic() + _AGAIN_S), errors)
            if answer is not None:
                return answer
        return None
    finally:
        await client.close()


def _left_s(order: Order) -> float:
    """Time until the order expires; raises BadInput afterwards."""
    left_s = order.expires_s - time.time()
    if left_s <= 0:
        raise BadInput("the order expired before it could be sent; allow more time with --valid")
    return left_s


async def _answer_before(
    answers: Subscription, order: Order, end_s: float, errors: Iterable[Exception]
) -> Acknowledgement | None:
    """The answer that arrives before ``end_s`` of the monotonic clock; raises BadInput for a refusal in ``errors``."""
    while (left_s := end_s - time.monotonic()) > 0:
        try:
            message = await answers.next_msg(timeout=min(left_s, _REFUSAL_S))
        except NatsTimeout:
            _require_permission(errors)
            continue
        answer = _answer_to(order, message.data)
        if answer is not None:
            return answer
    return None


def _require_permission(errors: Iterable[Exception]) -> None:
    refusal = next((str(error) for error in errors if PERMISSIONS_ERR in str(error)), None)
    if refusal is not None:
        raise BadInput(f"the NATS server refuses this user ({refusal}); use an operator of the board's site: farm user")


def _answer_to(order: Order, payload: bytes) -> Acknowledgement | None:
    try:
        answer = acknowledgement_of(payload)
    except BadInput:
        return None
    return answer if answer.order == order.id else None
