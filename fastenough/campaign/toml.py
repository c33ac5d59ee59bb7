# SPDX-License-Identifier: GPL-2.0-or-later
"""Reader of TOML files by key; every error has file, line, key and the fix."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any

from fastenough.files import Untrusted, read_regular
from fastenough.model import BadInput
from fastenough.units import parse_duration_ns, parse_share

MOST_BYTES = 1 << 20

Key = tuple[str | int, ...]
"""Place of a value: names of tables and keys, and indices from 0 in arrays."""

_TEXT = r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|\#[^\n]*'
"""A string or a comment."""
_TOKEN = re.compile(_TEXT + r"""|\n|[\[\]{}=,.]|[^\s\[\]{}=,."'#]+""", re.DOTALL)
_SPACE = ("\n", "#")
_LONG_NUMBER = re.compile(r"(?<![\w.])(?:[0-9_]{19,}|0x[0-9A-Fa-f_]{16,}|0o[0-7_]{21,}|0b[01_]{63,})(?![\w.])")
_MOST_DIGITS = 80
"""Digits of a number that are read: more digits exceed 64 bits in any base."""


class _Scan:
    """Finds the line of every key of a valid TOML text."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        line, end = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", end, match.start())
            self._tokens.append((match[0], line))
            end = match.start()
        self._at = 0
        self._counts: dict[Key, int] = {}
        self.lines: dict[Key, int] = {}
        table: Key = ()
        while self._at < len(self._tokens):
            token, line = self._tokens[self._at]
            if token == "[":
                table = self._header(line)
            elif token.startswith(_SPACE):
                self._at += 1
            else:
                self._pair(table)

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _names(self, end: str) -> Key:
        """Return a key, dotted or not, up to its end mark."""
        names: list[str | int] = []
        while (token := self._peek()) not in (end, ""):
            if token.startswith(('"', "'")):
                names.append(tomllib.loads(f"name = {token}")["name"])
            elif token != ".":
                names.append(token)
            self._at += 1
        self._at += 1
        return tuple(names)

    def _resolved(self, names: Key) -> Key:
        """Return the key with the index of the newest table after each name of an array of tables."""
        place: Key = ()
        for name in names:
            place = (*place, name)
            if place in self._counts:
                place = (*place, self._counts[place] - 1)
        return place

    def _header(self, line: int) -> Key:
        self._at += 1
        many = self._peek() == "["
        self._at += many
        names = self._names("]")
        self._at += many
        if many:
            array = (*self._resolved(names[:-1]), names[-1])
            self._counts[array] = self._counts.get(array, 0) + 1
            self.lines.setdefault(array, line)
        table = self._resolved(names)
        self.lines.setdefault(table, line)
        return table

    def _pair(self, table: Key) -> None:
        line = self._tokens[self._at][1]
        names = self._names("=")
        for length in range(1, len(names) + 1):
            self.lines.setdefault((*table, *names[:length]), line)
        self._value((*table, *names))

    def _value(self, place: Key) -> None:
        if self._peek() == "[":
            self._at += 1
            number = 0
            while (token := self._peek()) not in ("]", ""):
                if token == "," or token.startswith(_SPACE):
                    self._at += 1
                    continue
                self.lines.setdefault((*place, number), self._tokens[self._at][1])
                self._value((*place, number))
                number += 1
            self._at += 1
        elif self._peek() == "{":
            self._at += 1
            while (token := self._peek()) not in ("}", ""):
                if token == "," or token.startswith(_SPACE):
                    self._at += 1
                else:
                    self._pair(place)
            self._at += 1
        else:
            while (token := self._peek()) not in (",", "]", "}", "") and not token.startswith(_SPACE):
                self._at += 1


class TomlText:
    """The text of a file, with the line of each key."""

    def __init__(self, name: str, text: str = "") -> None:
        self._name, self.text = name, text

    @cached_property
    def _lines(self) -> dict[Key, int]:
        try:
            return _Scan(self.text).lines
        except RecursionError:
            return {}

    def at(self, key: Key) -> str:
        """Return ``file:line`` of a key or of the nearest table around it, else ``file``."""
        while key and key not in self._lines:
            key = key[:-1]
        return f"{self._name}:{self._lines[key]}" if key else self._name


class Table:
    """A TOML table whose keys are taken one by one.

    ``label``: name of the table in errors, after the place in the file, such as ``run 2``; empty for the file itself.
    """

    def __init__(self, source: TomlText, content: Any, key: Key = (), label: str = "") -> None:
        self._source, self._key, self._label = source, key, label
        if not isinstance(content, dict):
            raise self.fault("must be a table")
        self._content = dict(content)

    def __contains__(self, key: str) -> bool:
        return key in self._content

    @property
    def source_text(self) -> str:
        """The whole text of the file."""
        return self._source.text

    def fault(self, message: str, *key: str | int) -> BadInput:
        """Return an error about a key of this table, or about the table itself."""
        label = f"{self._label}: " if self._label else ""
        return BadInput(f"{self._source.at((*self._key, *key))}: {label}{message}")

    def take(self, key: str, kind: type | tuple[type, ...], example: str, default: Any = None) -> Any:
        """Take the value of a key of the given type, or ``default``; raise BadInput without either."""
        if key not in self._content:
            if default is None:
                raise self.fault(f"{key} is missing; add {key} = {example}")
            return default
        value = self._content.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.fault(f"{key} = {value!r} is invalid; write {key} = {example}", key)
        return value

    def text(self, key: str, example: str, default: str | None = None) -> str:
        value: str = self.take(key, str, example, default)
        if not value and default != "":
            raise self.fault(f"{key} = {value!r} is invalid; write {key} = {example}", key)
        return value

    def number(self, key: str, example: str, least: int, default: int | None = None) -> int:
        value: int = self.take(key, int, example, default)
        if value < least:
            raise self.fault(f"{key} must be at least {least}, not {value}", key)
        return value

    def duration_ns(self, key: str, default_ns: int | None) -> int:
        """Take a text with a unit; return ns."""
        if key not in self._content and default_ns is not None:
            return default_ns
        value = self.take(key, (str, int, float), '"30s"')
        if not isinstance(value, str):
            raise self.fault(f'{key} = {value} has no unit; write {key} = "{value}s" or {key} = "{value}ms"', key)
        try:
            return parse_duration_ns(value)
        except ValueError as error:
            raise self.fault(f"{key}: {error}", key) from error

    def share(self, key: str, default: float) -> float:
        """Take a share from 0 to 1: a number, or a text such as ``"95%"``."""
        value = self.take(key, (str, int, float), '"95%"', default)
        try:
            return parse_share(str(value))
        except ValueError as error:
            raise self.fault(f"{key}: {error}", key) from error

    def texts(self, key: str, default: tuple[str, ...] | None, known: Collection[str] | None = None) -> tuple[str, ...]:
        """Take a list of different texts, each from ``known`` unless that is None."""
        if key not in self._content and default is not None:
            return default
        value = self.take(key, list, '["word", ...]')
        if not value or not all(isinstance(text, str) and text for text in value):
            raise self.fault(f"{key} must be a list of at least one word in quotes", key)
        if len(set(value)) != len(value):
            raise self.fault(f"{key} = {value!r} contains duplicates; list each word once", key)
        unknown = next((text for text in value if known is not None and text not in known), None)
        if unknown is not None:
            raise self.fault(f"{key}: unknown value {unknown!r}; use one of {', '.join(known or ())}", key)
        return tuple(value)

    def table(self, key: str, label: str) -> Table:
        """Take a table within this one, empty if the key is missing."""
        return Table(self._source, self.take(key, dict, f"a table [{key}]", {}), (*self._key, key), label)

    def tables(self, key: str, default: Any = None) -> list[Table]:
        """Take the tables of an array ``[[key]]``."""
        tables = self.take(key, list, f"[[{key}]] tables", default)
        return [
            Table(self._source, table, (*self._key, key, number), f"{key} {number + 1}")
            for number, table in enumerate(tables)
        ]

    def rest(self) -> dict[str, Any]:
        """Take all remaining keys, where any name is allowed."""
        content, self._content = self._content, {}
        return content

    def finish(self, known: Collection[str]) -> None:
        """Raise BadInput for a key that was not taken."""
        if self._content:
            unknown = next(iter(self._content))
            raise self.fault(f"unknown key {unknown!r}; use {', '.join(known)}", unknown)


def read_toml(path: Path, example: str) -> Table:
    """Return the content of a file; raise BadInput with file and fix, also for a device or an oversized file."""
    try:
        raw = read_regular(path.resolve(), MOST_BYTES)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except Untrusted as error:
        raise BadInput(f"{error}: not a plan") from error
    return parse_toml(raw, str(path), example)


def _require_short_numbers(text: str, name: str) -> None:
    """Raise BadInput for an integer outside TOML's 64 bits; Python would accept thousands of digits."""
    for number in _LONG_NUMBER.finditer(re.sub(_TEXT, _without_digits, text, flags=re.DOTALL)):
        digits = number[0].replace("_", "")[:_MOST_DIGITS]
        if int(digits, 0 if digits.startswith("0") else 10) >= 2**63:
            line = text.count("\n", 0, number.start()) + 1
            raise BadInput(f"{name}:{line}: {number[0][:20]}… does not fit into 64 bits; write a smaller number")


def _without_digits(string: re.Match[str]) -> str:
    """Return a string or comment of the same length and number of lines, without digits."""
    return re.sub(r"[0-9]", "x", string[0])


def parse_toml(raw: bytes, name: str, example: str) -> Table:
    """Return the table in a text; raise BadInput with ``name``, the text's place, and the fix."""
    try:
        text = raw.decode()
        _require_short_numbers(text, name)
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name}: invalid TOML: {error}; see {example}") from error
    return Table(TomlText(name, text), content)
