# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough list-probes``: what can be measured, with which parameters, under which loads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import click

from fastenough.cli.output import print_json, print_table
from fastenough.cli.parameters import json_option
from fastenough.implementations import IMPLEMENTATIONS
from fastenough.implementations.catalogue import Parameter, ProbeEntry, read_catalogue
from fastenough.link import LocalLink, find_probe
from fastenough.loads import LOADS
from fastenough.model import BadInput, FastenoughError

_WIDTH = 100
_UNITS = {
    "duration": "time with unit, as 200us",
    "integer": "number",
    "cpus": "CPUs, as 0-3,5",
    "text": "text",
    "flag": "(no value)",
}


def catalogue() -> dict[str, ProbeEntry]:
    """What the probe of this installation can measure; raises NotApplicable where there is none."""
    link = LocalLink()
    return read_catalogue(link, find_probe(link))


def probe_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin so, for a shell; none where there is no probe to ask."""
    try:
        return [name for name in catalogue() if name.startswith(incomplete)]
    except FastenoughError:
        return []


def takes(parameter: Parameter) -> str:
    """What a parameter's value looks like."""
    return " | ".join(parameter.choices) if parameter.choices else _UNITS[parameter.kind]


def _rows(parameters: tuple[Parameter, ...]) -> list[tuple[str, str, str]]:
    return [(parameter.name, takes(parameter), parameter.help) for parameter in parameters]


def _print_probe(probe: ProbeEntry) -> None:
    print(f"{probe.name}: {probe.summary}\n")
    heads = ("parameter", "value", "what it does (and what it is when left out)")
    if probe.own:
        print_table(f"Parameters of {probe.name}", heads, _rows(probe.own), texts=3, file_width=_WIDTH)
        print()
    print_table("Parameters of every probe", heads, _rows(probe.common), texts=3, file_width=_WIDTH)
    print(f"\nas in: fastenough run {probe.name} priority=98 --loads none,full --duration 1m")


def _by_implementation(probes: Mapping[str, ProbeEntry]) -> dict[str, list[str]]:
    """Which probes each implementation has."""
    found: dict[str, list[str]] = {name: [] for name in IMPLEMENTATIONS}
    for name, implementation in IMPLEMENTATIONS.items():
        for probe in probes:
            with suppress(BadInput):
                implementation.check(probe, {}, probes)
                found[name].append(probe)
    return found


def _print_all(probes: dict[str, ProbeEntry]) -> None:
    print_table(
        "",
        ("probe", "what it measures"),
        [(probe.name, probe.summary) for probe in probes.values()],
        texts=2,
        file_width=_WIDTH,
    )
    for name, own in _by_implementation(probes).items():
        if len(own) < len(probes):
            print(f"by --implementation {name} too: {', '.join(own)}")
    print()
    print_table(
        "",
        ("load", "made with"),
        [(load.name, ", ".join(load.tools) or "–") for load in LOADS.values()],
        texts=2,
        file_width=_WIDTH,
    )
    print("\nparameters of one probe: fastenough list-probes timer")


@click.command()
@click.argument("probe", required=False, shell_complete=probe_names)
@json_option
def command(probe: str | None, as_json: bool) -> None:
    """Name the probes and loads; of one PROBE, its parameters with their units."""
    known = catalogue()
    if probe is not None and probe not in known:
        raise BadInput(f"there is no probe '{probe}'; use one of {', '.join(known)}")
    chosen = known if probe is None else {probe: known[probe]}
    if as_json:
        print_json(
            {"probes": list(chosen.values()), "loads": list(LOADS), "implementations": _by_implementation(known)}
        )
    elif probe is not None:
        _print_probe(known[probe])
    else:
        _print_all(known)
