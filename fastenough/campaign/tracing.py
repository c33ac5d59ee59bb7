# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel did before a value exceeded a threshold: traced beside the run, frozen there, kept with the run."""

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
"""Of all CPUs together."""
_MOST_LINES = 50_000
_MOST_BYTES = 1 << 24
_TIMEOUT_S = 120.0
_READ = """
cd "$1"
[ "$(cat tracing_on)" = 0 ] || exit 0
for cpu in per_cpu/cpu*; do echo "## $cpu"; sed 's/^/## /' "$cpu/stats"; done
tail -n "$2" trace | tail -c "$3"
"""
"""How far back the buffer of each CPU reaches, and then the end of the trace; nothing where it was not frozen."""


class FileWriter(Protocol):
    """A run's writer, as far as it takes files beside the recording."""

    def attach(self, name: str, content: bytes) -> None: ...


def kernel_settings(act: Act, link: Link) -> dict[str, str | int]:
    """Which setting lets the kernel trace or measure for this act, and what it is asked for; none for most acts."""
    if act.probe == "wakeups":
        comm = act.parameters.get("comm")
        return {"wakeup-histograms": ENTRIES if comm is None else f"{ENTRIES}:{comm}"}
    if act.probe != "timerlat" and BREAK not in act.parameters:
        return {}
    cpus = len(cpus_of(link, "online"))
    return {BY_KERNEL.get(act.probe, "trace"): max(LEAST_KB, min(BUFFER_KB, _MOST_KB // cpus))}


def with_trace(act: Act, made: Sequence[RecordedSetting], tell: Callable[[str], None]) -> Act:
    """The act with what it must know of the instance; without a trace it goes on, and ``tell`` is given the reason.

    Raises NotApplicable for an act in which the kernel measures, and cannot.
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
    """Put the trace beside the recording, where the act turned it off; ``tell`` is given the reason where it cannot."""
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
