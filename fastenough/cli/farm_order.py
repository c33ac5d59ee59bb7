# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm order``: send a signed order to a board that publishes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

import click

from fastenough.campaign.plan_file import parse_plan
from fastenough.cli.commands import Command
from fastenough.cli.options import DURATION, json_option
from fastenough.cli.output import clean, new_file, print_json, say
from fastenough.fleet.orders import ACTIONS, REPLAYED, Acknowledgement, make_order, packed_plan, send, signed
from fastenough.model import BadInput, ExitStatus

_UNANSWERED = "unanswered"


@dataclass(frozen=True)
class OrderResult:
    """Result of an order.  ``file``: path of the trace that the board sent."""

    order: str
    state: str
    reason: str
    detail: str
    file: str | None


class _Sending(TypedDict):
    server: str
    key: Path
    signer: str
    valid_ns: int
    wait_ns: int
    out: Path | None


@click.command(
    "order",
    cls=Command,
    example="fastenough farm order 0b1c5d7e9f00112233445566778899aa check --signer ann --sign ~/.ssh/id_ed25519 "
    "--nats nats://127.0.0.1:4222",
)
@click.argument("machine")
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("value", default="")
@click.option("--nats", "server", required=True, help="URL of the NATS server, as in nats://127.0.0.1:4222.")
@click.option(
    "--sign",
    "key",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="KEY",
    help="SSH key that signs the order.",
)
@click.option("--signer", required=True, metavar="NAME", help="Name of the key in the board's file of allowed signers.")
@click.option(
    "--valid", "valid_ns", type=DURATION, default="10min", show_default=True, help="Time until the order expires."
)
@click.option("--wait", "wait_ns", type=DURATION, default="1min", show_default=True, help="Time to wait for an answer.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="New file for the trace that the board sends.  [default: trace-ORDER.tar.gz]",
)
@json_option
def command(machine: str, action: str, value: str, as_json: bool, **sending: Unpack[_Sending]) -> ExitStatus:
    """Send a signed order to a board that publishes.

    MACHINE is the board's machine id.  The actions are: check (the board only answers), interval DURATION, trace
    DURATION and plan PLAN.toml.  The board verifies the signature and carries out each order once.  Its answer is
    printed, and a trace that it sends is stored in a file.  The exit status is 4 if the board refuses the order or does
    not answer.
    """
    value = _plan_value(Path(value)) if action == "plan" and value else value
    order = make_order(machine, action, value, sending["signer"], sending["valid_ns"] / 1e9)
    out = sending["out"] or Path(f"trace-{order.id}.tar.gz")
    if sending["out"] or action == "trace":
        _require_new(out)
    message = signed(order, sending["key"])
    answer = asyncio.run(send(sending["server"], order, message, sending["wait_ns"] / 1e9))
    answer = answer or Acknowledgement(order.id, _UNANSWERED, "", "")
    error = _store(answer.attachment, out)
    file = str(out) if answer.attachment and error is None else None
    status = _print_result(OrderResult(answer.order, answer.state, answer.reason, answer.detail, file), as_json)
    if error is not None:
        raise error
    return status


class _UnwrittenFile(Exception):
    """Ends an attempt to write a file."""


def _require_new(path: Path) -> None:
    """Raise BadInput for a file that exists or cannot be written; the board sends its content once."""
    with suppress(_UnwrittenFile), new_file(path):
        raise _UnwrittenFile


def _plan_value(path: Path) -> str:
    """A plan as the value of an order; raises BadInput for an invalid plan."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; pass the path of a plan file") from error
    parse_plan(content, path.name)
    return packed_plan(content)


def _store(content: bytes, path: Path) -> BadInput | OSError | None:
    """Write the file that a board sent, if any; returns the error, since the result is printed before it."""
    try:
        if content:
            with new_file(path) as stream:
                stream.write(content)
    except (BadInput, OSError) as error:
        return error
    return None


def _print_result(result: OrderResult, as_json: bool) -> ExitStatus:
    if as_json:
        print_json(result)
    else:
        say(clean(_text_of(result)))
    return ExitStatus.DONE if result.state == "done" else ExitStatus.BROKEN


def _text_of(result: OrderResult) -> str:
    if result.state == _UNANSWERED:
        return f"order {result.order}: no answer; until it expires, the board may still carry it out"
    if result.reason == REPLAYED:
        return f"order {result.order}: refused: the board has accepted this order or a newer one before"
    reason = f": {result.reason}" if result.reason else ""
    detail = f" ({result.detail})" if result.detail else ""
    file = f"; stored as {result.file}" if result.file else ""
    return f"order {result.order}: {result.state}{reason}{detail}{file}"
