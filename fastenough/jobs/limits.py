# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits file of ``fastenough check``: TOML, all keys documented in docs/check.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fastenough.analysis.gate import ENVIRONMENT, AllowedDepartures, Budget, Growth, Limit
from fastenough.analysis.instructions import FIGURES
from fastenough.campaign.toml import Table, read_toml
from fastenough.model import RETURN_TIME_NS, BadInput, Requirement, require_confidence
from fastenough.units import parse_duration_ns, parse_share

_ALL_HAVE = ("board", "probe", "load", "confidence")
GROWTH_KEYS = (*_ALL_HAVE, "quantile", "slower-by")
REQUIREMENT_KEYS = (*_ALL_HAVE, "limit", "miss-rate", "longest-burst", "return-time")
PATH_KEYS = ("board", "probe", "load", "path", "longer-by")
ALLOW_KEYS = ("differs", "missing")
_MAXIMA = ("max", "maximum", "max-slower-by", "maximum-slower-by")
_NO_MAXIMUM = (
    "a maximum is a single value that grows with the duration of the run, and no test can show whether "
    'two of them differ, so it cannot be a gate; write quantile = "99.9%" and slower-by = '
    '"5us", or limit = "100us" with a miss-rate, which judges by bounds'
)


@dataclass(frozen=True)
class Limits:
    """The limits of a file in order, and the departures from the baseline that it allows."""

    limits: tuple[Limit, ...] = ()
    allowed: AllowedDepartures = field(default_factory=AllowedDepartures)

    @property
    def has_growth(self) -> bool:
        """Whether a limit is on growth."""
        return any(isinstance(limit.criterion, Growth) for limit in self.limits)


def read_limits(path: Path) -> Limits:
    """Read a limits file; raises BadInput with file, line, key and fix."""
    if not path.exists():
        raise BadInput(f"no such file of limits: {path} (see docs/check.md)")
    table = read_toml(path, "docs/check.md")
    entries = table.tables("limit")
    allowed = _read_allowed(table.table("allow", "[allow]"))
    table.finish(("limit", "allow"))
    if not entries:
        raise table.fault('the file has no limit; add a [[limit]] table with quantile = "99.9%" and slower-by = "5us"')
    return Limits(tuple(_limit(path, number, entry) for number, entry in enumerate(entries, 1)), allowed)


def _read_allowed(table: Table) -> AllowedDepartures:
    allowed = AllowedDepartures(table.texts("differs", (), ENVIRONMENT), table.texts("missing", ()))
    table.finish(ALLOW_KEYS)
    return allowed


def _limit(path: Path, number: int, table: Table) -> Limit:
    _refuse_maximum(table)
    board, probe, load = (
        table.text(key, f'"{example}"') if key in table else None
        for key, example in (("board", "my-board"), ("probe", "timer"), ("load", "cpu"))
    )
    if "path" in table or "longer-by" in table:
        budget = _budget(table)
        table.finish(PATH_KEYS)
        return Limit(f"{path}, limit {number}", budget, board, probe, load)
    confidence = table.share("confidence", Requirement.confidence)
    try:
        require_confidence(confidence, "confidence")
    except BadInput as error:
        raise table.fault(str(error), "confidence") from error
    if ("slower-by" in table) == ("limit" in table):
        raise table.fault(
            'write either slower-by = "5us" with a quantile, which looks at the baseline, or '
            'limit = "100us" with a miss-rate, which stands by itself; on a deterministic board path = "minimum" with '
            'longer-by = "100"'
        )
    grows = "slower-by" in table
    question = _growth(table, confidence) if grows else _requirement(table, confidence)
    table.finish(GROWTH_KEYS if grows else REQUIREMENT_KEYS)
    return Limit(f"{path}, limit {number}", question, board, probe, load)


def _refuse_maximum(table: Table) -> None:
    for key in _MAXIMA:
        if key in table:
            raise table.fault(f"{key} is not supported: {_NO_MAXIMUM}", key)


def _budget(table: Table) -> Budget:
    figure = table.text("path", '"minimum"')
    if figure not in FIGURES:
        raise table.fault(f"path = {figure!r} is not a figure of a path; use one of {', '.join(FIGURES)}", "path")
    amount = table.text("longer-by", '"100" or "2%"')
    try:
        return parse_budget(figure, amount)
    except ValueError as error:
        raise table.fault(f"longer-by = {amount!r} is invalid; {error}", "longer-by") from error


def parse_budget(figure: str, amount: str) -> Budget:
    """The budget of a figure, from a number of instructions or a share ("100", "2%"); raises ValueError."""
    if amount.endswith("%"):
        return Budget(figure, more_share=parse_share(amount))
    if not amount.isdecimal():
        raise ValueError('write a number of instructions or a share: "100" or "2%"')
    return Budget(figure, more=int(amount))


def _growth(table: Table, confidence: float) -> Growth:
    if "quantile" not in table:
        raise table.fault('slower-by requires a quantile: add quantile = "99.9%"', "slower-by")
    quantile = table.share("quantile", 0.0)
    if quantile == 1:
        raise table.fault(f"quantile = 100 % is the maximum: {_NO_MAXIMUM}", "quantile")
    if not 0 < quantile < 1:
        raise table.fault('quantile must lie between 0% and 100%; write quantile = "99.9%"', "quantile")
    amount = table.text("slower-by", '"5us" or "10%"')
    try:
        return grown_by(amount, quantile, confidence)
    except ValueError as error:
        raise table.fault(f"slower-by: {error}", "slower-by") from error
    except BadInput as error:
        raise table.fault(str(error), "confidence") from error


def grown_by(text: str, quantile: float, confidence: float) -> Growth:
    """By how much more, as in 5us or 10%; raises ValueError, and BadInput for a confidence that cannot be shown."""
    growth = (
        Growth(quantile, more_share=parse_share(text), confidence=confidence)
        if text.endswith("%")
        else Growth(quantile, more_ns=float(parse_duration_ns(text)), confidence=confidence)
    )
    growth.require_resolved()
    return growth


def _requirement(table: Table, confidence: float) -> Requirement:
    if "quantile" in table:
        raise table.fault(
            "quantile belongs to slower-by; a limit has a miss-rate: 99.9% is miss-rate = 0.001", "quantile"
        )
    limit = table.text("limit", '"100us"')
    rate = table.share("miss-rate", Requirement.miss_rate)
    burst = table.number("longest-burst", "20", 1) if "longest-burst" in table else None
    return_time_ns = table.duration_ns("return-time", RETURN_TIME_NS)
    try:
        return Requirement(parse_duration_ns(limit), rate, confidence, burst, return_time_ns)
    except (BadInput, ValueError) as error:
        raise table.fault(f"limit: {error}", "limit") from error
