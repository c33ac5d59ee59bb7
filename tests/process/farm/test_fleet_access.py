# SPDX-License-Identifier: GPL-2.0-or-later
"""A hostile board at the real server: it can use the topics of its own machine id, and nothing else."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats
import pytest
from aiomqtt import Client, MqttError, Will
from nats.aio.client import Client as NatsClient
from nats.aio.msg import Msg

from fastenough.fleet.access import FleetUsers, Role, configuration
from fastenough.fleet.chunk import ring_topic, shard_of
from fastenough.fleet.orders import make_order, send
from fastenough.fleet.simulated import SimulatedBoard
from fastenough.fleet.stream import PASSWORD_VARIABLE, ChunkStream, connected
from fastenough.model import BadInput, Unavailable
from tests.support.fleet_server import FleetServer, fleet_server

pytestmark = [
    pytest.mark.machines,
    pytest.mark.skipif(shutil.which("nats-server") is None, reason="nats-server is not installed"),
]

HOSTILE, VICTIM, ELSEWHERE = "a" * 32, "b" * 32, "c" * 32
_SETTLE_S = 0.4


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FleetServer]:
    """Two boards of one site, and one of another."""
    with fleet_server(tmp_path) as server:
        server.add([HOSTILE, VICTIM], Role.BOARD, "lab")
        server.add([ELSEWHERE], Role.BOARD, "plant")
        for site in ("lab", "plant"):
            server.add([f"taker-{site}"], Role.TAKER, site)
            server.add([f"operator-{site}"], Role.OPERATOR, site)
        server.configure()
        server.start()
        yield server


async def _seen(client: NatsClient) -> list[str]:
    """The subjects on which anything of a fleet arrives from now on."""
    subjects: list[str] = []

    async def note(message: Msg) -> None:
        subjects.append(message.subject)

    await client.subscribe("fe.>", cb=note)
    await client.flush()
    return subjects


async def _publish(client: Client, topic: str, **options: Any) -> None:
    with suppress(MqttError, ValueError):
        await client.publish(topic, b"x", qos=1, **options)


def test_a_board_publishes_under_its_own_machine_id_only(server: FleetServer) -> None:
    async def tried() -> tuple[list[str], list[str]]:
        lab, plant = [await _seen(await server.spy(site)) for site in ("lab", "plant")]
        hostile = (
            ring_topic(VICTIM),
            f"fe/ring/{shard_of(VICTIM):x}/{HOSTILE}",
            f"fe/ring/{shard_of(HOSTILE):x}/{HOSTILE}/{VICTIM}",
            ring_topic(ELSEWHERE),
            f"fe/order/{VICTIM}",
            f"fe/order/{HOSTILE}",
            f"fe/order/{VICTIM}/signed",
            f"fe/ack/{VICTIM}",
            "fe",
            "fe/ring",
            "fe//x",
        )
        for topic in hostile:
            for retain in (False, True):  # a refused one may end the connection
                with suppress(MqttError):
                    async with server.client(HOSTILE) as client:
                        await _publish(client, topic, retain=retain)
        for topic in ("$JS/API/STREAM/DELETE/fastenough-ring", "$MQTT/sess/x", "$SYS/REQ/SERVER/PING"):
            with suppress(MqttError):
                async with server.client(HOSTILE) as client:
                    await _publish(client, topic)
        async with server.client(HOSTILE) as client:
            await client.publish(ring_topic(HOSTILE), b"x", qos=1)
            await client.publish(f"fe/ack/{HOSTILE}", b"x", qos=1)
        await asyncio.sleep(_SETTLE_S)
        return lab, plant

    own = [ring_topic(HOSTILE).replace("/", "."), f"fe.ack.{HOSTILE}"]
    assert asyncio.run(tried()) == (own, [])


@pytest.mark.parametrize(
    ("qos", "read"), [(0, [f"fe/order/{HOSTILE}"]), pytest.param(1, [], marks=pytest.mark.slow)], ids=["0", "1"]
)
def test_a_board_reads_neither_answers_nor_orders_of_others(server: FleetServer, qos: int, read: list[str]) -> None:
    """At QoS 1 the server refuses every subscription: it keeps no message for a board that is away."""

    async def tried() -> list[str]:
        spy = await server.spy("lab")
        own, others = f"fe/order/{HOSTILE}", ("fe/order/+", "fe/order/#", "#", "+/+/+", "fe/ring/#", "$MQTT/#")
        victims = (f"fe/order/{VICTIM}", f"fe/order/{VICTIM}/signed", f"fe/ack/{VICTIM}")
        async with server.client(HOSTILE) as client:
            for topic in (*others, *victims, own):
                with suppress(MqttError):
                    await client.subscribe(topic, qos=qos)
            for topic in (*victims, own):
                await spy.publish(topic.replace("/", "."), b"x")
            await spy.flush()
            await asyncio.sleep(_SETTLE_S)
            return _arrived(client)

    assert asyncio.run(tried()) == read


def _arrived(client: Client) -> list[str]:
    """The topics of what a client has received."""
    topics = []
    while not client._queue.empty():
        topics.append(str(client._queue.get_nowait().topic))
    return topics


@pytest.mark.slow
def test_a_last_will_is_checked_as_well(server: FleetServer) -> None:
    async def tried() -> list[str]:
        seen = await _seen(await server.spy("lab"))
        for topic in (ring_topic(VICTIM), ring_topic(HOSTILE)):
            with suppress(MqttError):
                async with server.client(HOSTILE, will=Will(topic, b"x", qos=1)) as client:
                    client._client._sock_close()  # without an MQTT DISCONNECT
                    await asyncio.sleep(_SETTLE_S)
        await asyncio.sleep(_SETTLE_S)
        return seen

    assert asyncio.run(tried()) == [ring_topic(HOSTILE).replace("/", ".")]


@pytest.mark.slow
def test_the_session_of_another_board_yields_nothing(server: FleetServer) -> None:
    """The server continues the session of a client's name: for its own user, and without effect for another one."""

    async def tried() -> list[list[str]]:
        spy, topic, read = await server.spy("lab"), f"fe/order/{VICTIM}/signed", []
        async with server.client(VICTIM, clean_session=False) as victim:
            await victim.subscribe(topic, qos=0)
        for user in (VICTIM, HOSTILE):
            async with server.client(user, identifier=VICTIM, clean_session=False) as client:
                await spy.publish(topic.replace("/", "."), b"x")
                await spy.flush()
                await asyncio.sleep(_SETTLE_S)
                read.append(_arrived(client))
        return read

    assert asyncio.run(tried()) == [[f"fe/order/{VICTIM}/signed"], []]


