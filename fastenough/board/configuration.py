# SPDX-License-Identifier: GPL-2.0-or-later
"""A board that is measured as it is found, brought into another configuration: by a reboot, or by a person's hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from fastenough.board.base import AS_BOOTED, Board, Booted
from fastenough.link import BoardGone, Link
from fastenough.model import BadInput, Configuration, FastenoughError
from fastenough.words import said_lines

Ask = Callable[[str, str, str], None]
"""Given a board's name, a configuration, and why what runs there is not it (empty at first), returns once a person has
booted it; raises BadInput where there is nobody to ask."""

BOOT_S = 300.0
_RETRY_S = 1.0
_SELECT_S = 120.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_AS_ROOT = ("sh", "-c", 'PATH="$PATH:/sbin:/usr/sbin"; exec "$@"', "sh")


@dataclass(frozen=True)
class ConfigurationChange:
    """How a board comes into a configuration.

    ``select``: the command that makes the board boot it next time; empty: a person boots it.  ``kernel``: a pattern of
    what ``uname -r`` says then; where it is empty, release, configuration or command line of the kernel must differ
    from those of the board's other configurations.
    """

    select: tuple[str, ...] = ()
    kernel: str = ""


@dataclass
class SwitchableBoard:
    """``seen``: what each configuration was found to be, those of an earlier part of the campaign included; ``boot_s``:
    how long the board may take until it can be reached again."""

    board: Board
    changes: Mapping[str, ConfigurationChange]
    ask: Ask
    seen: dict[str, Configuration] = field(default_factory=dict)
    boot_s: float = BOOT_S

    @property
    def name(self) -> str:
        return self.board.name

    def configurations(self) -> tuple[str, ...]:
        return tuple(self.changes)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        """As the plan says; raises FastenoughError where what came up is not what was meant.

        A person who booted another one is told so, and asked again.
        """
        change, why = self.changes[configuration], ""
        while True:
            with ExitStack() as stack:
                booted = self._brought(configuration, change, why, stack)
                why = self._unfit(configuration, change, booted.configuration)
                if not why:
                    self.seen[configuration] = booted.configuration
                    yield booted
                    return
            if change.select:
                raise FastenoughError(why)

    def _brought(self, configuration: str, change: ConfigurationChange, why: str, stack: ExitStack) -> Booted:
        """The board, after it was rebooted or a person has said that it is up."""
        before = None
        if change.select:
            before = self._reboot(change.select)
        else:
            self.ask(self.name, configuration, why)
        return self._up(configuration, before, stack)

    def _reboot(self, select: Sequence[str]) -> str:
        """Choose what is booted next, and reboot; the id of the boot that ends."""
        with self.board.boot(AS_BOOTED) as booted:
            link = booted.link.raised
            before = _boot_id(link)
            chosen = link.run([*_AS_ROOT, *select], _SELECT_S)
            if chosen.status:
                why = (said_lines(chosen.stderr) or said_lines(chosen.stdout) or [f"status {chosen.status}"])[-1]
                raise FastenoughError(f"{self.name}: {' '.join(select)} failed: {why}")
            with suppress(FastenoughError):  # it may be gone before it has said so
                link.run([*_AS_ROOT, "reboot"])
        return before

    def _up(self, configuration: str, before: str | None, stack: ExitStack) -> Booted:
        """The board once it can be reached, after another boot than that ``before``; raises BoardGone."""
        deadline, why = time.monotonic() + self.boot_s, ""
        while True:
            with ExitStack() as attempt:
                try:
                    booted = attempt.enter_context(self.board.boot(AS_BOOTED))
                    if before is None or _boot_id(booted.link) != before:
                        stack.push(attempt.pop_all())
                        return replace(booted, configuration=replace(booted.configuration, name=configuration))
                    why = "it has not shut down"
                except BoardGone as error:
                    why = str(error)
            if time.monotonic() > deadline:
                raise BoardGone(f"{self.name} has not come up in {configuration} within {self.boot_s:g} s: {why}")
            time.sleep(_RETRY_S)

    def _unfit(self, configuration: str, change: ConfigurationChange, found: Configuration) -> str:
        """Why what runs there cannot be that configuration; empty where it can."""
        if change.kernel:
            fits = fnmatchcase(found.kernel_release or "", change.kernel)
            runs = f"{self.name} runs {found.kernel_release}"
            return "" if fits else f"{runs}, but {configuration} requires {change.kernel}"
        other = next(
            (name for name, seen in self.seen.items() if name != configuration and _booted(seen) == _booted(found)),
            None,
        )
        return (
            ""
            if other is None
            else (
                f"{self.name} runs {found.kernel_release} with the same kernel configuration and command line as "
                f'{other} (if that is intended, write kernel = "*" for {configuration} in the plan)'
            )
        )


def _boot_id(link: Link) -> str:
    try:
        return link.read(_BOOT_ID).decode(errors="replace").strip()
    except OSError as error:
        raise FastenoughError(f"{link.name}: cannot read {_BOOT_ID}: {error.strerror}") from error


def _booted(configuration: Configuration) -> tuple[str | None, ...]:
    return configuration.kernel_release, configuration.kernel_config_sha256, configuration.command_line


def require_remote(board: Board, changes: Mapping[str, ConfigurationChange]) -> None:
    """Raises BadInput where the bench would reboot the machine that it runs on."""
    rebooted = next((name for name, change in changes.items() if change.select), None)
    if board.name == "local" and rebooted is not None:
        raise BadInput(
            f"configuration {rebooted}: the bench does not reboot the machine that it runs on; "
            "remove select, boot it yourself when asked, then run: fastenough campaign resume"
        )
