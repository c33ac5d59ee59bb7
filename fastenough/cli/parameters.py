# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of option values: durations, fractions, CPU lists, lists of names."""

from __future__ import annotations

import re
from typing import Any

import click
from click.shell_completion import CompletionItem

from fastenough.units import parse_duration_ns, parse_share


class Duration(click.ParamType[int]):
    """A duration with unit, as integer nanoseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration_ns(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class DurationText(click.ParamType[str]):
    """A duration with unit, passed on as it was written."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        DURATION.convert(value, param, ctx)
        return str(value)


class Fraction(click.ParamType[float]):
    """A fraction of one: ``95%``, ``0.95`` or ``1e-6``."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_share(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


class CpuList(click.ParamType[str]):
    """CPU numbers, passed on as they were written; the board checks that it has them."""

    name = "cpus"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value and re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", str(value)) is None:
            self.fail(f"'{value}' is not a list of CPUs; write it as 0-3,5", param, ctx)
        return str(value)


class Names(click.ParamType[list[str]]):
    """Comma-separated names of a known set, each once."""

    name = "names"

    def __init__(self, kind: str, known: list[str]) -> None:
        self._kind = kind
        self._known = known

    def knows(self, name: str) -> bool:
        return name in self._known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        for name in names:
            if not self.knows(name):
                self.fail(f"unknown {self._kind} '{name}'; known: {', '.join(self._known)}", param, ctx)
        if not names or len(set(names)) != len(names):
            self.fail(f"give at least one {self._kind}, each once, of: {', '.join(self._known)}", param, ctx)
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        given, comma, begun = incomplete.rpartition(",")
        return [CompletionItem(given + comma + name) for name in self._known if name.startswith(begun)]


DURATION = Duration()
FRACTION = Fraction()
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/json.md).")
