# SPDX-License-Identifier: GPL-2.0-or-later
"""Syntax of OpenMetrics 1.0, and runs as such text: cumulative histograms in seconds, extremes, losses, parameters.

A bucket astride an edge counts above it: no count below an edge is overstated.  An extreme or a sum that the source of
an imported run leaves unknown is left out, and a histogram if its number of values is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fastenough.analysis import merge_samples
from fastenough.analysis.merged import Merged
from fastenough.exchange.rows import SeriesTotal, run_identity, series_totals
from fastenough.recording import Recording

KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""Media type."""
END = "# EOF\n"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_STEPS = (1, 2, 5)
_LEAST_NS = 100
_FAMILIES = (
    ("fastenough_latency_min_seconds", "gauge", "seconds", "Minimum value observed."),
    ("fastenough_latency_max_seconds", "gauge", "seconds", "Maximum value observed: no bound on the worst case."),
)
_COUNTERS = (
    ("fastenough_lost_values", "Values measured but not stored."),
    ("fastenough_missed_activations", "Activations that were due but did not take place."),
)


def labelled(pairs: Mapping[str, object]) -> str:
    """The labels of a sample, in braces."""
    return "{" + ",".join(f'{name}="{str(value).translate(_ESCAPED)}"' for name, value in pairs.items()) + "}"


def family(name: str, kind: str, help_text: str, unit: str = "") -> Iterator[str]:
    """The header of a family."""
    yield f"# TYPE {name} {kind}\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {help_text}\n"


def _of(held: SeriesTotal) -> dict[str, object]:
    pairs: dict[str, object] = {"run": held.recording.run_id, "series": held.series.name}
    pairs |= {
        name: value
        for name, value in (
            ("cpu", held.series.cpu),
            ("bytes", held.series.bytes),
            ("period_ns", held.series.period_ns),
        )
        if value is not None
    }
    return pairs | ({"labels": held.labels} if held.labels else {}) | {"id": held.series.id}


def _edges_ns(greatest_ns: float) -> list[int]:
    """Edges 1, 2, 5, 10 ... from 100 ns to the first one above all values."""
    edges: list[int] = []
    decade = _LEAST_NS
    while not edges or edges[-1] < greatest_ns:
        edges += [decade * step for step in _STEPS]
        decade *= 10
    return edges


def _histogram(held: SeriesTotal, merged: Merged, greatest_ns: float) -> Iterator[str]:
    buckets, labels = held.buckets_ns(), _of(held)
    name = "fastenough_latency_seconds"
    for edge_ns in _edges_ns(greatest_ns):
        within = sum(count for _, high, count in buckets if high <= edge_ns)
        yield f"{name}_bucket{labelled(labels | {'le': repr(edge_ns / 1e9)})} {within}\n"
    yield f"{name}_bucket{labelled(labels | {'le': '+Inf'})} {held.total.total}\n"
    if not (held.mean_known and merged.known.mean):
        return
    yield f"{name}_count{labelled(labels)} {held.total.total}\n"
    yield f"{name}_sum{labelled(labels)} {held.total.sum * held.series.unit_ns / 1e9!r}\n"


def _metrics(recordings: Sequence[Recording]) -> Iterator[str]:
    series = [(held, merge_samples([(held.recording, held.series)])) for held in series_totals(recordings)]
    one_sided = [(held, merged) for held, merged in series if (held.total.minimum or 0) >= 0]
    greatest_ns = max((held.buckets_ns()[-1][1] for held, _ in one_sided if held.total.total), default=0.0)
    yield from family("fastenough_run", "info", "Run parameters.")
    for recording in recordings:
        head, run = recording.head, run_identity(recording.head)
        yield (
            "fastenough_run_info"
            + labelled(
                {
                    **{name: value if value is not None else "unknown" for name, value in run.items()},
                    "outcome": recording.outcome.value if recording.outcome else "cut-off",
                    "marks": " ".join(sorted(head.marks)),
                    "tool": f"{head.tool.name} {head.tool.version}",
                }
            )
            + " 1\n"
        )
    yield from family(
        "fastenough_latency_seconds",
        "histogram",
        "Latencies of a run; omitted for series with negative values.",
        "seconds",
    )
    for held, merged in one_sided:
        if not merged.omitted_count_unknown:
            yield from _histogram(held, merged, greatest_ns)
    for name, kind, unit, help_text in _FAMILIES:
        yield from family(name, kind, help_text, unit)
        for held, merged in series:
            least = "_min_" in name
            value = held.total.minimum if least else held.total.maximum
            if value is not None and (merged.known.minimum if least else merged.known.maximum):
                yield f"{name}{labelled(_of(held))} {value * held.series.unit_ns / 1e9!r}\n"
    for name, help_text in _COUNTERS:
        yield from family(name, "counter", help_text)
        for held, _ in series:
            of = held.recording.lost if "lost" in name else held.recording.missed
            yield f"{name}_total{labelled(_of(held))} {of(held.series.id)}\n"
    yield END


def export(recordings: Sequence[Recording]) -> bytes:
    return "".join(_metrics(recordings)).encode()
