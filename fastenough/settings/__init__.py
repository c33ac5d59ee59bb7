# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of a board: one file each, one line here for each; read, written, read back and put back."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fastenough.link import Link
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.recording import head
from fastenough.registry import listed
from fastenough.settings.journal import Journal
from fastenough.settings.place import Gone, Place
from fastenough.settings.places import Unusable, noted
from fastenough.settings.setting import Requested, Setting
from fastenough.settings.telling import difference, restored_text, tell_settings

__all__ = [
    "SETTINGS",
    "STATE_SETTING",
    "Setting",
    "Settings",
    "default_journal",
    "difference",
    "is_in_effect",
    "journals",
    "left_behind",
    "restore",
    "restored_text",
    "run_journal",
    "tell_settings",
]

SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in listed(
        __name__,
        "SETTING",
        (
            "governor",
            "idle_latency",
            "rt_throttling",
            "transparent_huge_pages",
            "irq_affinity",
            "energy_preference",
            "timer_migration",
            "numa_balancing",
            "swappiness",
            "page_merging",
            "compaction",
            "stat_interval",
            "nmi_watchdog",
            "soft_watchdog",
            "split_lock_penalty",
            "console_level",
            "rt_ceiling",
            "irq_threads",
            "timer_threads",
            "preemption",
            "control_priority",
            "housekeeping",
            "pin",
            "kernel_module",
            "trace",
            "timerlat",
            "wakeup_histograms",
        ),
    )
}

_FILES = tuple(pattern for setting in SETTINGS.values() for pattern in setting.files)

_NEVER_TAKEN = (errno.EINVAL, errno.ERANGE, errno.EOVERFLOW, errno.E2BIG)
"""What the kernel answers to a value that it can never have had."""
_FIX = "fastenough doctor --restore puts it back, as root or with sudo"

STATE_SETTING = "FASTENOUGH_STATE"
"""Environment variable that names another directory for what must survive the bench."""


def default_journal(link: Link) -> Path:
    """Where the journal of a board lies: one per board, whatever the store."""
    if os.environ.get(STATE_SETTING):
        directory = Path(os.environ[STATE_SETTING])
    elif os.geteuid() == 0:
        directory = Path("/var/lib/fastenough")
    else:
        directory = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fastenough"
    return directory / f"{link.name.replace('/', '_')}.journal"


def place_name(entry: Mapping[str, Any], link: Link) -> str:
    """Which place an entry of a journal speaks of, for people."""
    try:
        return str(noted(entry, link, _FILES)[0])
    except Unusable:
        return "a place that is not known"


def run_journal(journal: Path) -> Path:
    """Beside the journal of a campaign: of what is put back after each run, and not only at the end."""
    return journal.with_name(f"{journal.stem}-cell{journal.suffix}")


def journals(link: Link) -> list[Path]:
    """The journals there are of a board: the campaigns', and the runs'."""
    journal = default_journal(link)
    return [path for path in (journal, run_journal(journal)) if path.exists()]


def left_behind(link: Link, journal: Path) -> tuple[str, ...]:
    """What a killed bench has left changed since the board was booted; raises FastenoughError while one holds it."""
    opened = Journal(journal)
    try:
        booted = _boot_id(link)
        return tuple(place_name(entry, link) for entry in opened.entries() if entry.get("boot_id") == booted)
    finally:
        opened.close()


def _boot_id(link: Link) -> str | None:
    try:
        return link.read("/proc/sys/kernel/random/boot_id").decode(errors="replace").strip()
    except OSError:
        return None


def is_in_effect(link: Link, name: str, requested: Requested) -> bool:
    """Whether a setting is there already; raises as ``Settings.apply`` does."""
    return all(place.read(link.raised) == value for place, value in _known(name).steps(link.raised, requested))


def _known(name: str) -> Setting:
    if name not in SETTINGS:
        raise BadInput(f"no setting is called {name!r}; use {', '.join(SETTINGS)}")
    return SETTINGS[name]


