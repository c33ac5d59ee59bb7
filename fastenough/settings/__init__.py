# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of a board: changed, read back and restored.  One module per subject, one line here for each."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from fastenough import words
from fastenough.link import Link
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.recording import head
from fastenough.registry import listed
from fastenough.settings.journal import (
    BoardBusy,
    Journal,
    JournalEntry,
    UnusableEntry,
    lock_machine,
    place_and_original,
)
from fastenough.settings.place import FilePlace, Place, PlaceEntry, PlaceGone, TaskPlace
from fastenough.settings.setting import Requested, Setting, difference, print_settings, restored_text

__all__ = [
    "SETTINGS",
    "STATE_SETTING",
    "BoardBusy",
    "Setting",
    "Settings",
    "default_journal",
    "difference",
    "is_in_effect",
    "journal_of",
    "journals",
    "locked",
    "print_settings",
    "restore",
    "restored_text",
    "run_journal",
    "unrestored",
]

SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for settings in listed(
        __name__,
        "SETTINGS",
        (
            "kernel",
            "cpus",
            "priorities",
            "pin",
            "kernel_module",
            "tracing",
        ),
    )
    for setting in settings
}

_FILES = tuple(pattern for setting in SETTINGS.values() for pattern in setting.files)

_INVALID_VALUE = (errno.EINVAL, errno.ERANGE, errno.EOVERFLOW, errno.E2BIG)
"""Errors of the kernel for a value that it can never have had."""
_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_FIX = "restore it with fastenough doctor --restore, as root or with sudo"

STATE_SETTING = "FASTENOUGH_STATE"
"""Environment variable that names another directory for files that must survive the bench."""


def default_journal(link: Link) -> Path:
    """Return the path of a board's journal: one per board, whatever the store."""
    return journal_of(link.name, link.own_directory)


def journal_of(name: str, own_directory: Path | None = None) -> Path:
    """Return the path of the journal of a board by the name of its link, such as ``ssh://user@host:22``."""
    if own_directory is not None:
        directory = own_directory
    elif os.environ.get(STATE_SETTING):
        directory = Path(os.environ[STATE_SETTING])
    elif os.geteuid() == 0:
        directory = Path("/var/lib/fastenough")
    else:
        directory = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fastenough"
    return directory / f"{name.replace('/', '_')}.journal"


@contextmanager
def locked(journal: Path) -> Iterator[Journal]:
    """Context in which no other bench can begin to measure on the board of this journal, which is open.

    Raise BoardBusy if one measures already, FastenoughError if the journal is not usable.
    """
    with closing(Journal(journal)) as opened:
        yield opened


def place_name(entry: JournalEntry, link: Link) -> str:
    """Return the name of the place of a journal's entry, for messages."""
    try:
        return str(place_and_original(entry, link, _FILES)[0])
    except UnusableEntry:
        return "an unknown place"


def run_journal(journal: Path) -> Path:
    """Return the path of the journal beside a campaign's, of settings restored after each run."""
    return journal.with_name(f"{journal.stem}-cell{journal.suffix}")


def journals(link: Link) -> list[Path]:
    """Return the existing journals of a board: of the campaign, and of its runs."""
    journal = default_journal(link)
    return [path for path in (journal, run_journal(journal)) if path.exists()]


def unrestored(link: Link, journal: Path) -> tuple[str, ...]:
    """Return the places that a killed bench left changed since boot; raise FastenoughError while
    a bench holds the journal, or if the id of the boot is unknown."""
    with locked(journal) as opened:
        return tuple(place_name(entry, link) for entry in _of_this_boot(opened.entries(), _boot_id(link), journal))


def _boot_id(link: Link) -> str | None:
    try:
        return link.read(_BOOT_ID_FILE).decode(errors="replace").strip()
    except OSError:
        return None


def _of_this_boot(entries: Sequence[JournalEntry], boot_id: str | None, journal: Path) -> list[JournalEntry]:
    """Return the entries of this boot; raise FastenoughError if they are unknown because its id is."""
    if entries and boot_id is None:
        raise FastenoughError(
            f"{journal} lists {words.counted(len(entries), 'original value')}, and whether the board was rebooted "
            f"since is unknown, because {_BOOT_ID_FILE} cannot be read; make it readable, then run "
            "fastenough doctor --restore"
        )
    return [entry for entry in entries if entry.get("boot_id") == boot_id]


