# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings of an audit: the state of one item, the reason why it delays tasks, and changes with their costs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingState(StrEnum):
    """Whether an item delays tasks, hides delays from the measurement, does neither, or is unknown."""

    COSTS = "costs"
    HIDES = "hides"
    FINE = "fine"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """Size of the delay: milliseconds or unbounded; tens to hundreds of µs; less, or rare."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Group(StrEnum):
    """Part of the system that an item belongs to, in order of output."""

    MACHINE = "machine"
    KERNEL = "kernel"
    TIMERS = "clocks and timers"
    POWER = "power"
    INTERRUPTS = "interrupts"
    CPUS = "CPUs"
    SCHEDULING = "scheduling"
    MEMORY = "memory"
    SERVICES = "services"


class When(StrEnum):
    """When a change takes effect: now, at the next boot, with another kernel, or outside of Linux."""

    NOW = "now"
    BOOT = "at boot"
    BUILD = "by a rebuild"
    OUTSIDE = "outside of Linux"


class Form(StrEnum):
    """Form of a change's text: sysctl or file with its value, boot arguments, kernel options, or prose."""

    SYSCTL = "sysctl"
    FILE = "file"
    BOOT = "boot"
    CONFIG = "config"
    PROSE = "prose"


@dataclass(frozen=True)
class Change:
    """One change that removes a finding.

    ``text``: ``name=value`` of a sysctl or a file, boot arguments or kernel options separated by blanks, or prose.
    ``setting``: name and value of the setting of this program that makes the change.
    """

    when: When
    form: Form
    text: str
    setting: tuple[str, str] | None = None

    @property
    def instruction(self) -> str:
        """The command or instruction for a person."""
        name, _, value = self.text.partition("=")
        match self.form:
            case Form.SYSCTL:
                return f"sysctl -w {self.text}"
            case Form.FILE:
                return f"echo {value} | tee {name}"
            case Form.BOOT | Form.CONFIG | Form.PROSE:
                return self.text


def sysctl(name: str, value: object, setting: tuple[str, str] | None = None) -> Change:
    return Change(When.NOW, Form.SYSCTL, f"{name}={value}", setting)


def written(path: str, value: object, setting: tuple[str, str] | None = None) -> Change:
    return Change(When.NOW, Form.FILE, f"{path}={value}", setting)


def done(instruction: str, setting: tuple[str, str] | None = None) -> Change:
    """Return a change made while the system runs, as prose."""
    return Change(When.NOW, Form.PROSE, instruction, setting)


def boot(*arguments: str) -> Change:
    return Change(When.BOOT, Form.BOOT, " ".join(arguments))


def build(*options: str) -> Change:
    return Change(When.BUILD, Form.CONFIG, " ".join(options))


def booted(instruction: str) -> Change:
    """Return another change that takes effect at the next boot."""
    return Change(When.BOOT, Form.PROSE, instruction)


def outside(instruction: str) -> Change:
    """Return a change of firmware, host or hardware."""
    return Change(When.OUTSIDE, Form.PROSE, instruction)


@dataclass(frozen=True)
class CheckOutcome:
    """Result of a check on one machine.  ``severity``: if it differs from the check's own."""

    state: FindingState
    text: str
    changes: tuple[Change, ...] = ()
    severity: Severity | None = None


def fine(text: str) -> CheckOutcome:
    return CheckOutcome(FindingState.FINE, text)


def costs(text: str, *changes: Change, severity: Severity | None = None) -> CheckOutcome:
    return CheckOutcome(FindingState.COSTS, text, changes, severity)


def hides(text: str, *changes: Change, severity: Severity | None = None) -> CheckOutcome:
    return CheckOutcome(FindingState.HIDES, text, changes, severity)


def unknown(text: str, *changes: Change) -> CheckOutcome:
    return CheckOutcome(FindingState.UNKNOWN, text, changes)


@dataclass(frozen=True)
class Finding:
    """A complete finding on one machine.  ``trade_off``: cost of changing it."""

    name: str
    title: str
    group: Group
    state: FindingState
    severity: Severity
    text: str
    reason: str
    source: str
    trade_off: str
    changes: tuple[Change, ...]