@pytest.mark.slow
def test_who_knows_a_client_id_of_its_site_ends_that_connection(server: FleetServer) -> None:
    """The limit of the server that docs/fleet-boards.md states: it binds no client id to a user.  A random one, as the
    publisher has, is safe from this, and so is any id from users of another site."""

    async def stays(identifier: str, user: str) -> bool:
        async with server.client(VICTIM, identifier=identifier) as victim:
            async with server.client(user, identifier=VICTIM):
                await asyncio.sleep(_SETTLE_S)
            try:
                await victim.publish(ring_topic(VICTIM), b"x", qos=1)
            except MqttError:
                return False
            return True

    async def tried() -> list[bool]:
        await (await server.spy("lab")).close()
        held = []
        for identifier, user in ((VICTIM, HOSTILE), (secrets.token_hex(16), HOSTILE), (VICTIM, ELSEWHERE)):
            try:
                held.append(await stays(identifier, user))
            except MqttError:  # also at the end of a connection that the server has ended
                held.append(False)
        return held

    assert asyncio.run(tried()) == [False, True, True]


@pytest.mark.slow
def test_a_site_sees_nothing_of_another(server: FleetServer) -> None:
    async def tried() -> list[int]:
        lab, plant = [await _open_stream(server, site) for site in ("lab", "plant")]
        board = SimulatedBoard(1, 60.0, 1_795_000_000.0, 0.0)
        async with server.client(HOSTILE) as client:
            await client.publish(ring_topic(HOSTILE), board.chunk(0, 1).packed(), qos=1)
        await asyncio.sleep(_SETTLE_S)
        read = [len(await stream.read(shard_of(HOSTILE), 0, 10)) for stream in (lab, plant)]
        order = make_order(HOSTILE, "check", "", "ann", 60)
        foreign = await _seen(await server.spy("lab"))
        assert await send(server.url("operator-plant"), order, order.line(), 0.5) is None
        await plant.answer(HOSTILE, b"{}")
        await asyncio.sleep(_SETTLE_S)
        for stream in (lab, plant):
            await stream.close()
        return [*read, len(foreign)]

    assert asyncio.run(tried()) == [1, 0, 0]


