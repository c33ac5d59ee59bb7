# SPDX-License-Identifier: GPL-2.0-or-later
"""The publisher of a real board: all that its ring holds is stored once, whatever is killed, and losses are counted."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import socket
import subprocess
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from fastenough.fleet.access import Role
from fastenough.fleet.chunk import Stored, shard_of, unpacked
from fastenough.fleet.orders import Acknowledgement, make_order, send, signed
from fastenough.fleet.simulated import CPUS, SimulatedBoard
from fastenough.fleet.stream import ChunkStream, connected
from fastenough.recording.building import line_bytes
from tests.support.fleet_server import fleet_server
from tests.support.processes import eventually
from tests.support.publishing import Bus, WrittenRing, publishing, running_bus, taking
from tests.support.recorded_causes import CausedRun, seen_causes
from tests.support.rings import recordings, start
from tests.support.tools import program, require

pytestmark = pytest.mark.machines

PLAIN = "--without-tls"
_SUBJECT = "/CN=fastenough"
_WATCHED_S = 20.0
_SETTLE_S = 2.0


@pytest.fixture(scope="module")
def publisher(build_directory: Path) -> Path:
    require("nats-server", "openssl")
    return program(build_directory, "target/publisher/sanitized-publisher")


@pytest.fixture
def ring(tmp_path: Path) -> WrittenRing:
    folder = tmp_path / "ring"
    folder.mkdir(mode=0o750)
    return WrittenRing(folder)


def board(run: int = 0) -> SimulatedBoard:
    """Each run is an hour later than the one before."""
    return SimulatedBoard(0, 1.0, time.time() // 86400 * 86400 - 86400.0 + 3600 * run, 0.0)


def certificates(folder: Path) -> None:
    """Of an authority, and signed by it of a server and of a client."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", _SUBJECT, "-days", "2"]
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1"]
    for name, by in (("ca", []), ("server", signed), ("client", signed), ("other", [])):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        subprocess.run(["openssl", "req", "-x509", *key, *files, *by], cwd=folder, check=True, capture_output=True)


def security(folder: Path) -> str:
    return (
        f'tls {{ cert_file: "{folder}/server.pem", key_file: "{folder}/server.key", ca_file: "{folder}/ca.pem", '
        'verify: true }\nauthorization { username: board, password: "two words" }'
    )


@pytest.mark.slow
def test_the_ring_of_a_probe_arrives_by_tls(publisher: Path, probe_binary: str, tmp_path: Path) -> None:
    certificates(tmp_path)
    (tmp_path / "password").write_text("two words\n")
    process = start(probe_binary, tmp_path / "ring", "--ring-cycle=400ms", "--report=50ms")
    options = (
        f"--key={tmp_path}/client.key --cert={tmp_path}/client.pem --user=board --password-file={tmp_path}/password"
    )
    with running_bus(tmp_path, security(tmp_path)) as bus, ExitStack() as ends:
        ends.callback(process.kill)
        with publishing(publisher, bus, tmp_path / "ring", "f" * 32, f"--ca={tmp_path}/other.pem", *options.split()):
            assert eventually(lambda: "ertificate" in (tmp_path / "publisher.log").read_text())
        assert bus.keys() == []
        with publishing(publisher, bus, tmp_path / "ring", "f" * 32, f"--ca={tmp_path}/ca.pem", *options.split()):
            assert eventually(lambda: bool(bus.keys()))
            process.terminate()
            process.communicate()
            found = recordings(tmp_path / "ring")
            assert bus.stored({one.head.run_id: range(len(one.intervals)) for one in found if one.intervals}, [0])
        assert bus.machine() == (0, "")


@pytest.mark.slow
def test_publisher_and_server_are_killed_and_a_recording_is_removed(
    publisher: Path, ring: WrittenRing, tmp_path: Path
) -> None:
    ring.add(1, board(0), 0, 100)
    with running_bus(tmp_path) as bus:
        with publishing(publisher, bus, ring.folder, board().machine, PLAIN):
            assert bus.stored({board().run: range(100)}, range(CPUS))
        ring.add(1, board(0), 100, 20)
        with publishing(publisher, bus, ring.folder, board().machine, PLAIN):
            removed = ring.add(2, board(1), 0, 5)
            assert bus.stored({board().run: range(120), board(1).run: range(5)}, range(CPUS))
            bus.kill()
            ring.add(2, board(1), 5, 7)
            ring.add(3, board(2), 0, 3)
            time.sleep(2.5)
            removed.unlink()
            time.sleep(1.5)
            bus.start()
            every = {board().run: range(120), board(1).run: range(5), board(2).run: range(3)}
            assert bus.stored(every, range(CPUS))
            assert eventually(lambda: bus.machine() == (7, ""))


