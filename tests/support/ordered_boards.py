# SPDX-License-Identifier: GPL-2.0-or-later
"""A board on loopback that accepts signed orders, and the operators who send them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nats

from fastenough.fleet.orders import Acknowledgement, Order, acknowledgement_of, signed
from tests.support.publishing import Bus, publishing

MACHINE = "a" * 32
_PATIENCE_S = 60.0
"""Longer than any answer takes: the publisher ends what it has started after 20 s."""


@dataclass
class OrderedBoard:
    """A board that accepts orders of ``ann`` and ``bob``, and the operators' keys, in a folder."""

    folder: Path
    publisher: Path
    bus: Bus

    def __post_init__(self) -> None:
        for name in ("ann", "bob", "eve"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self.folder / name]
            subprocess.run(words, check=True)
        allowed = [f"{name} {(self.folder / f'{name}.pub').read_text()}" for name in ("ann", "bob")]
        (self.folder / "signers").write_text("".join(allowed))
        (self.folder / "ring").mkdir()
        script = self.folder / "executor"
        script.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >>{self.folder}/done\necho \'say "so"\'\n[ "$1" != trace ]\n')
        script.chmod(0o755)

    @contextmanager
    def running(self, *options: str, machine: str = MACHINE) -> Iterator[None]:
        """Its publisher, killed at the end."""
        words = ["--without-tls", f"--signers={self.folder}/signers", f"--state={self.folder}/last-{machine}", *options]
        with publishing(self.publisher, self.bus, self.folder / "ring", machine, *words):
            asyncio.run(self._greet(machine))
            yield

    async def _greet(self, machine: str) -> None:
        """Wait until the board answers one message that is no order, and leave no answer that may come later."""
        client = await nats.connect(self.url)
        try:
            inbox = client.new_inbox()
            refusals = await client.subscribe(inbox)
            answers = await client.subscribe(f"fe.ack.{machine}")
            answer = asyncio.ensure_future(answers.next_msg(timeout=_PATIENCE_S))
            while not answer.done():
                await client.publish(f"fe.order.{machine}.signed", b"-", reply=inbox)
                refusal = asyncio.ensure_future(refusals.next_msg(timeout=_PATIENCE_S))
                await asyncio.wait({answer, refusal}, return_when=asyncio.FIRST_COMPLETED)
                refusal.cancel()  # where it has come, nothing was sent: the board does not listen yet
                await asyncio.sleep(0.05)
            await answer
        finally:
            await client.close()

    @property
    def executed(self) -> str:
        path = self.folder / "done"
        return path.read_text() if path.exists() else ""

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.bus.port}"

    def answer(self, message: bytes, machine: str = MACHINE, wait_s: float = _PATIENCE_S) -> Acknowledgement | None:
        """What the board answers to a message."""

        async def asked() -> Acknowledgement | None:
            client = await nats.connect(self.url)
            answers = await client.subscribe(f"fe.ack.{machine}")
            await client.publish(f"fe.order.{machine}.signed", message)
            try:
                return acknowledgement_of((await answers.next_msg(timeout=wait_s)).data)
            except nats.errors.TimeoutError:
                return None
            finally:
                await client.close()

        return asyncio.run(asked())

    def state_of(self, message: bytes, machine: str = MACHINE) -> str:
        """``done``, or the reason of a refusal."""
        found = self.answer(message, machine)
        assert found is not None
        return found.reason or found.state

    def signed(self, order: Order, key: str = "ann") -> bytes:
        return signed(order, self.folder / key)