async def _open_stream(server: FleetServer, site: str) -> ChunkStream:
    await (await server.spy(site)).close()
    return await ChunkStream.opened(server.url(f"taker-{site}"))


@pytest.mark.slow
def test_takers_store_and_answer_and_operators_order(server: FleetServer) -> None:
    async def tried() -> list[str]:
        stream = await _open_stream(server, "lab")
        client = await connected(server.url("operator-lab"))
        spied = await _seen(await server.spy("lab"))
        async with server.client(HOSTILE) as board:
            await board.subscribe(f"fe/order/{HOSTILE}", qos=0)
            await board.subscribe(f"fe/order/{HOSTILE}/signed", qos=0)
            await stream.answer(HOSTILE, b"answer")
            await stream.forget(0, 1)
            await client.publish(f"fe.order.{HOSTILE}", b"forged answer")
            await client.publish(ring_topic(HOSTILE).replace("/", "."), b"forged chunk")
            await client.publish(f"fe.order.{HOSTILE}.signed", b"order")
            await client.flush()
            await asyncio.sleep(_SETTLE_S)
            read = _arrived(board)
        for one in (stream, client):
            await one.close()
        assert sorted(spied) == [f"fe.order.{HOSTILE}", f"fe.order.{HOSTILE}.signed"]
        return read

    assert asyncio.run(tried()) == [f"fe/order/{HOSTILE}", f"fe/order/{HOSTILE}/signed"]


@pytest.mark.slow
def test_an_order_that_the_server_refuses_is_reported_before_its_time_is_over(server: FleetServer) -> None:
    """A taker may send no order.  An operator of another site may, but nobody receives it."""
    order = make_order(HOSTILE, "check", "", "ann", 600)
    assert asyncio.run(send(server.url("operator-plant"), order, b"order", 3.0)) is None
    with pytest.raises(BadInput, match=f"fe.(ack|order).{HOSTILE}"):
        asyncio.run(send(server.url("taker-lab"), order, b"order", 120.0))


@pytest.mark.slow
def test_only_users_with_their_password_and_protocol_are_admitted(server: FleetServer) -> None:
    async def tried() -> None:
        await (await server.spy("lab")).close()
        for options in ({"password": "guess"}, {"username": None, "password": None}, {"username": "taker-lab"}):
            with pytest.raises(MqttError):
                async with server.client(HOSTILE, **options):
                    pass
        for url in (
            server.url(HOSTILE),
            f"nats://127.0.0.1:{server.port}",
            f"nats://taker-lab:x@127.0.0.1:{server.port}",
        ):
            with pytest.raises((nats.errors.Error, Unavailable)):
                await nats.connect(url, allow_reconnect=False)

    asyncio.run(tried())


