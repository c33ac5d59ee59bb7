# SPDX-License-Identifier: GPL-2.0-or-later
"""What an audit finds: how one matter stands, why that delays tasks, and what would change it at which price."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """Whether a matter delays tasks, hides delays from measuring, does neither, or cannot be known."""

    COSTS = "costs"
    HIDES = "hides"
    FINE = "fine"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """What is at stake: milliseconds or a delay without bound; tens to hundreds of µs; less, or seldom."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Group(StrEnum):
    """Where in a system a matter belongs; in the order in which they are told."""

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
    """When a change can be made: while the system runs, at its next boot, with another kernel, or not by Linux."""

    NOW = "now"
    BOOT = "at boot"
    BUILD = "by a rebuild"
    OUTSIDE = "outside of Linux"


class Form(StrEnum):
    """What the text of a change is: a kernel variable or a file with its value, arguments, options, or words."""

    SYSCTL = "sysctl"
    FILE = "file"
    BOOT = "boot"
    CONFIG = "config"
    WORDS = "words"


@dataclass(frozen=True)
class Change:
    """One way to change what was found.

    ``text``: ``name=value`` of a sysctl or a file, arguments of the command line or options of the kernel, one after
    the other with blanks between, or words.  ``setting``: name and value of the setting of this program that makes it.
    """

    when: When
    form: Form
    text: str
    setting: tuple[str, str] | None = None

    @property
    def how(self) -> str:
        """What a person does."""
        name, _, value = self.text.partition("=")
        match self.form:
            case Form.SYSCTL:
                return f"sysctl -w {self.text}"
            case Form.FILE:
                return f"echo {value} | tee {name}"
            case Form.BOOT | Form.CONFIG | Form.WORDS:
                return self.text


def sysctl(name: str, value: object, setting: tuple[str, str] | None = None) -> Change:
    return Change(When.NOW, Form.SYSCTL, f"{name}={value}", setting)


def written(path: str, value: object, setting: tuple[str, str] | None = None) -> Change:
    return Change(When.NOW, Form.FILE, f"{path}={value}", setting)


def done(how: str, setting: tuple[str, str] | None = None) -> Change:
    """Something that is done while the system runs."""
    return Change(When.NOW, Form.WORDS, how, setting)


def boot(*arguments: str) -> Change:
    return Change(When.BOOT, Form.BOOT, " ".join(arguments))


def build(*options: str) -> Change:
    return Change(When.BUILD, Form.CONFIG, " ".join(options))


def booted(how: str) -> Change:
    """Something else that takes effect at the next boot."""
    return Change(When.BOOT, Form.WORDS, how)


def outside(how: str) -> Change:
    """Something that Linux cannot change: firmware, host, hardware."""
    return Change(When.OUTSIDE, Form.WORDS, how)


@dataclass(frozen=True)
class Seen:
    """How a matter stands by the facts of one machine.  ``severity``: where it is other than the matter's own."""

    standing: Standing
    text: str
    changes: tuple[Change, ...] = ()
    severity: Severity | None = None


def fine(text: str) -> Seen:
    return Seen(Standing.FINE, text)


def costs(text: str, *changes: Change, severity: Severity | None = None) -> Seen:
    return Seen(Standing.COSTS, text, changes, severity)


def hides(text: str, *changes: Change, severity: Severity | None = None) -> Seen:
    return Seen(Standing.HIDES, text, changes, severity)


def unknown(text: str, *changes: Change) -> Seen:
    return Seen(Standing.UNKNOWN, text, changes)


@dataclass(frozen=True)
class Finding:
    """One matter of one machine, complete.  ``elsewhere``: what changing it costs besides."""

    name: str
    title: str
    group: Group
    standing: Standing
    severity: Severity
    text: str
    why: str
    source: str
    elsewhere: str
    changes: tuple[Change, ...]