class Settings:
    """Use as a context: what is applied inside is put back at its end, or by the next one to open the journal.

    ``put_back``: which places an earlier bench had left changed; ``told``: what is to be said about lines of the
    journal that were skipped.
    """

    def __init__(self, link: Link, journal_path: Path | None = None) -> None:
        self._link = link.raised
        self._boot_id = _boot_id(link)
        self._journal = Journal(journal_path or default_journal(link))
        self.told: list[str] = []
        try:
            self.put_back: tuple[str, ...] = ()
            self._restore()
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._restore()
        finally:
            self._journal.close()

    def apply(self, name: str, requested: Requested) -> list[head.Setting]:
        """Make a setting; returns what the recording's head says of it, each as read back.

        Raises NotApplicable where the board has no such thing, BadInput for a setting or a value that cannot be.
        """
        entries = []
        for place, value in _known(name).steps(self._link, requested):
            try:
                entries.append(self._set(name, place, value))
            except Gone:
                continue
        return entries

    def apply_all(self, all_requested: Mapping[str, Requested]) -> list[head.Setting]:
        """Make settings; one that is not applicable gives an entry with its reason."""
        entries = []
        for name, requested in all_requested.items():
            try:
                entries.extend(self.apply(name, requested))
            except NotApplicable as reason:
                entries.append(head.Setting(name, requested, None, reason=f"{head.NOT_APPLICABLE}{reason}"))
        return entries

    def _set(self, name: str, place: Place, value: str) -> head.Setting:
        """Note the original, write, read back."""
        original = place.read(self._link)
        unchanged = head.Setting(name + place.suffix, value, original, **place.label())
        if original == value:
            return unchanged
        note = {"boot_id": self._boot_id, "place": place.entry(), "original": original}
        try:
            noted(note, self._link, _FILES)
        except Unusable as why:
            return replace(unchanged, reason=f"left as it is, for it could not be put back: {why}")
        self._journal.note(note)
        reason = None
        try:
            place.write(self._link, value)
        except OSError as error:
            reason = f"refused: {error.strerror or error}"
        in_effect = place.read(self._link)
        if in_effect != value:
            reason = reason or "the kernel took another value"
        return replace(unchanged, in_effect=in_effect, reason=reason if in_effect != value else None)

    def _restore(self) -> None:
        """Put everything back, newest first; what a reboot has put back counts not."""
        damaged = self._journal.damaged()
        noted_here = [entry for entry in self._journal.entries() if entry.get("boot_id") == self._boot_id]
        failed: list[tuple[dict[str, Any], str]] = []
        restored: list[dict[str, Any]] = []
        for entry in reversed(noted_here):
            try:
                fault = self._put_back(entry)
            except Unusable as reason:
                damaged.append((json.dumps(entry), str(reason)))
                continue
            restored.insert(0, entry)
            if fault:
                failed.insert(0, (entry, fault))
        if damaged:
            self.told += self._journal.set_aside(damaged)
        kept = [entry for entry, _ in failed]
        self.put_back = tuple(place_name(entry, self._link) for entry in restored if entry not in kept)
        self._journal.replace(kept)
        if failed:
            raise FastenoughError(f"{failed[0][1]}; {_FIX}")

    def _put_back(self, entry: dict[str, Any]) -> str | None:
        """What went wrong, None when the original is in force or the place is gone; raises Unusable."""
        place, original = noted(entry, self._link, _FILES)
        try:
            if place.read(self._link) != original:
                place.write(self._link, original)
        except Gone:
            return None
        except OSError as error:
            if error.errno in _NEVER_TAKEN:
                raise Unusable(f"{place} cannot have been {ascii(original)[:80]}") from error
            return f"{place} cannot be put back to {ascii(original)[:80]}: {error.strerror or error}"
        return None


def restore(link: Link) -> list[str]:
    """Put back what a killed bench has left changed on a board; which places.  Raises FastenoughError while one that
    runs holds them."""
    places: list[str] = []
    for journal in journals(link):
        with Settings(link, journal) as settings:
            places += settings.put_back
    return places
