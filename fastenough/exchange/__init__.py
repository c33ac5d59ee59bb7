# SPDX-License-Identifier: GPL-2.0-or-later
"""Import of other tools' output as recordings, and export of recordings: one file and one line for each format."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from fastenough.exchange.import_lines import recording_lines, require_recordable
from fastenough.exchange.imported import ImportedRun, ImportedSeries, faults
from fastenough.exchange.source import Source, read_source
from fastenough.registry import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastenough.recording import Recording

__all__ = [
    "EXPORTERS",
    "IMPORTERS",
    "ImportedRun",
    "ImportedSeries",
    "Importer",
    "Source",
    "export",
    "read_import",
    "read_source",
    "recording_lines",
]


class Importer(Protocol):
    """``what``: the tools, separated by commas, and after a colon the forms of their files."""

    what: str

    def recognises(self, source: Source) -> bool:
        """Whether the content has this format; fast, and independent of the file name."""
        ...

    def read(self, source: Source) -> ImportedRun | None:
        """The run in the file, None if it holds no measurement; raises BadInput, by :meth:`Source.refuse`, if it is
        incomplete or of another format."""
        ...


IMPORTERS: Sequence[Importer] = listed(
    __name__,
    "IMPORTER",
    (
        "cyclictest",
        "hgrm",
        "hwlatdetect",
        "jitterdebugger",
        "jitterdebugger_samples",
        "latmus",
        "osadl",
        "oslat",
        "perf_sched",
        "probe_histogram",
        "rt_app",
        "rt_dataset",
        "rt_tests_cycles",
        "rt_tests_pairs",
        "rt_tests_text",
        "rteval",
        "rtla",
        "rtla_top",
        "stress_ng",
        "xenomai",
    ),
)

EXPORTERS = {
    "csv": "export_csv",
    "hdrhistogram": "hdrhistogram",
    "json": "export_json",
    "junit": "junit",
    "openmetrics": "openmetrics",
    "parquet": "export_parquet",
}
"""The module with ``export`` by name of the format, imported on demand."""


def export(recordings: Sequence[Recording], form: str) -> bytes:
    """Recordings as a file of one of EXPORTERS; raises BadInput for data that the format does not support."""
    written: bytes = import_module(f"{__name__}.{EXPORTERS[form]}").export(recordings)
    return written


def read_import(source: Source) -> ImportedRun:
    """The run in a file of any known tool; raises BadInput for an unknown format or inconsistent data."""
    source.readable()
    fitting = [importer for importer in IMPORTERS if importer.recognises(source)]
    if not fitting:
        source.refuse(_foreign(source))
    if len(fitting) > 1:
        tools = "; ".join(importer.what for importer in fitting)
        source.refuse(f"it contains the output of several tools ({tools}): split it into one file per tool")
    run = fitting[0].read(source)
    if run is None:
        source.refuse(f"it holds no measurement ({fitting[0].what})")
    fault = next(faults(run), None)
    if fault is not None:
        source.refuse(fault)
    require_recordable(run, source)
    return run


def _foreign(source: Source) -> str:
    """The reason why no importer recognises the file."""
    lines = [line.strip() for line in source.lines if line.strip()]
    if not lines:
        return "it is binary, but not a samples.raw of jitterdebugger"
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return f"it is the error message of a program: {lines[-1][:100]}"
    if lines[-1] in ("Terminated", "Killed", "Aborted", "Segmentation fault", "Interrupted"):
        return f"the tool was stopped ({lines[-1]}) before it wrote its results"
    return "unknown format; docs/exchange.md lists the supported tools"
