# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON of a pack: one text for a value, and a reader of untrusted text that accepts no other."""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from fastenough.recording.lines import parse_line

T = TypeVar("T")
_MOST_INTEGER = 1 << 63


def to_json(value: object) -> bytes:
    """The text of a value: dataclasses are objects, members of enumerations their values.

    A number that is not finite is null, as is every unknown one.
    """
    return json.dumps(_plain(value), indent=1, allow_nan=False).encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a scalar of numpy
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def from_json(kind: type[T], raw: bytes) -> T:
    """The dataclass of which this is the text; raises ValueError or BadInput for any other text."""
    value: T = _typed(kind, parse_line(raw))
    if to_json(value) != raw:
        raise ValueError("it is not written as in a pack")
    return value


def _typed(kind: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (other,) = (argument for argument in arguments if argument is not types.NoneType)
        return None if value is None else _typed(other, value)
    if origin is tuple and isinstance(value, list):
        return tuple(_typed(arguments[0], item) for item in value)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        return _object(kind, value)
    if kind in (int, float) and type(value) is int and abs(value) < _MOST_INTEGER:
        return value
    if (kind is float and isinstance(value, float)) or (isinstance(kind, type) and issubclass(kind, Enum)):
        return kind(value)
    if kind in (str, bool) and type(value) is kind:
        return value
    raise ValueError("a value has the wrong type")


def _object(kind: type, value: Mapping[str, object]) -> Any:
    hints = typing.get_type_hints(kind)
    if set(value) != {field.name for field in fields(kind)}:
        raise ValueError(f"the keys of {kind.__name__} are missing or unknown")
    return kind(**{name: _typed(hints[name], item) for name, item in value.items()})
