# SPDX-License-Identifier: GPL-2.0-or-later
"""Build and boot options of the compared kernels: table 3 of Brown and Martin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastenough.recording import Recording
from fastenough.report.context import Context
from fastenough.report.document import Column, ReportTable, Section

_CORES = {"CONFIG_XENOMAI": "Xenomai", "CONFIG_EVL": "EVL", "CONFIG_DOVETAIL": "Dovetail", "CONFIG_IPIPE": "I-pipe"}
"""Kernel options of patches with a real-time core, or the base of one."""
_UNKNOWN = "not recorded"


def _label(recording: Recording) -> str:
    """The configuration, and the board if known."""
    head = recording.head
    name = head.configuration.name if head.configuration else ""
    return " on ".join(filter(None, (name or "unnamed configuration", head.board)))


def _fact(recording: Recording, name: str) -> Mapping[str, Any]:
    value: Any = (recording.head.profile or {}).get(name)
    return value if isinstance(value, dict) else {}


def _patches(recording: Recording) -> str:
    """The real-time patches by kernel options; PREEMPT_RT is shown as the preemption model."""
    if not (options := _fact(recording, "kernel_config").get("of_interest")):
        return _UNKNOWN
    return ", ".join(name for option, name in _CORES.items() if options.get(option) in ("y", "m")) or "none"


def _hz(recording: Recording) -> str:
    options = _fact(recording, "kernel_config").get("of_interest")
    return str(options.get("CONFIG_HZ", _UNKNOWN)) if isinstance(options, dict) else _UNKNOWN


def _fact_text(recording: Recording, name: str) -> str:
    """A fact of the recorded configuration, else of the profile."""
    configuration, kernel = recording.head.configuration, _fact(recording, "kernel")
    if name == "command line":
        stated = configuration.command_line if configuration else None
        return str(stated or (recording.head.profile or {}).get("cmdline") or _UNKNOWN)
    if name == "options' SHA-256":
        stated = configuration.kernel_config_sha256 if configuration else None
        return str(stated or _fact(recording, "kernel_config").get("sha256") or _UNKNOWN)[:16]
    if name == "release":
        stated = configuration.kernel_release if configuration else None
        return str(stated or kernel.get("release") or _UNKNOWN)
    return str(kernel.get(name) or _UNKNOWN)


def _row(name: str, kernels: Sequence[Recording]) -> list[str]:
    text_of = {"real-time core": _patches, "timer frequency [Hz]": _hz}.get(name)
    return [name, *(text_of(recording) if text_of else _fact_text(recording, name) for recording in kernels)]


_ROWS = (
    "release",
    "version",
    "preemption",
    "real-time core",
    "timer frequency [Hz]",
    "command line",
    "options' SHA-256",
)


def section(context: Context) -> Section | None:
    """None if all runs used one kernel."""
    kernels: dict[str, Recording] = {}
    for group in context.groups:
        for recording in group.recordings:
            kernels.setdefault(_label(recording), recording)
    if len(kernels) < 2:
        return None
    columns = [Column("kernel", numeric=False), *(Column(label, numeric=False) for label in kernels)]
    rows = [row for name in _ROWS if set((row := _row(name, list(kernels.values())))[1:]) != {_UNKNOWN}]
    return Section(
        "kernels",
        "Kernels compared",
        "Build and boot options of each kernel, recorded with the first run of each configuration.",
        [ReportTable("kernels", "Kernel configurations", columns, rows)],
    )