@pytest.mark.slow
def test_the_causes_of_a_monitors_ring_arrive_once(publisher: Path, ring: WrittenRing, tmp_path: Path) -> None:
    """The server is killed while the recording grows, so that chunks come twice."""
    caused = CausedRun(1, "interrupt eth0", intervals=60)
    body = [line_bytes(line) for line in caused.lines[:-1]]
    path = ring.folder / f"{1:010}-{caused.run}.jsonl"
    with running_bus(tmp_path) as bus, publishing(publisher, bus, ring.folder, caused.machine, PLAIN):
        path.write_bytes(b"".join(body[:61]))  # the head and 20 intervals, with two events before each
        assert bus.stored({caused.run: range(20)}, range(2))
        bus.kill()
        with path.open("ab") as stream:
            stream.write(b"".join(body[61:]))
        bus.start()
        assert bus.stored({caused.run: range(60)}, range(2))
    assert list(seen_causes(tmp_path / "archive")) == [
        (caused.machine, caused.run, number, "interrupt eth0", latency_ns)
        for number, latency_ns in enumerate(caused.latencies_ns)
    ]


@pytest.mark.slow
def test_a_second_board_of_one_machine_id_is_found(publisher: Path, ring: WrittenRing, tmp_path: Path) -> None:
    """Both are connected at once."""
    other, copy = WrittenRing(tmp_path / "other"), replace(board(1), number=1)
    other.folder.mkdir()
    ring.add(1, board(0), 0, 3)
    with running_bus(tmp_path) as bus, publishing(publisher, bus, ring.folder, board().machine, PLAIN):
        assert bus.stored({board().run: range(3)}, range(CPUS))
        other.add(1, copy, 0, 3)
        with publishing(publisher, bus, other.folder, board().machine, PLAIN):
            assert bus.stored({board().run: range(3), copy.run: range(3)}, range(CPUS))
            ring.add(1, board(0), 3, 2)
            assert eventually(lambda: "two boards" in bus.machine()[1], 60)
        assert len(bus.keys()) == 6 * CPUS


