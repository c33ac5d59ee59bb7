# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs as one JSON document: head and end of each recording, and every series with its numbers and buckets in ns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from fastenough.analysis import measure, merge_samples
from fastenough.exchange.rows import SERIES_COLUMNS, SeriesTotal, known_duration_ns, series_totals
from fastenough.recording import Recording
from fastenough.recording.building import end_line, head_line


def _series(held: SeriesTotal) -> Mapping[str, object]:
    identity = dict(zip(SERIES_COLUMNS, held.identity, strict=True))
    merged = merge_samples([(held.recording, held.series)])
    measures = measure(merged)
    return {
        "name": identity.pop("series"),
        **identity,
        "labels": held.series.labels,
        "count": None if merged.omitted_count_unknown else measures.n,
        "lost": measures.lost,
        "missed": measures.missed,
        "min_ns": measures.minimum_ns,
        "max_ns": measures.maximum_ns,
        "mean_ns": measures.mean_ns,
        "quantiles": [
            {
                "quantile": quantile.quantile,
                "ns": quantile.value_ns,
                "at_least_ns": quantile.at_least_ns,
                "lower_ns": quantile.lower_ns,
                "upper_ns": quantile.upper_ns,
                "reason": quantile.reason,
            }
            for quantile in measures.quantiles
        ],
        "buckets": [{"least_ns": low, "greatest_ns": high, "count": count} for low, high, count in held.buckets_ns()],
    }


def export(recordings: Sequence[Recording]) -> bytes:
    document = {
        "runs": [
            {
                "id": recording.run_id,
                "head": head_line(recording.head),
                "end": None if recording.end is None else end_line(recording.end),
                "cut_off": recording.cut_off,
                "duration_ns": known_duration_ns(recording),
                "series": [_series(held) for held in series_totals([recording])],
            }
            for recording in recordings
        ]
    }
    return json.dumps(document, indent=1).encode() + b"\n"
