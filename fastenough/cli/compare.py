# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough compare``: two runs side by side, with intervals; refuses to mix what may not be mixed."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough.analysis import Comparison, compare, words
from fastenough.cli.output import print_json, print_table
from fastenough.cli.parameters import DURATION, json_option
from fastenough.cli.stores import existing_store, store_option


def _print(comparison: Comparison) -> None:
    first, second = comparison.n
    percent = f"{comparison.confidence * 100:g} %"
    print_table(
        f"\n{comparison.series}: second minus first, n = {words.number(first)} and {words.number(second)}",
        ("quantile", "first", "second", "difference", f"{percent} interval"),
        [(f"{q.quantile * 100:.10g} %", words.latency(q.first_ns), words.latency(q.second_ns),
          words.latency(q.difference_ns), f"{words.latency(q.lower_ns)} to {words.latency(q.upper_ns)}")
         for q in comparison.quantiles],
    )
    print(f"maxima (no interval: a maximum has none): {words.latency(comparison.maxima_ns[0])} and "
          f"{words.latency(comparison.maxima_ns[1])}")
    for rate in comparison.rates:
        print(f"above {words.latency(rate.limit_ns)}: {rate.first[0]} of {words.number(rate.first[1])} and "
              f"{rate.second[0]} of {words.number(rate.second[1])}; difference of rates {rate.difference:.3g} "
              f"({rate.lower:.3g} to {rate.upper:.3g})")


@click.command()
@click.argument("first")
@click.argument("second")
@click.option("--limit", "limits", type=DURATION, multiple=True, help="Compare the rates above this latency too.")
@store_option
@json_option
def command(first: str, second: str, limits: tuple[int, ...], store_path: Path, as_json: bool) -> None:
    """Compare run FIRST with run SECOND."""
    store = existing_store(store_path)
    comparisons = compare(store.load(first), store.load(second), tuple(float(limit) for limit in limits))
    if as_json:
        print_json(comparisons)
        return
    for difference in dict.fromkeys(text for comparison in comparisons for text in comparison.differs):
        print(difference)
    for comparison in comparisons:
        _print(comparison)
