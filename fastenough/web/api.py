# SPDX-License-Identifier: GPL-2.0-or-later
"""The read API: operations with their parameters and the types of their answers, and its OpenAPI document."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from fastenough import __version__
from fastenough.web.rendering import as_json
from fastenough.web.selection import Query, values_of
from fastenough.web.site import JSON, Page, Site

AT = "/api/v1"
Schema = dict[str, Any]
_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    type(None): {"type": "null"},
}


@dataclass(frozen=True)
class Parameter:
    """A query parameter.  ``schema``: JSON Schema of its value."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Operation:
    """An operation.  ``path``: its path below `AT`.  ``answer``: a dataclass, which ``make`` returns for a site, the
    names in the path, and ``values`` by parameter.

    ``checked``: raises UnknownBoard before the parameters are read, so that errors do not reveal hidden boards.
    """

    path: str
    summary: str
    answer: type
    make: Callable[..., Any]
    parameters: Sequence[Parameter] = ()
    checked: Callable[..., object] | None = None

    @property
    def page(self) -> Page:
        return Page(AT + self.path, JSON, self._answer, asks=True, published=False)

    def _answer(self, site: Site, query: Query = (), **named: str) -> bytes:
        if self.checked is not None:
            self.checked(site, **named)
        values = values_of(query, tuple(parameter.name for parameter in self.parameters))
        return as_json(self.make(site, values=values, **named))


def schema_of(kind: Any) -> Schema:
    """JSON Schema of a type; a dataclass becomes an object with exactly its fields."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(part) for part in arguments]}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if is_dataclass(kind):
        return {"$ref": f"#/components/schemas/{getattr(kind, '__name__', '')}"}
    if issubclass(kind, Enum):
        return {"enum": [str(part) for part in kind]}
    raise TypeError(f"no JSON Schema for {kind!r}")


def _object(kind: type) -> Schema:
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {name: schema_of(hints[name]) for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _dataclasses_in(kind: Any) -> list[type]:
    """The dataclasses in a type, including those in their fields."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return [kind, *(inner for field in fields(kind) for inner in _dataclasses_in(hints[field.name]))]
    return [inner for part in typing.get_args(kind) for inner in _dataclasses_in(part)]


@dataclass(frozen=True)
class ApiError:
    """``error``: what is wrong, in one line."""

    error: str


def _operation_object(operation: Operation) -> Schema:
    named = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    path = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in named]
    query = [
        {"name": parameter.name, "in": "query", "description": parameter.description, "schema": dict(parameter.schema)}
        for parameter in operation.parameters
    ]

    def answer(text: str, kind: type) -> Schema:
        return {"description": text, "content": {JSON: {"schema": schema_of(kind)}}}

    return {
        "operationId": "_".join(part.strip("{}") for part in operation.path.split("/") if part),
        "summary": operation.summary,
        "parameters": path + query,
        "responses": {
            "200": answer("The answer.", operation.answer),
            "400": answer("A parameter is wrong.", ApiError),
            **({"404": answer("No such board.", ApiError)} if named else {}),
        },
    }


def openapi(operations: Sequence[Operation]) -> Schema:
    """The OpenAPI 3.1 document of these operations."""
    kinds = {kind.__name__: kind for operation in operations for kind in (*_dataclasses_in(operation.answer), ApiError)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "fastenough read API", "version": __version__},
        "paths": {AT + operation.path: {"get": _operation_object(operation)} for operation in operations},
        "components": {"schemas": {name: _object(kind) for name, kind in sorted(kinds.items())}},
    }
