# SPDX-License-Identifier: GPL-2.0-or-later
"""The culprit of an event of the monitor as text: the waiting task, the blocking task, interrupts, and CPU state.

A culprit is a flat object of plain values (docs/monitor.md names its keys).  Others may have written it: a value of
another type than the key requires is printed as it is and otherwise ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastenough import words
from fastenough.recording.head import Plain

Culprit = Mapping[str, Plain]

_TAKERS = (("interrupt", "interrupt"), ("softirq", "soft-IRQ"))
"""Users of a CPU whose time is known (the key with ``_ns``): key and printed name."""
_LEAST_SHARE = 0.5
"""Share of a delay from which on a user of the CPU is its cause."""
_IDLE = "swapper"
_INSIDE = " < "
_TRACING = ("bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "trace_event_")
UNKNOWN = "not known"
TIMER_INTERRUPT = "the timer interrupt"
_TASK = "task "
_KERNEL_WORKER = re.compile(r"kworker/(u?)\d+:\d+(H?)(?:[-+](.+))?", re.ASCII)
"""Bound to a CPU or unbound, of high priority, and the work queue, which only some sources of names state."""
_INTERRUPT_THREAD = re.compile(r"irq/\d+-(.+)", re.ASCII)
_THREAD_OF_CPU = re.compile(
    "(backlog_napi|cpuhp|idle_inject|irq|irq_work|ksoftirqd|ktimers|migration|posixcputmr|rcu[bcu]|rcuo[bgps]|watchdog)"
    r"/\d+",
    re.ASCII,
)
"""The kernel's own: an application may number its threads in the same way, and they do different work."""


def integer_of(culprit: Culprit, name: str) -> int | None:
    """The integer of a key; None if there is none."""
    value = culprit.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(culprit: Culprit, name: str) -> str:
    """The value of a key on one line: names of tasks may contain any character."""
    value = culprit.get(name)
    return "" if value is None else "".join(letter if letter.isprintable() else "\ufffd" for letter in str(value))


def _task(culprit: Culprit, role: str) -> str:
    """Name of a task with pid, policy and priority as far as known; empty without a name."""
    name = _text(culprit, role)
    if not name:
        return ""
    if is_idle(culprit, role):
        return "the idle CPU"
    pid = _text(culprit, f"{role}_pid")
    policy = " ".join(filter(None, (_text(culprit, f"{role}_policy"), _text(culprit, f"{role}_priority"))))
    details = ", ".join(filter(None, (f"pid {pid}" if pid else "", policy)))
    return f"{name} ({details})" if details else name


def is_idle(culprit: Culprit, role: str = "waited_for") -> bool:
    """Whether that task is the idle task of a CPU."""
    return _text(culprit, role).startswith(_IDLE) and integer_of(culprit, f"{role}_pid") in (None, 0)


def _is_itself(culprit: Culprit) -> bool:
    """Whether the task was still running its previous cycle when its next timer was due."""
    pid = integer_of(culprit, "task_pid")
    return pid is not None and pid == integer_of(culprit, "waited_for_pid")


def _stack(culprit: Culprit) -> str:
    """Kernel functions, innermost first, without those of the tracing itself."""
    names = _text(culprit, "stack").split(_INSIDE)
    first = next((place for place, name in enumerate(names) if not name.startswith(_TRACING)), 0)
    return _INSIDE.join(names[first:])


def _tasks(culprit: Culprit) -> str:
    delayed, before = _task(culprit, "task"), _task(culprit, "waited_for")
    if delayed and _is_itself(culprit):
        return f"{delayed} was still running its previous cycle"
    if delayed and before:
        return f"{delayed} waited for {before}"
    return f"{delayed} was delayed" if delayed else f"waited for {before}" if before else ""


def _took(culprit: Culprit, name: str, called: str) -> str:
    kind, ns = _text(culprit, name), integer_of(culprit, f"{name}_ns")
    if not kind and not ns:
        return ""
    took = f" took {words.latency(ns)}" if ns else ""
    return f"{called} {kind}".rstrip() + took


