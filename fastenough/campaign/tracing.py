# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel trace of a run: stopped when a value exceeds a threshold, and stored with the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from fastenough.campaign.plan import BREAK, BY_KERNEL
from fastenough.facts.cpu import cpus_of
from fastenough.implementations import Act
from fastenough.link import Link
from fastenough.model import FastenoughError, NotApplicable
from fastenough.recording.content import TRACE_FILE
from fastenough.recording.head import NOT_APPLICABLE, RecordedSetting
from fastenough.settings import difference
from fastenough.settings.tracing import BUFFER_KB, ENTRIES, INSTANCE, LEAST_KB, SWITCH

_SWITCH = "trace-switch"
_MOST_KB = 65536
"""Limit for all CPUs combined."""
_MOST_LINES = 50_000
_MOST_BYTES = 1 << 24
_TIMEOUT_S = 120.0
_READ = """
cd "$1"
[ "$(cat tracing_on)" = 0 ] || exit 0
for cpu in per_cpu/cpu*; do echo "## $cpu"; sed 's/^/## /' "$cpu/stats"; done
tail -n "$2" trace | tail -c "$3"
"""
"""Print the buffer statistics of each CPU, then the end of the trace; nothing if the trace was not stopped."""


class FileWriter(Protocol):
    """The part of a run's writer that stores files beside the recording."""

    def attach(self, name: str, content: bytes) -> None: ...


def kernel_settings(act: Act, link: Link) -> dict[str, str | int]:
    """Return the setting, with its value, by which the kernel traces or measures for this act; empty for most acts."""
    if act.probe == "wakeups":
        comm = act.parameters.get("comm")
        return {"wakeup-histograms": ENTRIES if comm is None else f"{ENTRIES}:{comm}"}
    if act.probe != "timerlat" and BREAK not in act.parameters:
        return {}
    cpus = len(cpus_of(link, "online"))
    return {BY_KERNEL.get(act.probe, "trace"): max(LEAST_KB, min(BUFFER_KB, _MOST_KB // cpus))}


def with_trace(act: Act, made: Sequence[RecordedSetting], tell: Callable[[str], None]) -> Act:
    """The act with what it must know of the instance; without a trace it goes on, and ``tell`` is given the reason.

    Raises NotApplicable if the act is measured by the kernel, and the kernel cannot measure it.
    """
    for setting in made:
        why = difference(setting)
        if setting.name in BY_KERNEL.values():
            if why is not None:
                raise NotApplicable((setting.reason or why).removeprefix(NOT_APPLICABLE))
            return replace(act, parameters={**act.parameters, "instance": INSTANCE})
        if setting.name == "trace" and why is None:
            return replace(act, parameters={**act.parameters, _SWITCH: SWITCH})
        if setting.name == "trace":
            tell(f"no kernel trace is recorded: {setting.reason or why}")
    return act


def store_trace(act: Act, link: Link, writer: FileWriter | None, tell: Callable[[str], None]) -> None:
    """Store the trace with the recording if the act stopped it; ``tell`` gets the reason of a failure."""
    if _SWITCH not in act.parameters or writer is None:
        return
    try:
        read = link.raised.run(["sh", "-c", _READ, "sh", INSTANCE, str(_MOST_LINES), str(_MOST_BYTES)], _TIMEOUT_S)
        if read.status:
            raise FastenoughError(read.stderr.decode(errors="replace").strip() or f"status {read.status}")
        if read.stdout:
            writer.attach(TRACE_FILE, read.stdout)
    except (FastenoughError, OSError) as error:
        tell(f"the kernel trace could not be stored: {error}")