def client_ids(publisher: Path, folder: Path, machine: str, connections: int) -> list[str]:
    """The client ids of successive connections of one publisher, whose server hangs up each time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        bus = Bus(folder)
        bus.history.close()
        bus.mqtt = server.getsockname()[1]
        server.settimeout(60)
        ids = []
        with publishing(publisher, bus, folder / "ring", machine, PLAIN):
            for _ in range(connections):
                connection, _ = server.accept()
                with connection:
                    packet = connection.recv(200)
                assert (packet[0], packet[2:8], packet[8]) == (0x10, b"\0\4MQTT", 4)
                length = int.from_bytes(packet[12:14], "big")
                ids.append(packet[14 : 14 + length].decode())
    return ids


def test_no_other_board_can_guess_its_client_id(publisher: Path, ring: WrittenRing, tmp_path: Path) -> None:
    """The server ends the connection of a client whose id another one states.  The id lasts until the publisher ends,
    so that the server ends its own lost connections."""
    machine = board().machine
    first, second = (client_ids(publisher, tmp_path, machine, 2) for _ in range(2))
    assert first[0] == first[1] and second[0] == second[1]
    assert len({first[0], second[0], machine}) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in (first[0], second[0]))


def test_lines_that_are_not_whole_wait(publisher: Path, ring: WrittenRing, tmp_path: Path) -> None:
    path = ring.add(1, board(0), 0, 2)
    line = board(0).interval(2)
    with path.open("ab") as stream:
        stream.write(line[:50])
    with running_bus(tmp_path) as bus, publishing(publisher, bus, ring.folder, board().machine, PLAIN):
        assert bus.stored({board().run: range(2)}, range(CPUS))
        with path.open("ab") as stream:
            stream.write(line[50:])
        assert bus.stored({board().run: range(3)}, range(CPUS))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--server is missing"),
        (["--server=a", "more"], "is no option"),
        (["--server=a", "--port=65536"], "is not a port"),
        (["--server=a", "--type=a/b"], "--type"),
        (["--server=a", "--key=/dev/null"], "--cert and --key"),
        (["--server=a", "--user=me"], "--password-file"),
        (["--server=a", "--user=me", "--password-file=/dev/null", PLAIN], "without-tls would send"),
        (["--server=a", "--user=me", "--password-file=/dev/null"], "is not a password"),
        (["--server=a", "--ca=/nowhere"], "--ca: /nowhere"),
        (["--server=a", "--machine-id=/dev/null"], "no machine ID"),
        (["--server=a", "--none"], "--none"),
    ],
)
def test_bad_options_are_one_line(publisher: Path, options: list[str], said: str) -> None:
    done = subprocess.run([publisher, *options], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_board_publishes_and_obeys_as_a_user_of_its_own(publisher: Path, ring: WrittenRing, tmp_path: Path) -> None:
    """With no more permissions than ``farm user`` gives to it, to a taker and to an operator; by TLS."""
    machine = board().machine
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "ann"], check=True)
    (tmp_path / "signers").write_text(f"ann {(tmp_path / 'ann.pub').read_text()}")
    ring.add(1, board(0), 0, 3)
    with fleet_server(tmp_path) as server:
        server.add([machine], Role.BOARD, "lab")
        server.add(["taker"], Role.TAKER, "lab")
        server.add(["operator"], Role.OPERATOR, "lab")
        (tmp_path / "password").write_text(server.passwords[machine])
        server.configure()
        server.start()
        options = f"--ca={tmp_path}/tls.crt --user={machine} --password-file={tmp_path}/password "
        options += f"--signers={tmp_path}/signers --state={tmp_path}/last"

        async def used() -> tuple[list[int], Acknowledgement | None]:
            await (await server.spy("lab")).close()
            stream = await ChunkStream.opened(server.url("taker"))
            firsts: list[int] = []
            with publishing(publisher, server, ring.folder, machine, *options.split()):
                while not firsts:
                    messages = await stream.read(shard_of(machine), 0, 10)
                    firsts = [unpacked(message.payload, machine).first for message in messages]
                    await asyncio.sleep(0.1)
                order = make_order(machine, "check", "", "ann", 60)
                answer = await send(server.url("operator"), order, signed(order, tmp_path / "ann"), 60)
            await stream.close()
            return firsts, answer

        firsts, answer = asyncio.run(used())
    assert firsts[0] == 0 and answer is not None and answer.state == "done"


@pytest.mark.slow
def test_takers_that_are_behind_get_ever_fewer_repetitions(publisher: Path, ring: WrittenRing, tmp_path: Path) -> None:
    """Each chunk is answered with a position that the board knows, as by takers with a long backlog."""
    machine = board().machine
    ring.add(1, board(), 0, 100)
    chunks: list[float] = []

    async def answer_late() -> None:
        client = await connected(f"nats://127.0.0.1:{bus.port}")

        async def answer(message: Msg) -> None:
            chunk = unpacked(message.data, machine)
            if chunk.first == 1:
                chunks.append(time.monotonic())
            await client.publish(f"fe.order.{machine}", Stored(chunk.run, 1).packed())

        await client.subscribe("fe.ring.>", cb=answer)
        with publishing(publisher, bus, ring.folder, machine, PLAIN):
            await asyncio.sleep(_WATCHED_S)
        await client.close()

    bus = Bus(tmp_path)
    bus.start()
    try:
        asyncio.run(answer_late())
    finally:
        bus.kill()
        bus.history.close()
    first_half = sum(at < chunks[0] + _WATCHED_S / 2 for at in chunks)
    assert first_half >= 2 and 2 * (len(chunks) - first_half) <= first_half  # as many where each pause is as long


def _add_too_long(path: Path, number: int) -> None:
    """Append an interval that no chunk can hold."""
    noise = base64.b64encode(os.urandom(2 << 20)).decode()
    with path.open("ab") as stream:
        stream.write(line_bytes(json.loads(board().interval(number)) | {"noise": noise}))


def test_a_loss_is_reported_once_all_before_it_is_stored(publisher: Path, ring: WrittenRing, tmp_path: Path) -> None:
    """Takers count everything before a reported loss as lost, also what the board could still publish again."""
    machine = board().machine
    _add_too_long(ring.add(1, board(), 0, 3), 3)
    ring.add(1, board(), 4, 1)
    seen: list[tuple[int, int]] = []

    async def answer_late() -> tuple[list[tuple[int, int]], bool]:
        client = await connected(f"nats://127.0.0.1:{bus.port}")

        async def note(message: Msg) -> None:
            chunk = unpacked(message.data, machine)
            seen.append((chunk.first, chunk.oldest))

        await client.subscribe("fe.ring.>", cb=note)
        with publishing(publisher, bus, ring.folder, machine, PLAIN):
            while not seen:
                await asyncio.sleep(0.1)
            await client.publish(f"fe.order.{machine}", Stored(board().run, 1).packed())
            await asyncio.sleep(_SETTLE_S)
            early = [chunk for chunk in seen if chunk[0] > 3]
            await client.publish(f"fe.order.{machine}", Stored(board().run, 3).packed())
            reported = await asyncio.to_thread(eventually, lambda: (4, 4) in seen)
        await client.close()
        return early, reported

    bus = Bus(tmp_path)
    bus.start()
    try:
        assert asyncio.run(answer_late()) == ([], True)
    finally:
        bus.kill()
        bus.history.close()


def test_false_confirmations_lose_nothing_that_the_ring_still_holds(
    publisher: Path, ring: WrittenRing, tmp_path: Path
) -> None:
    """They are of a hostile taker, while no other one runs; then a true answer names the first missing interval."""
    machine = board().machine
    ring.add(1, board(), 0, 30)
    confirmed = asyncio.Event()

    async def confirm_all() -> None:
        client = await connected(f"nats://127.0.0.1:{bus.port}")

        async def confirm(message: Msg) -> None:
            await client.publish(f"fe.order.{machine}", Stored(unpacked(message.data, machine).run, 30).packed())
            await client.flush()
            confirmed.set()

        await client.subscribe("fe.ring.>", cb=confirm)
        await asyncio.wait_for(confirmed.wait(), 30)
        await client.close()

    bus = Bus(tmp_path)
    bus.start()
    try:
        with publishing(publisher, bus, ring.folder, machine, PLAIN):
            asyncio.run(confirm_all())
            time.sleep(_SETTLE_S)
            with taking(bus):
                ring.add(1, board(), 30, 10)
                assert bus.stored({board().run: range(40)}, range(CPUS))
    finally:
        bus.kill()
        bus.history.close()
