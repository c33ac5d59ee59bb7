# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of the requirement, for every command that gives a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fastenough.cli.parameters import DURATION, FRACTION
from fastenough.model import RETURN_TIME_NS, BadInput, Requirement

_OPTIONS = (
    click.option(
        "--limit",
        "limit_ns",
        type=DURATION,
        help="Maximum allowed latency, as in 100us. Without it there is no verdict.",
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
        help="Ignore other runs of the store that answer the same question. The headline states how many were ignored.",
    )(command)


def requirement(
    limit_ns: int | None,
    miss_rate: float,
    confidence: float,
    longest_burst: int | None = None,
    return_time_ns: int = RETURN_TIME_NS,
) -> Requirement | None:
    """The requirement, None without a limit; raises BadInput for options that need a limit."""
    if not 0 < confidence < 1:
        raise BadInput(f"--confidence {confidence:.0%} is not between 0% and 100%; 95% is usual")
    if limit_ns is not None:
        return Requirement(limit_ns, miss_rate, confidence, longest_burst, return_time_ns)
    if miss_rate:
        raise BadInput("--miss-rate requires --limit")
    if longest_burst is not None or return_time_ns != RETURN_TIME_NS:
        raise BadInput("--longest-burst and --return-time require --limit")
    return None
