# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that many commands share, and their types: durations, fractions, names, store, requirement."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fastenough.model import RETURN_TIME_NS, BadInput, Requirement, require_confidence
from fastenough.store import Store
from fastenough.units import parse_duration_ns, parse_instant_s, parse_share


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


class PointInTime(click.ParamType[int]):
    """A time in ISO 8601, as integer seconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_instant_s(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


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


class FiniteRange(click.FloatRange):
    """A number of a range, without NaN, which no comparison excludes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number", param, ctx)
        return number


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
        complete, comma, begun = incomplete.rpartition(",")
        return [CompletionItem(complete + comma + name) for name in self._known if name.startswith(begun)]


DURATION = Duration()
FRACTION = Fraction()
INSTANT = PointInTime()
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/json.md).")


_OPTIONS = (
    click.option(
        "--limit",
        "limit_ns",
        type=DURATION,
        help="Maximum allowed latency, as in 100us.",
    ),
    click.option(
        "--miss-rate",
        type=FRACTION,
        default="0",
        show_default=True,
        help="Allowed fraction of activations above the limit, as in 0, 1e-6 or 5%.",
    ),
    click.option(
        "--confidence", type=FRACTION, default="95%", show_default=True, help="Confidence level of every bound."
    ),
    click.option(
        "--longest-burst",
        type=click.IntRange(min=1),
        help="Maximum number of activations that one disturbance delays, even seconds apart. Must be known from the "
        "design of the system before measuring; a PASS that depends on it says so.",
    ),
    click.option(
        "--return-time",
        "return_time_ns",
        type=DURATION,
        default="5s",
        show_default=True,
        help="With a miss rate of 0: longest time between disturbances that the data must exclude.",
    ),
)


@dataclass(frozen=True)
class RequirementOptions:
    """The options of a requirement, as given."""

    limit_ns: int | None
    miss_rate: float
    confidence: float
    longest_burst: int | None
    return_time_ns: int

    def requirement(self) -> Requirement | None:
        """The requirement, None without a limit; raises BadInput for options that need a limit."""
        require_confidence(self.confidence, "--confidence")
        if self.limit_ns is not None:
            return self.of_limit(self.limit_ns)
        if self.miss_rate:
            raise BadInput("--miss-rate requires --limit")
        if self.longest_burst is not None or self.return_time_ns != RETURN_TIME_NS:
            raise BadInput("--longest-burst and --return-time require --limit")
        return None

    def of_limit(self, limit_ns: int) -> Requirement:
        """The requirement of another limit."""
        return Requirement(limit_ns, self.miss_rate, self.confidence, self.longest_burst, self.return_time_ns)


def requirement_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --limit, --miss-rate, --confidence, --longest-burst and --return-time, passed as ``limit_options``."""
    names = [field.name for field in fields(RequirementOptions)]

    @wraps(command)
    def with_requirement(**values: Any) -> Any:
        return command(limit_options=RequirementOptions(*(values.pop(name) for name in names)), **values)

    for option in reversed(_OPTIONS):
        with_requirement = option(with_requirement)
    return with_requirement


def only_these_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --only-these."""
    return click.option(
        "--only-these",
        is_flag=True,
        help="Ignore other runs of the store that answer the same question. The headline states how many were ignored.",
    )(command)


store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    default=Path("fastenough-data"),
    show_default=True,
    help="Directory of the store.",
)


def existing_store(path: Path) -> Store:
    """The store to read from; raises BadInput if there is none."""
    try:
        there = (path / "runs").is_dir()
    except OSError as error:
        raise BadInput(f"{path}: cannot read the store: {error.strerror}") from error
    if not there:
        raise BadInput(f"{path}: no store; 'fastenough assess' creates one, --store names another")
    store = Store(path)
    if store.index_fault is not None:
        print(f"fastenough: reading the runs without the index: {store.index_fault}", file=sys.stderr)
    return store
