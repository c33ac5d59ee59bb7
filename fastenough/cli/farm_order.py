# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm order``: send a signed order to a board that publishes."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TypedDict, Unpack

import click

from fastenough.campaign.plan_file import parse_plan
from fastenough.cli.commands import Command
from fastenough.cli.options import DURATION, json_option
from fastenough.cli.output import clean, print_json, say
from fastenough.fleet.orders import ACTIONS, REPLAYED, Acknowledgement, Order, make_order, packed_plan, send, signed
from fastenough.model import BadInput, ExitStatus

_UNANSWERED = "unanswered"


class _Sending(TypedDict):
    server: str
    key: Path
    signer: str
    valid_ns: int
    wait_ns: int


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
@json_option
def command(machine: str, action: str, value: str, as_json: bool, **sending: Unpack[_Sending]) -> ExitStatus:
    """Send a signed order to a board that publishes.

    MACHINE is the board's machine id.  The actions are: check (the board only answers), interval DURATION, trace
    DURATION and plan PLAN.toml.  The board verifies the signature and carries out each order once.  Its answer is
    printed; the exit status is 4 if the board refuses the order or does not answer.
    """
    value = _plan_value(Path(value)) if action == "plan" and value else value
    order = make_order(machine, action, value, sending["signer"], sending["valid_ns"] / 1e9)
    message = signed(order, sending["key"])
    answer = asyncio.run(send(sending["server"], order, message, sending["wait_ns"] / 1e9))
    return _print_answer(order, answer or Acknowledgement(order.id, _UNANSWERED, "", ""), as_json)


def _plan_value(path: Path) -> str:
    """A plan as the value of an order; raises BadInput for an invalid plan."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; pass the path of a plan file") from error
    parse_plan(content, path.name)
    return packed_plan(content)


def _print_answer(order: Order, answer: Acknowledgement, as_json: bool) -> ExitStatus:
    if as_json:
        print_json(asdict(answer))
    else:
        say(clean(_text_of(order, answer)))
    return ExitStatus.DONE if answer.state == "done" else ExitStatus.BROKEN


def _text_of(order: Order, answer: Acknowledgement) -> str:
    if answer.state == _UNANSWERED:
        return f"order {order.id}: no answer; until it expires, the board may still carry it out"
    if answer.reason == REPLAYED:
        return f"order {order.id}: refused: the board has accepted this order or a newer one before"
    reason = f": {answer.reason}" if answer.reason else ""
    detail = f" ({answer.detail})" if answer.detail else ""
    return f"order {order.id}: {answer.state}{reason}{detail}"
