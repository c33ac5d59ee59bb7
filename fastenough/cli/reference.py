# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough reference``: published systems, with sources, figures and computed values."""

from __future__ import annotations

from collections.abc import Sequence

import click

from fastenough.cli.commands import Command
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, print_table, say
from fastenough.reference import NAMES, Reference, claims_of, find_reference
from fastenough.reference.columns import columns_of
from fastenough.reference.figures import Figure
from fastenough.report.source_tables import maxima_by_kernel

_FREQUENCIES = (
    "Frequencies: the highest at which the latency (jitter) is at most half the period, 1/(2 L), computed "
    "from 95 % and 100 % and rounded down"
)
_SPARE = ("in the source", "duration", "n")
"""Columns that a narrow terminal omits."""


def _list() -> None:
    references = [find_reference(name) for name in NAMES]
    print_table(
        "",
        ("name", "system", "source", "figures"),
        [(reference.name, reference.title, reference.source, str(len(reference.figures))) for reference in references],
        texts=3,
    )
    print()
    say(f"fastenough reference {NAMES[0]} shows one; fastenough report --beside {NAMES[0]} shows it beside your runs")


def _print(reference: Reference) -> None:
    say(reference.title)
    for name, text in (
        ("source", reference.source),
        ("machine", reference.machine),
        ("measured", reference.conditions),
        ("instrument", reference.instrument),
        *(("note", note) for note in reference.notes),
    ):
        say(f"{name}: {text}", "  ")
    _print_figures([figure for figure in reference.figures if not figure.size])
    _print_figures([figure for figure in reference.figures if figure.size])
    _print_maxima(reference)


def _print_figures(figures: Sequence[Figure]) -> None:
    if not figures:
        return
    columns = columns_of(figures)
    titles = [column.title for column in columns]
    texts = [column.numeric for column in columns].index(True)
    print()
    rows = [[column.written(column.of(figure)) for column in columns] for figure in figures]
    print_table("", titles, rows, texts, spare=_SPARE)
    if any("frequency" in title for title in titles):
        say(_FREQUENCIES)


def _print_maxima(reference: Reference) -> None:
    """Print the maxima by board and kernel, if several boards ran the same test on several kernels."""
    tables = maxima_by_kernel("maxima", "Maximum response by board and kernel", reference.of("response"))
    for table in tables:
        print()
        print_table(
            table.caption,
            [column.title for column in table.columns],
            [[cell.text for cell in table.cells(row)] for row in table.rows],
            1,
        )


def _print_claims(reference: Reference) -> None:
    claims = claims_of(reference.name)
    if claims:
        print()
        say("Statements of the source, and the values computed from its figures")
    for claim in claims:
        mark, why = ("differs", f" ({claim.difference})") if claim.difference else ("agrees", "")
        say(f"{mark}: {claim.text}. Computed: {claim.computed_text(reference)}{why}", "  ")


@click.command(cls=Command, example="fastenough reference beagleboard")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Show published reference systems.

    Lists the systems; with NAME shows one with its source, figures and computed values.  They give a scale; they are
    not evidence about your machine.
    """
    if name is None:
        if as_json:
            print_json(list(map(find_reference, NAMES)))
        else:
            _list()
        return
    reference = find_reference(name)
    if as_json:
        claims = [{"claim": claim, "computed": claim.computed_text(reference)} for claim in claims_of(name)]
        print_json({"reference": reference, "claims": claims})
        return
    _print(reference)
    _print_claims(reference)
