# SPDX-License-Identifier: GPL-2.0-or-later
"""What packaging/fleet deploys: files of the right form, and commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from fastenough.cli import cli as program
from tests.support.cli_calls import ROOT

pytestmark = pytest.mark.untimed

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
