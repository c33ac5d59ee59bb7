# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/schemas: one JSON Schema for each command with ``--json``, derived from the types that the command prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from fastenough.cli import cli
from tests.support.cli_calls import ROOT
from tests.support.json_documents import DOCUMENTS, LINES, SCHEMAS, derived, path_of, require_valid

PAGE = (ROOT / "docs" / "json.md").read_text()


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            yield from _commands(member, (*path, name))


def _with_json() -> list[str]:
    return [name for name, command in _commands(cli) if any("--json" in option.opts for option in command.params)]


def test_every_command_with_json_has_a_schema_and_a_row_in_the_page() -> None:
    names = _with_json()
    assert len(names) > 50 and sorted(names) == sorted(DOCUMENTS)
    assert set(names) >= LINES
    for name in names:
        assert f"[`{name}`](schemas/{path_of(name).name})" in PAGE


def test_schemas_are_those_of_the_types_that_are_printed() -> None:
    texts = derived()
    assert set(SCHEMAS.iterdir()) == set(texts), "run: python -m tests.support.json_documents"
    for path, text in texts.items():
        assert path.read_text() == text, f"{path}: run: python -m tests.support.json_documents"


@pytest.mark.check
@pytest.mark.parametrize("path", sorted(SCHEMAS.iterdir()), ids=lambda path: path.name)
def test_each_schema_is_one_of_its_standard(path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


_RENAMED = [
    line.strip("| ").split(" | ") for line in PAGE.partition("## Renamed keys")[2].splitlines() if "| `" in line
]
"""Rows of the page: commands, names of version 1, names of version 2."""


def _names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _names_of(form: Any) -> set[str]:
    """Keys and constant values of a schema."""
    if isinstance(form, list):
        return set().union(*map(_names_of, form))
    if not isinstance(form, dict):
        return set()
    values = {str(value) for value in form.get("enum", ()) if value is not None}
    return values.union(form.get("properties", ()), *map(_names_of, form.values()))


@pytest.mark.parametrize("row", _RENAMED, ids=lambda row: f"{row[0]}: {row[1]}")
def test_renamed_keys_are_those_of_the_schemas(row: list[str]) -> None:
    """Former names are absent where the page does not restrict them to one object."""
    commands, former, names = _names_in(row[0]), row[1], _names_in(row[2])
    by_command = [_names_of(json.loads(path_of(command).read_text())) for command in commands]
    assert set(names) <= set().union(*by_command)
    assert all(found & set(names) for found in by_command)
    if re.fullmatch(r"`\w+`(, `\w+`)*", former):
        assert not set(_names_in(former)) & set().union(*by_command)


_SAMPLES = {"string": "text", "integer": 1, "number": 1, "boolean": True, "null": None, None: None}


def _plain(form: dict[str, Any]) -> dict[str, Any]:
    """Of several forms, the first."""
    return _plain(form["anyOf"][0]) if "anyOf" in form else form


def _sample(schema: dict[str, Any]) -> Any:
    """A value of this form."""
    form = _plain(schema)
    if "const" in form or "enum" in form:
        return form.get("enum", [form.get("const")])[0]
    if form.get("type") == "object":
        return {name: _sample(member) for name, member in form.get("properties", {}).items()}
    if form.get("type") == "array":
        return [_sample(member) for member in form.get("prefixItems", [form["items"]])]
    return _SAMPLES[form.get("type")]


@pytest.mark.parametrize("command", sorted(DOCUMENTS))
def test_a_missing_an_extra_and_a_changed_key_are_refused(command: str) -> None:
    """Of the document, or of the first element of a list."""
    schema = json.loads(path_of(command).read_text())
    document, form = _sample(schema), _plain(schema)
    assert require_valid(command, json.dumps(document)) in (document, [document])
    listed = form["type"] == "array"
    found, required = (document[0], _plain(form["items"])) if listed else (document, form)
    changed = [{**found, "surplus": 1}]
    for key in required["required"]:
        changed.append({name: value for name, value in found.items() if name != key})
        changed.append({f"{name}_" if name == key else name: value for name, value in found.items()})
        changed.append({**found, key: 1 if isinstance(found[key], list) else []})
    assert len(changed) > 3
    for one in changed:
        with pytest.raises(jsonschema.ValidationError):
            require_valid(command, json.dumps([one] if listed else one))
