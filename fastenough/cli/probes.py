# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough list-probes``: the probes, their parameters, and the loads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import click

from fastenough.cli.commands import Command
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, print_table, text_width
from fastenough.implementations import IMPLEMENTATIONS
from fastenough.implementations.catalogue import Parameter, ProbeEntry, local_catalogue
from fastenough.loads import LOADS
from fastenough.model import BadInput, FastenoughError

_UNITS = {
    "duration": "time with unit, as 200us",
    "integer": "number",
    "cpus": "CPUs, as 0-3,5",
    "text": "text",
    "flag": "(no value)",
}


def probe_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names with that beginning, for a shell; none if there is no probe binary."""
    try:
        return [name for name in local_catalogue() if name.startswith(incomplete)]
    except FastenoughError:
        return []


def takes(parameter: Parameter) -> str:
    """The form of a parameter's value."""
    return " | ".join(parameter.choices) if parameter.choices else _UNITS[parameter.kind]


def _rows(parameters: tuple[Parameter, ...]) -> list[tuple[str, str, str]]:
    return [(parameter.name, takes(parameter), parameter.help) for parameter in parameters]


def _print_probe(probe: ProbeEntry) -> None:
    print(f"{probe.name}: {probe.summary}\n")
    heads = ("parameter", "value", "meaning (default)")
    if probe.own:
        print_table(f"Parameters of {probe.name}", heads, _rows(probe.own), texts=3, file_width=text_width())
        print()
    print_table("Parameters of every probe", heads, _rows(probe.common), texts=3, file_width=text_width())
    print(f"\nexample: fastenough run {probe.name} priority=98 --load none,full --duration 1m")


def _by_implementation(probes: Mapping[str, ProbeEntry]) -> dict[str, list[str]]:
    """Implementation to the probes that it supports."""
    supported: dict[str, list[str]] = {name: [] for name in IMPLEMENTATIONS}
    for name, implementation in IMPLEMENTATIONS.items():
        for probe in probes:
            with suppress(BadInput):
                implementation.check(probe, {}, probes)
                supported[name].append(probe)
    return supported


def _print_all(probes: dict[str, ProbeEntry]) -> None:
    print_table(
        "",
        ("probe", "measures"),
        [(probe.name, probe.summary) for probe in probes.values()],
        texts=2,
        file_width=text_width(),
    )
    for name, own in _by_implementation(probes).items():
        if len(own) < len(probes):
            print(f"also with --implementation {name}: {', '.join(own)}")
    print()
    print_table(
        "",
        ("load", "tools"),
        [(load.name, ", ".join(load.tools) or "–") for load in LOADS.values()],
        texts=2,
        file_width=text_width(),
    )
    print("\nparameters of one probe: fastenough list-probes timer")


@click.command(cls=Command, example="fastenough list-probes timer")
@click.argument("probe", required=False, shell_complete=probe_names)
@json_option
def command(probe: str | None, as_json: bool) -> None:
    """List probes, their parameters, and loads.

    With PROBE, lists the parameters of that probe with their units and defaults.
    """
    known = local_catalogue()
    if probe is not None and probe not in known:
        raise BadInput(f"no probe '{probe}'; probes: {', '.join(known)}")
    chosen = known if probe is None else {probe: known[probe]}
    if as_json:
        print_json(
            {"probes": list(chosen.values()), "loads": list(LOADS), "implementations": _by_implementation(known)}
        )
    elif probe is not None:
        _print_probe(known[probe])
    else:
        _print_all(known)
