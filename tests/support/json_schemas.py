# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON Schemas (draft 2020-12) of the documents of ``--json``, derived from the types that the commands print.

``DOCUMENTS`` in tests/support/json_documents.py has the shape of each document.  A shape is a type (a dataclass is an
object with all its fields, and nothing else), a dictionary of keys to shapes, or one of the classes of this module.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from fastenough.cli.output import JSON_VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OBJECT = {"type": "object"}
_PLAIN: Mapping[Any, dict[str, Any]] = {
    Any: {},
    object: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Path: {"type": "string"},
}


@dataclass(frozen=True)
class Maybe:
    """A key that may be absent."""

    shape: Any


@dataclass(frozen=True)
class Either:
    """One of several shapes."""

    shapes: tuple[Any, ...]


@dataclass(frozen=True)
class ListOf:
    """An array of elements of one shape."""

    shape: Any


@dataclass(frozen=True)
class Extended:
    """An object with the fields of a dataclass and the keys of ``also``, which come first; without ``omitted``."""

    base: type
    also: Mapping[str, Any]
    omitted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Versioned:
    """An object with the key ``version``, which `print_json` adds."""

    shape: Any


def _imports(module: types.ModuleType) -> dict[str, Any]:
    """Names that a module imports, also for its annotations only."""
    names: dict[str, Any] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                source = import_module(node.module)
                names[alias.asname or alias.name] = getattr(source, alias.name, None)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = import_module(alias.name.partition(".")[0])
    return names


def field_types(kind: type) -> dict[str, Any]:
    """The types of the fields of a dataclass, by name."""
    try:
        hints = typing.get_type_hints(kind)
    except NameError:
        hints = {}
        for base in reversed(kind.__mro__):
            if is_dataclass(base):
                module = sys.modules[base.__module__]
                hints |= typing.get_type_hints(base, {**_imports(module), **vars(module)})
    return {field.name: hints[field.name] for field in fields(kind)}


def form_of(shape: Any) -> dict[str, Any]:
    """The schema of a shape."""
    if isinstance(shape, Mapping):
        return _object(shape)
    if isinstance(shape, ListOf):
        return {"type": "array", "items": form_of(shape.shape)}
    if isinstance(shape, Either):
        return {"anyOf": [form_of(one) for one in shape.shapes]}
    if isinstance(shape, Extended):
        kept = {name: kind for name, kind in field_types(shape.base).items() if name not in shape.omitted}
        return _object({**shape.also, **{name: shape.also.get(name, kind) for name, kind in kept.items()}})
    if isinstance(shape, Versioned):
        return _versioned(shape.shape)
    return _of_type(shape)


def _versioned(shape: Any) -> dict[str, Any]:
    if isinstance(shape, type):
        shape = field_types(shape)
    elif isinstance(shape, Extended):
        shape = {**shape.also, **field_types(shape.base)}
    found = _object(shape)
    return {
        **found,
        "properties": {"version": {"const": JSON_VERSION}, **found["properties"]},
        "required": ["version", *found["required"]],
    }


def _object(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            name: form_of(shape.shape if isinstance(shape, Maybe) else shape) for name, shape in keys.items()
        },
        "required": [name for name, shape in keys.items() if not isinstance(shape, Maybe)],
        "additionalProperties": False,
    }


def _of_type(kind: Any) -> dict[str, Any]:
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is not None:
        return _of_generic(origin, arguments)
    if isinstance(kind, type) and is_dataclass(kind):
        return _object(field_types(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value if isinstance(member, str | int) else str(member) for member in kind]}
    if isinstance(kind, type) and issubclass(kind, Mapping | dict):
        return dict(_OBJECT)
    raise TypeError(f"no JSON Schema for {kind!r}: state its shape in tests/support/json_documents.py")


def _of_generic(origin: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [form_of(one) for one in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": form_of(arguments[1])}
    if origin is tuple and arguments[-1] is not Ellipsis:
        count = len(arguments)
        items = [form_of(one) for one in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": count}
    if issubclass(origin, Sequence):
        return {"type": "array", "items": form_of(arguments[0])}
    raise TypeError(f"no JSON Schema for {origin!r}")


def schema_of(command: str, shape: Any) -> dict[str, Any]:
    """The schema of the document that a command prints, or of each line of it."""
    return {"$schema": DIALECT, "title": f"fastenough {command} --json", **form_of(shape)}
