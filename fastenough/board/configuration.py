# SPDX-License-Identifier: GPL-2.0-or-later
"""Configuration changes of boards that do not boot their configurations themselves: by a reboot, or by a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from fastenough.board.base import AS_BOOTED, Board, Booted, name_fault
from fastenough.link import BoardGone, Link
from fastenough.model import BadInput, Configuration, FastenoughError
from fastenough.settings import default_journal, locked
from fastenough.words import output_lines

Ask = Callable[[str, str, str], None]
"""Ask a person to boot a configuration, and return when it is booted.  Arguments: name of the board, configuration, and
why the running system is not that configuration (empty at first).  Raises BadInput without a terminal."""

Sleep = Callable[[float], bool]
"""Sleep for a number of seconds, or until a stop is requested; return whether it is."""

SystemParts = Mapping[str, str | None]
"""What was booted, by the names of its parts; None: unknown."""
_RELEASE, _VERSION, _BUILD_ID = "kernel", "kernel version", "kernel build ID"

BOOT_S = 300.0
_RETRY_S = 1.0
_SELECT_S = 120.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_AS_ROOT = ("sh", "-c", 'PATH="$PATH:/sbin:/usr/sbin"; exec "$@"', "sh")


@dataclass(frozen=True)
class ConfigurationChange:
    """How a board is changed to a configuration.

    ``select``: command that selects the configuration for the next boot; empty: a person boots it.  ``kernel``: pattern
    of the output of ``uname -r``; if it is empty, the release, build, configuration or command line of the kernel must
    differ from those of the board's other configurations.
    """

    select: tuple[str, ...] = ()
    kernel: str = ""


@dataclass
class SwitchableBoard:
    """A board that is changed to each configuration before use.

    ``seen``: parts of the systems that were booted so far, by configuration, including those of an earlier part of the
    campaign; ``boot_s``: time limit until the board can be reached again.
    """

    board: Board
    changes: Mapping[str, ConfigurationChange]
    ask: Ask
    sleep: Sleep
    seen: dict[str, SystemParts] = field(default_factory=dict)
    boot_s: float = BOOT_S

    @property
    def name(self) -> str:
        return self.board.name

    def configurations(self) -> tuple[str, ...]:
        return tuple(self.changes)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        """Change to the configuration; raise FastenoughError if another one was booted.

        A person who booted another one is asked again, with the reason.
        """
        change, mismatch = self.changes[configuration], ""
        while True:
            with ExitStack() as stack:
                booted = self._boot(configuration, change, mismatch, stack)
                mismatch = self._mismatch(configuration, change, booted)
                if not mismatch:
                    self.seen[configuration] = system_parts(booted.configuration, booted.kernel)
                    yield booted
                    return
            if change.select:
                raise FastenoughError(mismatch)

    def _boot(self, configuration: str, change: ConfigurationChange, mismatch: str, stack: ExitStack) -> Booted:
        """Return the board after its reboot, or after a person has booted it."""
        old_boot_id = None
        if change.select:
            old_boot_id = self._reboot(change.select)
        else:
            self.ask(self.name, configuration, mismatch)
        return self._up(configuration, old_boot_id, stack)

    def _reboot(self, select: Sequence[str]) -> str:
        """Select the next boot and reboot; return the id of the boot that ends.

        Raise BoardBusy while another bench measures on the board.
        """
        with self.board.boot(AS_BOOTED) as booted, locked(default_journal(booted.link)):
            link = booted.link.raised
            old_boot_id = _boot_id(link)
            selected = link.run([*_AS_ROOT, *select], _SELECT_S)
            if selected.status:
                lines = output_lines(selected.stderr) or output_lines(selected.stdout) or [f"status {selected.status}"]
                raise FastenoughError(f"{self.name}: {' '.join(select)} failed: {lines[-1]}")
            with suppress(FastenoughError):  # the board may be gone before it answers
                link.run([*_AS_ROOT, "reboot"])
        return old_boot_id

    def _up(self, configuration: str, old_boot_id: str | None, stack: ExitStack) -> Booted:
        """Return the board once it can be reached, in a boot other than ``old_boot_id``.

        Raise BoardGone after ``boot_s``, KeyboardInterrupt when a stop is requested.
        """
        deadline_mono_s, reason = time.monotonic() + self.boot_s, ""
        while True:
            with ExitStack() as attempt:
                try:
                    booted = attempt.enter_context(self.board.boot(AS_BOOTED))
                    if old_boot_id is None or _boot_id(booted.link) != old_boot_id:
                        stack.push(attempt.pop_all())
                        return replace(booted, configuration=replace(booted.configuration, name=configuration))
                    reason = "it has not shut down"
                except BoardGone as error:
                    reason = str(error)
            if time.monotonic() > deadline_mono_s:
                raise BoardGone(f"{self.name} has not come up in {configuration} within {self.boot_s:g} s: {reason}")
            if self.sleep(_RETRY_S):
                raise KeyboardInterrupt

    def _mismatch(self, configuration: str, change: ConfigurationChange, booted: Booted) -> str:
        """Return why the running system is not that configuration; empty if it can be."""
        running = booted.configuration
        runs = f"{self.name} runs {running.kernel_release}"
        # selecting again would boot the same system, so only its release is compared: the campaign refuses the rest
        parts = system_parts(running, booted.kernel)
        compared = {_RELEASE: parts[_RELEASE]} if change.select else parts
        changed = first_change(compared, self.seen.get(configuration, parts))
        if changed is not None:
            name, now, earlier = changed
            return (
                f"{self.name} has the {name} {now}, but the kept runs in {configuration} used {earlier}; boot that, or "
                "start a new campaign"
            )
        if change.kernel:
            fits = fnmatchcase(running.kernel_release or "", change.kernel)
            return "" if fits else f"{runs}, but {configuration} requires {change.kernel}"
        equal = (name for name, seen in self.seen.items() if _may_be_one_system(seen, parts))
        same_as = next((name for name in equal if name != configuration), None)
        if same_as is None:
            fault = name_fault(booted.kernel, configuration)
            return f'{fault}; boot the right kernel, or set kernel = "*"' if fault else ""
        return (
            f"{runs} with the same build, kernel configuration and command line as "
            f'{same_as} (if that is intended, write kernel = "*" for {configuration} in the plan)'
        )


def _boot_id(link: Link) -> str:
    try:
        return link.read(_BOOT_ID).decode(errors="replace").strip()
    except OSError as error:
        raise FastenoughError(f"{link.name}: cannot read {_BOOT_ID}: {error.strerror}") from error


def system_parts(configuration: Configuration, kernel: Mapping[str, Any]) -> SystemParts:
    """Return the parts of a booted system; ``kernel``: the fact of that name, empty if unknown.

    Version and build ID may change while the release does not.
    """
    return {
        _RELEASE: configuration.kernel_release,
        _VERSION: kernel.get("version"),
        _BUILD_ID: kernel.get("build_id"),
        "kernel configuration": configuration.kernel_config_sha256,
        "kernel command line": configuration.command_line,
    }


def _may_be_one_system(first: SystemParts, second: SystemParts) -> bool:
    """Return whether all parts agree; an unknown version or build ID agrees with every other one."""
    return all(
        value == second[name] or (name in (_VERSION, _BUILD_ID) and None in (value, second[name]))
        for name, value in first.items()
    )


def first_change(running: SystemParts, earlier: SystemParts) -> tuple[str, str, str] | None:
    """Return the name and both values of the first running part that is known of both and differs; None without any."""
    return next(
        (
            (name, now, before)
            for name, now in running.items()
            if now is not None and (before := earlier[name]) is not None and now != before
        ),
        None,
    )


def require_remote(board: Board, changes: Mapping[str, ConfigurationChange]) -> None:
    """Raise BadInput if the bench would reboot the machine that it runs on."""
    rebooted = next((name for name, change in changes.items() if change.select), None)
    if board.name == "local" and rebooted is not None:
        raise BadInput(
            f"configuration {rebooted}: the bench does not reboot the machine that it runs on; "
            "remove select, boot it yourself when asked, then run: fastenough campaign resume"
        )
