# SPDX-License-Identifier: GPL-2.0-or-later
"""The published figures are whole, and what their sources say follows from them again, or is known not to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import highest_frequency_hz, judge
from fastenough.model import BadInput
from fastenough.reference import NAMES, Claim, claims_of, find_reference
from fastenough.reference.figures import Figure
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable
from fastenough.report.sections import beside
from tests.support.cli_calls import command_line
from tests.support.recordings import Plan, recording

BEAGLEBOARD = find_reference("beagleboard")
CLAIMS = [claim for name in NAMES for claim in claims_of(name)]


def frequencies(figure: Figure) -> list[tuple[float | None, float | None]]:
    """(printed, computed) in kHz, at 95 % and at 100 %."""
    return [
        (printed, None if printed is None else (highest_frequency_hz(latency_ns) or 0.0) / 1e3)
        for printed, latency_ns in ((figure.printed_95_khz, figure.p95_ns), (figure.printed_100_khz, figure.maximum_ns))
    ]


def test_every_figure_of_the_sources_is_there() -> None:
    counted = {name: len(find_reference(name).figures) for name in NAMES}
    assert counted == {"beagleboard": 16, "p2041": 24, "at91sam": 21, "rtlinux": 41, "osadl": 39}
    assert [len(BEAGLEBOARD.of(probe)) for probe in BEAGLEBOARD.probes] == [8, 8]
    for name in NAMES:
        reference = find_reference(name)
        assert all((reference.title, reference.source, reference.machine, reference.conditions, reference.instrument))
        assert all(
            one.board and one.probe and (one.maximum_ns or one.speed_mb_s or one.text) for one in reference.figures
        )


def test_all_published_frequencies_come_out_again() -> None:
    found = [pair for figure in BEAGLEBOARD.figures for pair in frequencies(figure) if pair[0] is not None]
    assert len(found) == 24
    assert [printed for printed, _ in found] == [round(computed, 2) for _, computed in found if computed is not None]


def test_times_are_in_nanoseconds_whatever_their_source_prints() -> None:
    (response,) = BEAGLEBOARD.matching("response stock linux-user")
    (switch,) = find_reference("rtlinux").of("switch")
    assert (response.median_ns, response.p95_ns, response.maximum_ns) == (67_000, 307_000, 17_227_000)
    assert (switch.minimum_ns, switch.mean_ns, switch.maximum_ns) == (7744, 8194, 10304)
    early = [one.minimum_ns for one in find_reference("at91sam").figures if one.minimum_ns and one.minimum_ns < 0]
    assert early == [-3835]


def test_what_an_oscilloscope_could_not_see_is_no_maximum() -> None:
    beyond = [one for one in find_reference("at91sam").figures if one.exceeds_range]
    assert [(one.maximum_ns, "without PREEMPT" in one.configuration) for one in beyond] == [(30_000_000, True)] * 2


def test_methods_are_named_by_what_the_options_do() -> None:
    methods = {
        one.command.split(" -a -t")[1]: one.variant
        for one in find_reference("at91sam").of("timer")
        if one.command.startswith("cyclictest")
    }
    assert methods == {
        " -n -p99": "clock_nanosleep-abs",
        " -p99": "posix-timer",
        " -s -n -p99": "nanosleep",
        " -s -p99": "setitimer",
    }


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text)
def test_what_the_texts_claim_comes_out_or_is_known_to_differ(claim: Claim) -> None:
    reference = find_reference(claim.reference)
    assert claim.holds(reference) is not bool(claim.difference), claim.computed_text(reference)


def test_most_of_what_the_texts_claim_comes_out() -> None:
    assert len(CLAIMS) == 59
    assert sum(bool(claim.difference) for claim in CLAIMS) == 11


def test_the_texts_conclusions_about_rows_come_out() -> None:
    maxima = {
        probe: {(one.configuration, one.implementation): one.maximum_ns or 0.0 for one in BEAGLEBOARD.of(probe)}
        for probe in BEAGLEBOARD.probes
    }
    for of_probe in maxima.values():
        xenomai = of_probe["xenomai", "xenomai-user"]
        for implementation in ("linux-user", "linux-kernel"):
            assert of_probe["rt", implementation] == min(
                ns for (_, other), ns in of_probe.items() if other == implementation
            )
            assert min(of_probe["stock", implementation], of_probe["rt", implementation]) > xenomai
    ratios = [
        ns / of_probe["xenomai", "xenomai-user"]
        for of_probe in maxima.values()
        for (kernel, implementation), ns in of_probe.items()
        if kernel != "xenomai" and implementation.startswith("linux")
    ]
    assert sum(ratio >= 5 for ratio in ratios) > len(ratios) / 2  # "in most cases by factors of 5 or more"
    modules = {
        one.configuration: one
        for one in BEAGLEBOARD.of("response")
        if one.implementation == ("xenomai-kernel" if one.configuration == "xenomai" else "linux-kernel")
    }
    linux, xenomai_module = modules["stock"], modules["xenomai"]
    assert (linux.p95_ns or 0) < (xenomai_module.p95_ns or 0)  # "outperform the Xenomai kernel on a 95% basis ...
    assert (linux.maximum_ns or 0) > (xenomai_module.maximum_ns or 0)  # ... the converse is true on a 100%-basis"
    blocks = [one for one in find_reference("rtlinux").of("fifo") if one.transfer == "1MB" and one.speed_mb_s]
    assert max(blocks, key=lambda one: one.speed_mb_s or 0.0).size == "8KB"


def test_an_unknown_one_is_named_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="no reference system is called 'beagle'; there are beagleboard, p2041"):
        find_reference("beagle")


def test_a_published_system_stands_beside_ones_own_runs(tmp_path: Path) -> None:
    """In the same columns; the figures of other probes do not."""
    own = recording(tmp_path, Plan([[np.full(3000, 40_000)]], views=("response",), head={"probe": "response"}))
    section = beside.section(make_context([own], judge([own]), [BEAGLEBOARD, find_reference("p2041")]))
    assert section is not None and "p2041" in section.lead
    (table,) = section.leaves()
    assert isinstance(table, ReportTable)
    rows = [dict(zip([column.title for column in table.columns], row, strict=True)) for row in table.rows]
    assert [row["source"] for row in rows] == ["yours", *["published"] * 8]
    assert [row["95 % frequency [kHz]"] for row in rows[:2]] == [
        pytest.approx(12_500, rel=0.01),
        pytest.approx(1628.66, abs=0.01),
    ]
    assert (rows[0]["n"], rows[1]["n"], rows[1]["100 % [µs]"]) == (3000, 1_840_823, 17_227_000)
    assert beside.section(make_context([own], judge([own]))) is None


@pytest.mark.check
def test_the_command_shows_figures_source_and_claims(tmp_path: Path) -> None:
    listed = command_line("reference", cwd=tmp_path)
    assert listed.returncode == 0 and all(name in listed.stdout for name in NAMES)
    shown = command_line("reference", "beagleboard", cwd=tmp_path)
    assert shown.returncode == 0
    assert "source: J. H. Brown, B. Martin" in shown.stdout and "17,227" in shown.stdout
    assert "17 % less with PREEMPT_RT than stock. Computed: 31.9 % less" in shown.stdout
    document = json.loads(command_line("reference", "at91sam", "--json", cwd=tmp_path).stdout)
    assert len(document["reference"]["figures"]) == 21
    unknown = command_line("reference", "beagle", cwd=tmp_path)
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)
