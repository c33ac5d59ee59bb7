# SPDX-License-Identifier: GPL-2.0-or-later
"""What was measured here, as if it were published: the same tables and figures are made of both."""

from __future__ import annotations

from fastenough.analysis import words
from fastenough.reference import Figure
from fastenough.report.context import Group, Kind, configuration_word


def own_figure(group: Group, kind: Kind) -> Figure:
    """All CPUs together."""
    head, measures = group.recordings[0].head, kind.measures
    return Figure(
        probe=head.probe,
        board=head.board or "",
        configuration=configuration_word(group.recordings[0]),
        kernel="",
        implementation=head.implementation,
        variant=str(head.parameters.get("method") or kind.name),
        load=group.load,
        command="",
        n=measures.n,
        duration=words.measured_time(measures.duration_ns),
        minimum_ns=measures.minimum_ns,
        mean_ns=measures.mean_ns,
        median_ns=measures.quantile(0.5).value_ns,
        p95_ns=measures.quantile(0.95).value_ns,
        maximum_ns=measures.maximum_ns,
        beyond=False,
        printed_95_khz=None,
        printed_100_khz=None,
        transfer="",
        size="",
        speed_mb_s=None,
        said="",
        place="",
    )