def is_in_effect(link: Link, name: str, requested: Requested) -> bool:
    """Whether a setting already has the requested value; raise as ``Settings.apply`` does."""
    return all(place.read(link.raised) == value for place, value in _known(name).steps(link.raised, requested))


def _known(name: str) -> Setting:
    if name not in SETTINGS:
        raise BadInput(f"unknown setting {name!r}; use one of {', '.join(SETTINGS)}")
    return SETTINGS[name]


class Settings:
    """Context in which settings are changed; they are restored at its end, or when the journal is next opened.

    Without a path, the journal is the one that this user has for the board.  For the local board it also locks out the
    benches of other users, unless FASTENOUGH_STATE names a separate folder.  ``restored``: the places that an earlier
    bench had left changed; ``warnings``: on lines of the journal that were skipped.
    """

    def __init__(self, link: Link, journal_path: Path | None = None) -> None:
        self._link = link.raised
        self._boot_id = _boot_id(link)
        self.warnings: list[str] = []
        self.restored: tuple[str, ...] = ()
        self._applied: dict[tuple[str, str | None, int | None], Place] = {}
        with ExitStack() as opened:
            default = default_journal(link)
            self._path = journal_path or default
            self._journal = Journal(self._path)
            opened.callback(self._journal.close)
            if journal_path in (None, default) and link.name == "local" and not os.environ.get(STATE_SETTING):
                machine = lock_machine()
                if machine is not None:
                    opened.callback(os.close, machine)
            self._restore()
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._opened:
            self._restore()

    def apply(self, name: str, requested: Requested) -> list[head.RecordedSetting]:
        """Change a setting; return its entries of the recording's head, each with the value read back.

        Raise NotApplicable where the board does not support it, BadInput for an unknown setting or an invalid value.
        """
        entries = []
        for place, value in _known(name).steps(self._link, requested):
            try:
                entries.append(self._set(name, place, value))
            except PlaceGone:
                continue
            self._applied = {key: earlier for key, earlier in self._applied.items() if earlier.entry() != place.entry()}
            self._applied[entries[-1].place] = place
        return entries

    @property
    def places(self) -> list[PlaceEntry]:
        """The places that were set, as the journal describes them."""
        return [place.entry() for place in self._applied.values()]

    def read_again(self, set_later: Sequence[PlaceEntry] = ()) -> list[head.RecordedSetting]:
        """Return the present values of the files and tasks that were set, for the end of a recording.

        Of a place that several settings have set, the last one is returned.  Places that were ``set_later`` by others
        and those that can no longer be read are omitted.  Pins, modules and traces may change with the measured task.
        """
        entries = []
        for (name, thread, cpu), place in self._applied.items():
            if isinstance(place, FilePlace | TaskPlace) and place.entry() not in set_later:
                with suppress(PlaceGone, OSError):
                    entries.append(head.RecordedSetting(name, None, place.read(self._link), cpu, thread))
        return entries

    def apply_all(self, all_requested: Mapping[str, Requested]) -> list[head.RecordedSetting]:
        """Change settings; one that is not applicable gives an entry with the reason."""
        entries = []
        for name, requested in all_requested.items():
            try:
                entries.extend(self.apply(name, requested))
            except NotApplicable as reason:
                entries.append(head.RecordedSetting(name, requested, None, reason=f"{head.NOT_APPLICABLE}{reason}"))
        return entries

    def _set(self, name: str, place: Place, value: str) -> head.RecordedSetting:
        """Store the original value in the journal, write the new one, read it back."""
        original = place.read(self._link)
        unchanged = head.RecordedSetting(name + place.suffix, value, original, **place.label())
        if original == value:
            return unchanged
        if self._boot_id is None:
            return replace(unchanged, reason=f"not changed, because {_BOOT_ID_FILE} cannot be read")
        entries = [*self._dependents(place), self._entry(place, original)]
        try:
            for entry in entries:
                place_and_original(entry, self._link, _FILES)
        except UnusableEntry as why:
            return replace(unchanged, reason=f"not changed, because it could not be restored: {why}")
        for entry in entries:
            self._journal.append(entry)
        reason = None
        try:
            place.write(self._link, value)
        except OSError as error:
            reason = f"refused: {error.strerror or error}"
        in_effect = place.read(self._link)
        if in_effect != value:
            reason = reason or "the kernel chose another value"
        return replace(unchanged, in_effect=in_effect, reason=reason if in_effect != value else None)

    def _entry(self, place: Place, original: str) -> JournalEntry:
        assert self._boot_id is not None, "nothing is changed in an unknown boot"
        return {"boot_id": self._boot_id, "place": place.entry(), "original": original}

    def _dependents(self, place: Place) -> list[JournalEntry]:
        """Entries of values that the kernel discards when this place changes.  They precede its entry, so they are
        restored after it, and not while it cannot be restored (``needs``)."""
        if not isinstance(place, FilePlace) or not place.dependent:
            return []
        dependent = FilePlace(place.dependent)
        try:
            original = dependent.read(self._link)
        except (OSError, PlaceGone):
            return []
        return [{**self._entry(dependent, original), "needs": place.entry()}] if original.isdecimal() else []

    def _restore(self) -> None:
        """Restore all values, newest first; those before a reboot are skipped.

        Values that a run changed within this context were changed last.
        """
        of_runs: tuple[str, ...] = ()
        try:
            if run_journal(self._path).exists():
                with Settings(self._link, run_journal(self._path)) as runs:
                    of_runs = runs.restored
                    self.warnings += runs.warnings
        finally:  # also if a value that a run changed cannot be restored
            self.restored = (*of_runs, *self._restore_own())

    def _restore_own(self) -> tuple[str, ...]:
        """Restore the values in this journal; return their places."""
        damaged = self._journal.damaged()
        entries = _of_this_boot(self._journal.entries(), self._boot_id, self._path)
        failed: list[tuple[JournalEntry, str]] = []
        restored: list[JournalEntry] = []
        for entry in reversed(entries):
            try:
                needed = (fault for other, fault in failed if other["place"] == entry.get("needs"))
                fault = next(needed, None) or self._restore_entry(entry)
            except UnusableEntry as reason:
                damaged.append((json.dumps(entry), str(reason)))
                continue
            restored.insert(0, entry)
            if fault:
                failed.insert(0, (entry, fault))
        if damaged:
            self.warnings += self._journal.store_damaged(damaged)
        failed_entries = [entry for entry, _ in failed]
        self._forget_in_runs([entry for entry in restored if entry not in failed_entries])
        self._journal.replace(failed_entries)
        if failed:
            raise FastenoughError(f"{failed[0][1]}; {_FIX}")
        return tuple(place_name(entry, self._link) for entry in restored)

    def _forget_in_runs(self, restored: Sequence[JournalEntry]) -> None:
        """Drop what was restored from the journal of the runs, whose values are those that the campaign had set."""
        path = run_journal(self._path)
        if not restored or not path.exists():
            return
        places = [entry["place"] for entry in restored]
        with locked(path) as journal:
            journal.replace([entry for entry in journal.entries() if entry["place"] not in places])

    def _restore_entry(self, entry: JournalEntry) -> str | None:
        """Return the error; None when the original is in effect or the place is gone.  Raise UnusableEntry."""
        place, original = place_and_original(entry, self._link, _FILES)
        try:
            if place.read(self._link) != original:
                place.write(self._link, original)
        except PlaceGone:
            return None
        except OSError as error:
            if error.errno in _INVALID_VALUE:
                raise UnusableEntry(f"{place} cannot have been {ascii(original)[:80]}") from error
            return f"cannot restore {place} to {ascii(original)[:80]}: {error.strerror or error}"
        return None


def restore(link: Link) -> list[str]:
    """Restore what a killed bench left changed on a board; return the places.  Raise FastenoughError while a running
    bench holds the journal."""
    places: list[str] = []
    for journal in journals(link):
        with Settings(link, journal) as settings:
            places += settings.restored
    return places
