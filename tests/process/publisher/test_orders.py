# SPDX-License-Identifier: GPL-2.0-or-later
"""Orders to the publisher of a real board: a signed one is carried out once, any other is refused with its reason."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from fastenough.fleet import orders
from fastenough.fleet.orders import Order, make_order, packed_plan, send
from fastenough.model import BadInput
from fastenough.pack.signature import sign
from tests.support.cli_calls import command_line
from tests.support.json_documents import require_valid
from tests.support.ordered_boards import MACHINE, OrderedBoard
from tests.support.processes import eventually
from tests.support.publishing import publishing, running_bus
from tests.support.tools import program, require

pytestmark = pytest.mark.machines

OTHER = "b" * 32


@pytest.fixture
def board(build_directory: Path, tmp_path: Path) -> Iterator[OrderedBoard]:
    require("nats-server", "ssh-keygen")
    publisher = program(build_directory, "target/publisher/sanitized-publisher")
    with running_bus(tmp_path) as bus:
        yield OrderedBoard(tmp_path, publisher, bus)


def order(action: str = "check", value: str = "", by: str = "ann") -> Order:
    return make_order(MACHINE, action, value, by, 600)


def test_an_order_is_carried_out_once_on_one_board(board: OrderedBoard) -> None:
    first, second = board.signed(order()), board.signed(order(by="bob"), "bob")
    with board.running():
        assert [board.state_of(message) for message in (second, second, first)] == ["done", "replayed", "replayed"]
    with board.running(), board.running(machine=OTHER):
        assert board.state_of(second) == "replayed"
        assert board.state_of(second, OTHER) == "foreign"
        assert board.state_of(board.signed(order())) == "done"


def _line(changed: Callable[[bytes], bytes], by: str = "ann") -> Callable[[OrderedBoard], bytes]:
    """A line that is changed before it is signed, correctly."""

    def message(board: OrderedBoard) -> bytes:
        line = changed(order(by=by).line())
        return line + sign(line, board.folder / "ann", orders.NAMESPACE)

    return message


class OrderFields(TypedDict, total=False):
    id: str
    expires_s: int
    by: str
    action: str
    value: str


def _order(**fields: Unpack[OrderFields]) -> Callable[[OrderedBoard], bytes]:
    return lambda board: board.signed(replace(order(), **fields))


def _now_us(ahead_s: float) -> int:
    return int((time.time() + ahead_s) * 1e6)


HOSTILE: dict[str, tuple[str, Callable[[OrderedBoard], bytes]]] = {
    "not signed": ("unsigned", lambda board: order().line()),
    "signed by a stranger": ("signature", lambda board: board.signed(order(), "eve")),
    "signed by another than it says": ("signature", lambda board: board.signed(order(by="bob"), "ann")),
    "of an unknown operator": ("signature", lambda board: board.signed(order(by="eve"), "eve")),
    "signature of a pack": ("signature", lambda board: order().line() + sign(order().line(), board.folder / "ann")),
    "signature of another order": (
        "signature",
        lambda board: order().line() + sign(order().line(), board.folder / "ann", orders.NAMESPACE),
    ),
    "bytes for a signature": ("signature", lambda board: order().line() + bytes(range(256)) * 40),
    "a signature that is cut off": ("signature", lambda board: board.signed(order())[:-60]),
    "for another machine": ("foreign", lambda board: board.signed(replace(order(), machine=OTHER))),
    "expired": ("expired", _order(expires_s=int(time.time()) - 1)),
    "issued in the future": ("early", lambda board: board.signed(replace(order(), issued_us=_now_us(400)))),
    "valid for months": ("long-lived", _order(expires_s=int(time.time()) + 8 * 86400)),
    "unknown action": ("unknown", _order(action="reboot")),
    "a command as value": ("malformed", _order(action="interval", value="1s;reboot")),
    "a path as value": ("unknown", _order(action="plan", value="../../etc/passwd")),
    "line feed in the id": ("malformed", _order(id="00\n00")),
    "quotes in the id": ("malformed", _order(id='0","id":"1')),
    "options as signer": ("malformed", _order(by="-O")),
    "patterns as signer": ("malformed", _order(by="a*")),
    "a space more": ("malformed", _line(lambda line: line.replace(b",", b", ", 1))),
    "a member twice": ("malformed", _line(lambda line: line.replace(b"}", b',"action":"plan"}'))),
    "a sign of a number": ("malformed", _line(lambda line: line.replace(b'"expires_s":', b'"expires_s":-'))),
    "zero byte": ("malformed", _line(lambda line: line.replace(b"check", b"check\0"))),
    "nested without end": ("malformed", lambda board: b"[{" * 30_000 + b"\n"),
    "bytes": ("malformed", lambda board: bytes(range(256)) * 100),
    "huge": ("malformed", lambda board: order().line() + b"x" * 1_000_000),
    "huge value": ("malformed", _order(action="plan", value="A" * 100_000)),
}


@pytest.mark.slow
def test_what_is_not_an_order_is_refused_with_its_reason(board: OrderedBoard) -> None:
    """Those whose signature is right use up their time of issue, so they come in the order of time."""
    with board.running(f"--executor={board.folder}/executor"):
        reasons = {name: board.state_of(message(board)) for name, (_, message) in HOSTILE.items()}
        assert reasons == {name: reason for name, (reason, _) in HOSTILE.items()}
        assert board.executed == ""
        assert board.state_of(board.signed(order())) == "done"


def test_the_executor_gets_what_is_known_and_says_how_it_went(board: OrderedBoard) -> None:
    with board.running(f"--executor={board.folder}/executor"):
        done = board.answer(board.signed(order("interval", "60s")))
        assert done is not None and (done.state, done.detail) == ("done", "say ?so?")
        failed = board.answer(board.signed(order("trace", "10min")))
        assert failed is not None and (failed.state, failed.reason) == ("refused", "failed")
        assert board.state_of(board.signed(order("plan", packed_plan(b"x" * 40_000)))) == "done"
        assert board.executed.startswith("interval|60s|trace|10min|plan|eHh4")


@pytest.mark.parametrize(
    ("state", "reason"), [("/nowhere/last", "state"), ("damaged", "state"), ("last", "unsupported")]
)
def test_what_cannot_be_recorded_or_carried_out_is_refused(board: OrderedBoard, state: str, reason: str) -> None:
    (board.folder / "damaged").write_text("soon\n")
    with board.running(f"--state={board.folder / state}"):
        assert board.state_of(board.signed(order("trace", "10min"))) == reason


def test_the_command_prints_the_answer_of_the_board(board: OrderedBoard) -> None:
    def sent(*words: str) -> tuple[int, str, str]:
        options = ["--nats", board.url, "--sign", f"{board.folder}/ann", "--signer", "ann", "--json", "--wait", "2s"]
        done = command_line("farm", "order", MACHINE, *words, *options, cwd=board.folder)
        document = require_valid("farm order", done.stdout)
        return done.returncode, document["state"], document["reason"]

    assert sent("check") == (4, "unanswered", "")
    with board.running():
        assert sent("check") == (0, "done", "")
        assert sent("trace", "10min") == (4, "refused", "unsupported")


@pytest.mark.parametrize(
    ("machine", "action", "value", "by", "valid_s"),
    [
        ("a", "check", "", "ann", 1),
        (MACHINE + "\n", "check", "", "ann", 1),
        (MACHINE, "reboot", "", "ann", 1),
        (MACHINE, "check", "1s", "ann", 1),
        (MACHINE, "plan", "", "ann", 1),
        (MACHINE, "interval", "60", "ann", 1),
        (MACHINE, "interval", "60s\n", "ann", 1),
        (MACHINE, "interval", "6\u0660s", "ann", 1),
        (MACHINE, "check", "", "-O", 1),
        (MACHINE, "check", "", "ann", 8 * 86400),
    ],
)
def test_an_order_that_a_board_would_refuse_is_not_made(
    machine: str, action: str, value: str, by: str, valid_s: float
) -> None:
    with pytest.raises(BadInput):
        make_order(machine, action, value, by, valid_s)


def test_an_order_that_expired_while_it_was_signed_is_not_sent() -> None:
    expired = replace(order(), expires_s=int(time.time()) - 1)
    with pytest.raises(BadInput, match="--valid"):
        asyncio.run(send("nats://127.0.0.1:1", expired, b"", 1.0))


def test_a_board_without_signers_accepts_no_orders(board: OrderedBoard) -> None:
    with publishing(board.publisher, board.bus, board.folder / "ring", MACHINE, "--without-tls"):
        assert eventually(lambda: "connected" in (board.folder / "publisher.log").read_text(), 30)
        assert board.answer(board.signed(order()), wait_s=1) is None