def _cpu(culprit: Culprit) -> list[str]:
    """State of the CPU: last vector, idle state, frequency, stolen time, SMIs."""
    vector, khz, idle = (_text(culprit, name) for name in ("last_vector", "frequency_khz", "idle_state"))
    frequency = integer_of(culprit, "frequency_khz")
    return [
        f"last vector {vector}" if vector else "",
        f"left idle state {idle}" if idle else "",
        f"at {frequency / 1000:,.0f} MHz" if frequency else f"at {khz} kHz" if khz and frequency is None else "",
        *_meanwhile(culprit),
    ]


def _meanwhile(culprit: Culprit) -> list[str]:
    """Counters of the whole interval: they may concern another delay, so they are never the cause."""
    steal_ns, smi = integer_of(culprit, "interval_steal_ns"), integer_of(culprit, "interval_smi")
    return [
        f"the hypervisor took {words.duration(steal_ns)} of the CPUs in this interval" if steal_ns else "",
        f"{words.counted(smi, 'SMI')} in this interval" if smi else "",
    ]


NAMED_KEYS = frozenset(
    {
        *(f"{role}{suffix}" for role in ("task", "waited_for") for suffix in ("", "_pid", "_policy", "_priority")),
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
"""Keys with a text of their own."""


def culprit_text(culprit: Culprit) -> str:
    """One line of text; the times of the stations are omitted."""
    stack = _stack(culprit)
    others = [
        f"{name} {value}"
        for name, value in culprit.items()
        if name not in NAMED_KEYS and not name.endswith("_ns") and value is not None
    ]
    phrases = [
        _tasks(culprit),
        *(_took(culprit, name, called) for name, called in _TAKERS),
        *_cpu(culprit),
        *others,
        f"in {stack}" if stack else "",
    ]
    return "; ".join(part for part in phrases if part)


def cause_of_delay(culprit: Culprit, delay_ns: float, *, in_timer_interrupt: bool = False) -> str:
    """The cause of a delay: a user of the CPU that took half of it or more, else the task that was running, else
    the idle state that was left if the CPU was idle.  The times of users are those of the whole wake-up.

    ``in_timer_interrupt``: the delay is between a timer's interrupt and the waking of its task, and the task
    waited for no other task.
    """
    users = [
        (took_ns, name, called)
        for name, called in _TAKERS
        if (took_ns := integer_of(culprit, f"{name}_ns")) and took_ns >= _LEAST_SHARE * delay_ns
    ]
    if users:
        _, name, called = max(users)
        return f"{called} {_text(culprit, name)}".rstrip()
    if in_timer_interrupt:
        return TIMER_INTERRUPT
    if _is_itself(culprit):
        return "the task itself (overrun)"
    if _text(culprit, "waited_for") and not is_idle(culprit):
        return f"{_TASK}{_text(culprit, 'waited_for')}"
    if not is_idle(culprit):
        return UNKNOWN
    idle = _text(culprit, "idle_state")
    return f"idle state {idle}" if idle else "the idle CPU"


def general_cause(cause: str) -> str:
    """A cause of `cause_of_delay` without the numbers of CPUs, kernel workers and interrupts, which differ by board.

    For example ``task kworker/*``, ``task kworker/u*-events``, ``task ksoftirqd/*`` or ``task irq/*-eth0``.
    """
    if not cause.startswith(_TASK):
        return cause
    name = cause.removeprefix(_TASK)
    if worker := _KERNEL_WORKER.fullmatch(name):
        unbound, high, queue = worker.groups()
        name = f"kworker/{unbound}*{high}" + (f"-{queue}" if queue else "")
    elif thread := _INTERRUPT_THREAD.fullmatch(name):
        name = f"irq/*-{thread[1]}"
    elif thread := _THREAD_OF_CPU.fullmatch(name):
        name = f"{thread[1]}/*"
    return f"{_TASK}{name}"
