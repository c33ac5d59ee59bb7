# SPDX-License-Identifier: GPL-2.0-or-later
"""The requirement, as options of every command that judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fastenough.cli.parameters import DURATION, FRACTION
from fastenough.model import RETURN_TIME_NS, BadInput, Requirement

_OPTIONS = (
    click.option("--limit", "limit_ns", type=DURATION, help="Latency that must not be exceeded, as in 100us."),
    click.option(
        "--miss-rate",
        type=FRACTION,
        default="0",
        show_default=True,
        help="Share of activations that may exceed the limit, as in 0, 1e-6 or 5%.",
    ),
    click.option("--confidence", type=FRACTION, default="95%", show_default=True, help="Confidence of every bound."),
    click.option(
        "--longest-burst",
        type=click.IntRange(min=1),
        help="Number of activations that one cause makes late at most, also where they are seconds apart. "
        "Known from the system's design and stated before measuring: a PASS that rests on it says so.",
    ),
    click.option(
        "--return-time",
        "return_time_ns",
        type=DURATION,
        default="5s",
        show_default=True,
        help='What "never" (a miss rate of 0) must exclude: a disturbance as often as once in this time.',
    ),
)


def requirement_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --limit, --miss-rate, --confidence, --longest-burst and --return-time."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def only_these_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --only-these."""
    return click.option(
        "--only-these",
        is_flag=True,
        help="Judge these runs without others of the store that answer the same question. The headline "
        "then says how many were left out.",
    )(command)


def requirement(
    limit_ns: int | None,
    miss_rate: float,
    confidence: float,
    longest_burst: int | None = None,
    return_time_ns: int = RETURN_TIME_NS,
) -> Requirement | None:
    """What was asked for, None without a limit; raises BadInput for a rate that belongs to no limit."""
    if not 0 < confidence < 1:
        raise BadInput(f"--confidence must lie between 0% and 100%, not {confidence:.0%}; 95% is usual")
    if limit_ns is not None:
        return Requirement(limit_ns, miss_rate, confidence, longest_burst, return_time_ns)
    if miss_rate:
        raise BadInput("--miss-rate says how often a limit may be exceeded; give --limit as well")
    if longest_burst is not None or return_time_ns != RETURN_TIME_NS:
        raise BadInput("--longest-burst and --return-time belong to a limit; give --limit as well")
    return None