def test_a_password_need_not_be_an_argument(server: FleetServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """All users of a machine can read the arguments of a command."""
    url = f"nats://operator-lab@127.0.0.1:{server.port}"

    async def admitted() -> bool:
        await (await server.spy("lab")).close()
        try:
            await (await connected(url)).close()
            return True
        except Unavailable:
            return False

    assert not asyncio.run(admitted())
    monkeypatch.setenv(PASSWORD_VARIABLE, server.passwords["operator-lab"])
    assert asyncio.run(admitted())


@pytest.mark.slow
def test_users_change_while_the_server_runs(server: FleetServer) -> None:
    new = "d" * 32

    async def admitted(user: str) -> bool:
        try:
            async with server.client(user):
                return True
        except MqttError:
            return False

    async def tried() -> list[bool]:
        await (await server.spy("lab")).close()
        async with server.client(VICTIM) as stays:
            server.users.revoke(HOSTILE)
            server.add([new], Role.BOARD, "lab")
            server.reload()
            for _ in range(50):
                if await admitted(new):
                    break
                await asyncio.sleep(0.1)
            await stays.publish(ring_topic(VICTIM), b"x", qos=1)
            return [await admitted(new), await admitted(HOSTILE)]

    assert asyncio.run(tried()) == [True, False]


def test_the_server_refuses_a_file_of_users_that_is_empty_or_cut_off(tmp_path: Path) -> None:
    """It would admit everyone without them."""

    def refused(text: str) -> bool:
        (tmp_path / "nats-users" / "users.conf").write_text(text)
        words = ["nats-server", "-t", "-c", str(tmp_path / "nats" / "nats.conf")]
        return subprocess.run(words, capture_output=True, check=False).returncode != 0

    with fleet_server(tmp_path) as server:
        server.add([HOSTILE], Role.BOARD, "lab")
        text = configuration(server.users.listed())
        lines = text.splitlines(keepends=True)
        assert not refused(text)
        assert all(refused("".join(lines[:count])) for count in range(len(lines)))


@pytest.mark.parametrize(
    ("name", "role", "site"),
    [
        ("A" * 32, Role.BOARD, "lab"),
        ("a" * 31, Role.BOARD, "lab"),
        ("a" * 32 + "\n", Role.BOARD, "lab"),
        ("a" * 32, Role.TAKER, "lab"),
        ('x" }', Role.TAKER, "lab"),
        ("$x", Role.OPERATOR, "lab"),
        ("../x", Role.OPERATOR, "lab"),
        ("x", Role.OPERATOR, 'lab" {'),
        ("x", Role.OPERATOR, "$SYS"),
        ("x", Role.OPERATOR, ""),
    ],
)
def test_names_that_a_configuration_or_topic_cannot_hold_are_refused(
    tmp_path: Path, name: str, role: Role, site: str
) -> None:
    with pytest.raises(BadInput):
        FleetUsers(tmp_path / "users.json").add([name], role, site)


def test_the_file_is_checked_and_a_configuration_is_never_empty(tmp_path: Path) -> None:
    users = FleetUsers(tmp_path / "users.json")
    with pytest.raises(BadInput):
        configuration(users.listed())
    users.add([HOSTILE, VICTIM], Role.BOARD, "lab")
    with pytest.raises(BadInput):
        users.add([VICTIM], Role.BOARD, "plant")
    assert users.revoke(HOSTILE).name == HOSTILE and [user.name for user in users.listed()] == [VICTIM]
    text = users.path.read_text()
    assert users.path.stat().st_mode & 0o777 == 0o600
    created = f'"created_s": {users.listed()[0].created_s}'
    damages = ((VICTIM, 'b" }'), ('"lab"', '"lab\\" {"'), ("$2a$", '\\" }'), ('"board"', '"root"'), ("1", "["))
    times = [(created, f'"created_s": {time}') for time in ('"x"', "null", "99999999999999", "1e400")]
    for old, new in (*damages, *times):
        users.path.write_text(text.replace(old, new))
        with pytest.raises(BadInput):
            users.listed()
