# SPDX-License-Identifier: GPL-2.0-or-later
"""The culprit of an event of the monitor in words: who waited for whom, what came in between, what the CPU was doing.

A culprit is a flat object of plain values (docs/monitor.md names its keys).  Others may have written it: a value of
another type than the key promises is told as it stands, and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastenough import words
from fastenough.recording.head import Plain

Culprit = Mapping[str, Plain]

_TAKERS = (("interrupt", "interrupt"), ("softirq", "soft-IRQ"))
"""What takes a CPU for a time that is known (the key with ``_ns``): the key of who it was, and what it is called."""
_LEAST_SHARE = 0.5
"""Of a delay: what took less of it is not to blame for it."""
_IDLE = "swapper"
_INSIDE = " < "
_TRACING = ("bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "trace_event_")
UNKNOWN = "not known"


def whole(culprit: Culprit, name: str) -> int | None:
    """An integer of the culprit's; None where it has none of that name."""
    value = culprit.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(culprit: Culprit, name: str) -> str:
    """On one line: a task is called what whoever started it likes, line ends and all."""
    value = culprit.get(name)
    return "" if value is None else "".join(letter if letter.isprintable() else "\ufffd" for letter in str(value))


def _task(culprit: Culprit, which: str) -> str:
    """A task by name, with its process, policy and priority as far as they are known; empty where it is not named."""
    name = _text(culprit, which)
    if not name:
        return ""
    if is_idle(culprit, which):
        return "the idle CPU"
    pid = _text(culprit, f"{which}_pid")
    policy = " ".join(filter(None, (_text(culprit, f"{which}_policy"), _text(culprit, f"{which}_priority"))))
    known = ", ".join(filter(None, (f"pid {pid}" if pid else "", policy)))
    return f"{name} ({known})" if known else name


def is_idle(culprit: Culprit, which: str = "waited_for") -> bool:
    """Whether that task is the one a CPU runs when it has nothing to do."""
    return _text(culprit, which).startswith(_IDLE) and whole(culprit, f"{which}_pid") in (None, 0)


def _is_itself(culprit: Culprit) -> bool:
    """Whether a task waited for nobody else: it was not done when its next timer was due."""
    pid = whole(culprit, "task_pid")
    return pid is not None and pid == whole(culprit, "waited_for_pid")


def _stack(culprit: Culprit) -> str:
    """The kernel's functions, innermost first, without those of the tracing itself."""
    names = _text(culprit, "stack").split(_INSIDE)
    own = next((place for place, name in enumerate(names) if not name.startswith(_TRACING)), 0)
    return _INSIDE.join(names[own:])


def _who(culprit: Culprit) -> str:
    delayed, before = _task(culprit, "task"), _task(culprit, "waited_for")
    if delayed and _is_itself(culprit):
        return f"{delayed} was still running its previous cycle"
    if delayed and before:
        return f"{delayed} waited for {before}"
    return f"{delayed} was delayed" if delayed else f"waited for {before}" if before else ""


def _took(culprit: Culprit, name: str, called: str) -> str:
    which, ns = _text(culprit, name), whole(culprit, f"{name}_ns")
    if not which and not ns:
        return ""
    took = f" took {words.latency(ns)}" if ns else ""
    return f"{called} {which}".rstrip() + took


def _cpu(culprit: Culprit) -> list[str]:
    """What the CPU was doing, or had done to it."""
    vector, khz, idle = (_text(culprit, name) for name in ("last_vector", "frequency_khz", "idle_state"))
    frequency = whole(culprit, "frequency_khz")
    return [
        f"last vector {vector}" if vector else "",
        f"left idle state {idle}" if idle else "",
        f"at {frequency / 1000:,.0f} MHz" if frequency else f"at {khz} kHz" if khz and frequency is None else "",
        *_meanwhile(culprit),
    ]


def _meanwhile(culprit: Culprit) -> list[str]:
    """What is counted for whole intervals only: perhaps it was this delay, and nobody is blamed for a perhaps."""
    steal_ns, smi = whole(culprit, "interval_steal_ns"), whole(culprit, "interval_smi")
    return [
        f"the hypervisor took {words.duration(steal_ns)} of the CPUs in this interval" if steal_ns else "",
        f"{words.counted(smi, 'SMI')} in this interval" if smi else "",
    ]


NAMED_KEYS = frozenset(
    {
        *(f"{which}{what}" for which in ("task", "waited_for") for what in ("", "_pid", "_policy", "_priority")),
        "interrupt",
        "interrupt_ns",
        "softirq",
        "softirq_ns",
        "last_vector",
        "frequency_khz",
        "idle_state",
        "interval_steal_ns",
        "interval_smi",
        "stack",
    }
)
"""The keys that are told in words of their own."""


def culprit_words(culprit: Culprit) -> str:
    """One line for people; the times of the stations are left to whoever draws them."""
    stack = _stack(culprit)
    rest = [
        f"{name} {value}"
        for name, value in culprit.items()
        if name not in NAMED_KEYS and not name.endswith("_ns") and value is not None
    ]
    parts = [
        _who(culprit),
        *(_took(culprit, name, called) for name, called in _TAKERS),
        *_cpu(culprit),
        *rest,
        f"in {stack}" if stack else "",
    ]
    return "; ".join(part for part in parts if part)


def blamed(culprit: Culprit, delay_ns: float) -> str:
    """Who is to blame for a delay: what is known to have taken half of it or more, else the task that was running, else
    the idle state that was left, where the CPU was idle and that was waited for."""
    taken = [
        (taken_ns, name, called)
        for name, called in _TAKERS
        if (taken_ns := whole(culprit, f"{name}_ns")) and taken_ns >= _LEAST_SHARE * delay_ns
    ]
    if taken:
        _, name, called = max(taken)
        return f"{called} {_text(culprit, name)}".rstrip()
    if _is_itself(culprit):
        return "the task itself (overrun)"
    if _text(culprit, "waited_for") and not is_idle(culprit):
        return f"task {_text(culprit, 'waited_for')}"
    if not is_idle(culprit):
        return UNKNOWN
    idle = _text(culprit, "idle_state")
    return f"idle state {idle}" if idle else "the idle CPU"
