# SPDX-License-Identifier: GPL-2.0-or-later
"""Text for people, uniform wherever it is printed: numbers, times, and the output of other programs and machines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

LINE_CHARS = 200
"""Maximum length of a quoted line of another program."""
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
_DURATIONS = (("days", 86400e9), ("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NEXT_FORMULA = re.compile(r"([;\t\r\n][ \"]*)(?=[=+\-@])")
"""A formula after a character at which some spreadsheets, as German and French ones, end a cell despite its quotes."""
WITH_UNIT = r"\(?\d[\d,.]* (?:%|ns|µs|ms|s|min|h|days)(?!\w)\)?"
"""A number and its unit, between which no line should end."""


def no_formula(text: str) -> str:
    """Text for a cell of a CSV file, which a spreadsheet does not run as a formula, also if it splits it into cells."""
    inner = _NEXT_FORMULA.sub(r"\1'", text)
    return f"'{inner}" if text.startswith(_FORMULA) else inner


def iso(at_s: int) -> str:
    """An instant as machines read it, to the second, UTC."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


def minute(wall_ns: int) -> str:
    """An instant of the wall clock as people read it, to the minute."""
    return f"{datetime.fromtimestamp(wall_ns / 1e9, UTC):%Y-%m-%d %H:%M} UTC"


def duration(ns: float) -> str:
    """A duration with three digits, in the largest unit of which there are at least two (one, below a minute)."""
    rounded_ns = float(f"{ns:.3g}")
    for unit, length_ns in _DURATIONS:
        least = 2.0 if length_ns > 1e9 else 1.0
        if abs(rounded_ns) >= least * length_ns:
            return f"{ns / length_ns:.3g} {unit}" if abs(ns) < 999.5 * length_ns else f"{ns / length_ns:,.0f} {unit}"
    return f"{rounded_ns:.3g} ns"


def since_begin(ns: float, digits: int = 2) -> str:
    """An instant of a run, so that it can be found: in seconds with these digits, or to the minute from an hour on."""
    minutes = int(ns / 60e9)
    if minutes < 60:
        return f"{ns / 1e9:,.{digits}f} s"
    days, hours = divmod(minutes // 60, 24)
    return f"{f'{days:,} d ' if days else ''}{hours} h {minutes % 60} min"


def exact_time(ns: float | None) -> str:
    """A requested time (a limit, an interval, ...), exactly, in the unit in which it was typed: "20 ms", "1.5 ms".

    The largest unit up to seconds in which the number is at least 1 and has no more than three decimals; "–" for None.
    """
    if ns is None:
        return "–"
    whole = round(ns)
    unit, length_ns = next(
        ((unit, int(length_ns)) for unit, length_ns in _DURATIONS[3:-1] if _has_three_decimals(whole, int(length_ns))),
        ("ns", 1),
    )
    return f"{whole / length_ns:,.3f}".rstrip("0").rstrip(".") + f" {unit}"


def _has_three_decimals(ns: int, length_ns: int) -> bool:
    return abs(ns) >= length_ns and ns * 1000 % length_ns == 0


def part(name: str, value: object) -> str:
    """A name and what it is; times in a unit that people read."""
    if value is None:
        return name
    if name.endswith("_ns") and isinstance(value, int):
        return f"{name.removesuffix('_ns').replace('_', ' ')} {exact_time(value)}"
    return f"{name} {value}"


def measured_time(ns: float) -> str:
    """How long was measured: some imported runs do not say it, and reach from no instant to none."""
    return duration(ns) if ns else "a time not stated"


def microseconds(ns: float | None) -> str:
    """A latency as a bare number of µs, with the digits that mean something: never rounded down."""
    return _microseconds(ns, math.ceil)


def microseconds_down(ns: float | None) -> str:
    """The same for a minimum and for the lower end of an interval: never rounded up."""
    return _microseconds(ns, math.floor)


def microseconds_interval(lower_ns: float | None, upper_ns: float | None, between: str = " to ") -> str:
    """An interval in µs, without the unit, that holds all that the one given does; "–" where an end is not known, and
    "∞" for one without a bound."""
    if lower_ns is None or upper_ns is None:
        return "–"
    lower = microseconds_down(lower_ns) if math.isfinite(lower_ns) else "-∞"
    return f"{lower}{between}{microseconds(upper_ns) if math.isfinite(upper_ns) else '∞'}"


def interval(lower: float, upper: float) -> str:
    """An interval of bare numbers with three digits each, that holds all that the one given does."""
    return f"{_three_digits(lower, math.floor)} to {_three_digits(upper, math.ceil)}"


def _three_digits(value: float, whole: Callable[[float], float]) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < _NO_STEPS:
        return repr(value)
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    steps = value / step
    near = round(steps)
    return f"{(near if abs(steps - near) < _NEARLY_WHOLE else whole(steps)) * step:.3g}"


def nearest_microseconds(ns: float | None) -> str:
    """The same where it errs to no side, as a mean or the estimate of a difference does."""
    if ns is None:
        return "–"
    return f"{ns / 1000:.2f}" if abs(ns) < 10_000 else f"{ns / 1000:,.1f}"


def _microseconds(ns: float | None, whole: Callable[[float], float]) -> str:
    if ns is None:
        return "–"
    decimals = 2 if abs(ns) < 10_000 else 1 if abs(ns) < 1_000_000 else 0
    steps = ns / 10.0 ** (3 - decimals)
    near = round(steps)
    steps = near if abs(steps - near) < _NEARLY_WHOLE else whole(steps)
    return f"{steps / 10.0**decimals + 0.0:,.{decimals}f}"


_NO_STEPS = 1e-300
"""The steps of smaller values are no normal numbers; such a value is printed with all its digits."""
_NEARLY_WHOLE = 1e-6
"""What floating point adds or takes must not become a digit."""


def digits_down(value: float, digits: int = 3) -> str:
    """A number >= 0 with at least so many significant digits, not rounded up: for what is worse the smaller it is."""
    if value <= 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(value)))
    steps = value * 10.0**decimals
    near = round(steps)
    steps = near if abs(steps - near) < _NEARLY_WHOLE else math.floor(steps)
    return f"{steps / 10.0**decimals:,.{decimals}f}"


