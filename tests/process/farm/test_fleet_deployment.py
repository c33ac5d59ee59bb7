# SPDX-License-Identifier: GPL-2.0-or-later
"""What packaging/fleet deploys: files of the right form, commands that exist, a server with passwords and limits."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from aiomqtt import Client, MqttError

from fastenough.cli import cli as program
from fastenough.farm.lab import free_ports
from fastenough.fleet.chunk import order_topic, ring_topic, shard_of
from fastenough.fleet.simulated import SimulatedBoard
from fastenough.fleet.stream import ChunkStream
from fastenough.model import Unavailable
from tests.support.cli_calls import ROOT

_FOLDER = ROOT / "packaging" / "fleet"
_MANIFESTS = [one for one in sorted(_FOLDER.glob("*.yaml")) if one.name not in ("compose.yaml", "kustomization.yaml")]


def _documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def test_the_compose_file_has_the_form_of_one() -> None:
    tool = Path(sys.executable).with_name("check-jsonschema")
    subprocess.run([tool, "--builtin-schema", "vendor.compose-spec", _FOLDER / "compose.yaml"], check=True)


def test_the_base_names_all_manifests_and_the_servers_configuration() -> None:
    (base,) = _documents(_FOLDER / "kustomization.yaml")
    assert sorted(base["resources"]) == [path.name for path in _MANIFESTS]
    assert base["configMapGenerator"] == [{"name": "nats", "files": ["nats.conf"]}]


def _containers(path: Path) -> Iterator[dict[str, Any]]:
    for document in _documents(path):
        specification = document["spec"]
        while "jobTemplate" in specification or "template" in specification:
            specification = (specification.get("jobTemplate") or specification["template"])["spec"]
        yield from specification.get("containers", [])


def _commands() -> list[list[str]]:
    """The words behind the program's name, of both deployments."""
    services = yaml.safe_load((_FOLDER / "compose.yaml").read_text())["services"].values()
    found = [[str(word) for word in one["command"]] for one in services if one["image"] == "fastenough"]
    for container in (one for path in _MANIFESTS for one in _containers(path) if one["image"] == "fastenough"):
        words = shlex.split(re.sub(r"\$\(\(.*?\)\)/\$TAKERS", "1/2", container["args"][0]))
        assert words[:2] == ["exec", "/opt/fastenough/bin/fastenough"]
        found.append(words[2:])
    return found


@pytest.mark.parametrize("words", _commands(), ids=lambda words: "-".join(words[:2]))
def test_each_command_exists_with_its_options(words: list[str]) -> None:
    group: click.Command = program
    context = click.Context(group)
    while isinstance(group, click.Group):
        found = group.get_command(context, words[0])
        assert found is not None
        group, words = found, words[1:]
    context = group.make_context("fastenough", words)
    assert context.params


@pytest.mark.parametrize(("pod", "part"), [("taker-0", "1/2"), ("taker-11", "12/2")])
def test_a_pod_knows_its_part(pod: str, part: str) -> None:
    (container,) = (one for one in _containers(_FOLDER / "takers.yaml") if one["name"] == "taker")
    script = container["args"][0].replace("exec /opt/fastenough/bin/fastenough", "echo")
    words = subprocess.run(
        ["sh", "-c", script], env={"HOSTNAME": pod, "TAKERS": "2"}, check=True, capture_output=True, text=True
    ).stdout.split()
    assert words[-2:] == ["--part", part]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, int, ssl.SSLContext]]:
    """The server as deployed: ports for takers and for boards, and what trusts its certificate."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.crt"
    subprocess.run([*make.split(), *names.split()], cwd=tmp_path, check=True, capture_output=True)
    ports = free_ports(2)
    text = (_FOLDER / "nats.conf").read_text().replace('"/data"', f'"{tmp_path}/data"').replace("/tls/", f"{tmp_path}/")
    for old, new in zip(("0.0.0.0:4222", "0.0.0.0:8883"), ports, strict=True):
        assert old in text
        text = text.replace(old, f"127.0.0.1:{new}")
    (tmp_path / "nats.conf").write_text(text)
    passwords = {"BOARD_PASSWORD": "of-boards", "TAKER_PASSWORD": "of-takers"}
    with subprocess.Popen(
        ["nats-server", "-c", tmp_path / "nats.conf"], env={**os.environ, **passwords}, stderr=subprocess.DEVNULL
    ) as process:
        yield ports[0], ports[1], ssl.create_default_context(cafile=str(tmp_path / "tls.crt"))
        process.kill()


async def _opened(url: str) -> ChunkStream:
    for _ in range(50):
        try:
            return await ChunkStream.opened(url)
        except Unavailable:
            await asyncio.sleep(0.1)
    raise AssertionError("the server does not answer")


async def _published(server: tuple[int, int, ssl.SSLContext]) -> tuple[int, int]:
    """How many chunks of a board are in the stream, and how many another board could read."""
    stream = await _opened(f"nats://taker:of-takers@127.0.0.1:{server[0]}")
    board = SimulatedBoard(1, 60.0, 1_795_000_000.0, 0.0)
    access = partial(Client, "127.0.0.1", server[1], username="board", password="of-boards", tls_context=server[2])
    async with access(identifier="other") as other, access(identifier=board.machine) as client:
        with suppress(MqttError):
            await other.subscribe("fe/ring/#", qos=1, timeout=2)
        await client.subscribe(order_topic(board.machine), qos=1)
        await client.publish(ring_topic(board.machine), board.chunk(0, 1).packed(), qos=1)
        await asyncio.sleep(0.5)
        read = len(other.messages)
    messages = await stream.read(shard_of(board.machine), 0, 10)
    await stream.close()
    return len(messages), read


@pytest.mark.skipif(shutil.which("nats-server") is None, reason="nats-server is not installed")
def test_a_board_publishes_and_reads_nothing_of_others(server: tuple[int, int, ssl.SSLContext]) -> None:
    assert asyncio.run(_published(server)) == (1, 0)


@pytest.mark.skipif(shutil.which("nats-server") is None, reason="nats-server is not installed")
def test_nobody_without_a_password_is_served(server: tuple[int, int, ssl.SSLContext]) -> None:
    async def tried() -> None:
        await (await _opened(f"nats://taker:of-takers@127.0.0.1:{server[0]}")).close()
        with pytest.raises(MqttError):
            async with Client("127.0.0.1", server[1], username="board", password="guess", tls_context=server[2]):
                pass

    asyncio.run(tried())