def kilohertz(hz: float | None) -> str:
    """A frequency as a bare number of kHz.  A lower one is a weaker promise, so it is never rounded up."""
    return "–" if hz is None else digits_down(hz / 1000)


def latency(ns: float | None) -> str:
    """A latency in µs, with its unit."""
    return "–" if ns is None else f"{microseconds(ns)} µs"


def microseconds_or_least(ns: float | None, least_ns: float | None) -> str:
    """As :func:`microseconds`; "≥ 3.00" if only a lower bound is known."""
    return microseconds(ns) if least_ns is None else f"≥ {microseconds_down(least_ns)}"


def latency_or_least(ns: float | None, least_ns: float | None) -> str:
    """As :func:`latency`; "≥ 3.00 µs" if only a lower bound is known."""
    return latency(ns) if least_ns is None else f"{microseconds_or_least(ns, least_ns)} µs"


def latency_up(ns: float) -> str:
    """A latency in a sentence: three digits in the largest unit up to seconds, rounded up: "25.0 ms"."""
    if ns < 1:
        return f"{math.ceil(ns):,} ns"
    value_ns = round_up(ns, 3)
    unit, length_ns = next((unit, length_ns) for unit, length_ns in _DURATIONS[3:] if value_ns >= length_ns)
    decimals = 0 if unit == "ns" else max(0, 2 - math.floor(math.log10(value_ns / length_ns)))
    return f"{value_ns / length_ns:,.{decimals}f} {unit}"


def times_up(ratio: float) -> str:
    """How many times something exceeds a limit, with three digits, rounded up: "1.25 times"."""
    return f"{round_up(ratio * 1e9, 3) / 1e9:,.10g} times"


def number(n: int) -> str:
    return f"{n:,}"


def counted(n: int, what: str) -> str:
    """A number of things: "1 sample", "2,000 samples"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def about(n: int) -> str:
    """A number of things, never more than there are: "2.88 million"."""
    for name, size in (("billion", 10**9), ("million", 10**6)):
        if n >= size:
            return (
                f"{math.floor(n / size * 100) / 100:,.10g} {name}"
                if n < 10 * size
                else (f"{math.floor(n / size * 10) / 10:,.10g} {name}")
            )
    return number(n)


def cpus(numbers: Sequence[int]) -> str:
    """CPUs by ascending number: "CPU 3", "CPUs 0, 2-5"."""
    runs: list[list[int]] = []
    for cpu in numbers:
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    named = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"CPU {named}" if len(numbers) == 1 else f"CPUs {named}"


def percent(rate: float) -> str:
    """A rate as a percentage without needless digits."""
    return f"{rate * 100:.10g} %"


def rate(value: float) -> str:
    """A rate per activation: as "1 in …" where it is small."""
    if value <= 0:
        return "none"
    return percent(float(f"{value:.3g}")) if value > 0.01 else f"1 in {round(1 / value):,}"


def rate_of(value: float, what: str) -> str:
    """A rate with what it is of: "1 in 100 activations", "5 % of the activations"."""
    said = rate(value)
    return f"{said} of the {what}" if said.endswith("%") else f"{said} {what}"


def round_up(value_ns: float, digits: int = 2) -> int:
    """The next value that has no more than ``digits`` significant digits; at least 1 ns."""
    if value_ns <= 1:
        return 1
    step = 10.0 ** (math.floor(math.log10(value_ns)) - digits + 1)
    return max(1, round(math.ceil(value_ns / step - 1e-9) * step))


def output_lines(output: bytes) -> list[str]:
    """The non-empty lines of the output of another program or machine, safe to quote in a message.

    The output is not trusted: escape sequences are removed, other unprintable characters become blanks, and each line
    is truncated to ``LINE_CHARS``.
    """
    text = _ESCAPES.sub("", output.decode(errors="replace")).replace("\r", "\n")
    lines = ("".join(c if c.isprintable() else " " for c in line).strip() for line in text.split("\n"))
    return [line[:LINE_CHARS] for line in lines if line]


def round_down(value: float, digits: int = 3) -> float:
    """The greatest value not above this one that has no more than ``digits`` significant digits; 0 for less than 0."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.floor(value / step * (1 + 1e-12)) * step


def at_least(ns: float) -> str:
    """A duration that is not overstated: rounded down."""
    for unit, length_ns in _DURATIONS:
        if ns >= (2.0 if length_ns > 1e9 else 1.0) * length_ns:
            return f"{round_down(ns / length_ns):,.15g} {unit}"
    return f"{round_down(ns):.15g} ns"


def rate_at_most(value: float) -> str:
    """A rate per activation that is not understated: rounded up, as "1 in ..." where it is small."""
    if value >= 1:
        return "all"
    return f"{math.ceil(value * 1e4) / 100:.10g} %" if value > 0.01 else f"1 in {int(round_down(1 / value)):,}"
