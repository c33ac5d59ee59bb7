# SPDX-License-Identifier: GPL-2.0-or-later
"""Users of the NATS server of a fleet: one for each board, and takers and operators of each site.

Each site is an account of its own: NATS passes no message from one account to another.  Within a site, permissions
limit a board to the topics of its machine id.  Each password is shown once, and only its hash is stored."""

from __future__ import annotations

import ctypes
import re
import secrets
import string
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from fastenough.farm.secret_file import Entry, SecretFile
from fastenough.fleet.chunk import is_machine_id, require_machine_id, shard_of
from fastenough.model import BadInput, Unavailable

_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
_LIBRARIES = ("libcrypt.so.1", "libcrypt.so.2")
_SALT = "./" + string.ascii_letters + string.digits
_LAST_OF_SALT = ".Oeu"
"""Of the last of 22 characters only two bits count."""


class Role(StrEnum):
    """What a user of the server may do."""

    BOARD = "board"
    TAKER = "taker"
    OPERATOR = "operator"


@dataclass(frozen=True)
class FleetUser:
    """A user as stored.  ``name``: of a board its machine id; ``site``: its account."""

    name: str
    role: Role
    site: str
    created_s: int
    bcrypt: str

    @property
    def grants(self) -> dict[str, object]:
        """The user without the hash of its password."""
        return {name: value for name, value in asdict(self).items() if name != "bcrypt"}


class FleetUsers:
    """The users in a file, which is created with the first user."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, SecretFile(path, "users")

    def add(self, names: Sequence[str], role: Role, site: str) -> dict[str, str]:
        """New users, and their passwords by name, which cannot be printed again; raises BadInput for invalid names."""
        if not _NAME.fullmatch(site):
            raise BadInput(f"invalid site {site!r}; use up to 64 letters, digits, _ and -")
        for name in names:
            _require_valid(name, role)
        passwords = {name: secrets.token_urlsafe(32) for name in names}
        with self._changed() as users:
            taken = {user.name for user in users} & set(names)
            if taken:
                raise BadInput(f"user {min(taken)} already exists; revoke it first")
            users += [FleetUser(name, role, site, int(time.time()), _hash(passwords[name])) for name in passwords]
        return passwords

    def revoke(self, name: str) -> FleetUser:
        """Remove a user; raises BadInput if there is none of that name."""
        with self._changed() as users:
            found = next((user for user in users if user.name == name), None)
            if found is None:
                raise BadInput(f"no user {name!r} in {self.path}; list the users with: fastenough farm user list")
            users.remove(found)
        return found

    def listed(self) -> list[FleetUser]:
        """All, oldest first; none if there is no file.  Raises BadInput for a file that others may read."""
        return self._users(self._file.entries())

    @contextmanager
    def _changed(self) -> Iterator[list[FleetUser]]:
        with self._file.changed() as entries:
            users = self._users(entries)
            yield users
            entries[:] = [asdict(user) for user in users]

    def _users(self, entries: Sequence[Entry]) -> list[FleetUser]:
        try:
            return [_user(entry) for entry in entries]
        except (ValueError, KeyError, TypeError, OverflowError, OSError) as error:
            raise self._file.damaged() from error


def _user(entry: Entry) -> FleetUser:
    """Parse a stored user; raises ValueError, KeyError, TypeError, OverflowError or OSError."""
    user = FleetUser(**{**entry, "role": Role(entry["role"])})  # type: ignore[arg-type]
    datetime.fromtimestamp(user.created_s, UTC)  # a time that can be printed
    if not all(isinstance(text, str) for text in (user.name, user.site, user.bcrypt)):
        raise ValueError("not a user")
    _require_valid(user.name, user.role)
    if not _NAME.fullmatch(user.site) or not re.fullmatch(r"\$2a\$[0-9]{2}\$[./0-9A-Za-z]{53}", user.bcrypt):
        raise ValueError("not a user")
    return user


def _require_valid(name: str, role: Role) -> None:
    """Raise BadInput for an invalid name: names are written into the server's configuration and into topics."""
    if role is Role.BOARD:
        require_machine_id(name)
    elif not _NAME.fullmatch(name) or is_machine_id(name):
        raise BadInput(f"invalid name {name[:80]!r}; use up to 64 letters, digits, _ and -, and no machine id")


def _hash(password: str) -> str:
    """The bcrypt hash that NATS compares a password with.

    It has the lowest cost: passwords have 256 random bits, and all boards of a fleet connect again after a restart.
    """
    salt = "".join(secrets.choice(_SALT) for _ in range(21)) + secrets.choice(_LAST_OF_SALT)
    for name in _LIBRARIES:
        try:
            crypt = ctypes.CDLL(name).crypt
        except (OSError, AttributeError):
            continue
        crypt.restype = ctypes.c_char_p
        found: bytes | None = crypt(password.encode(), f"$2a$04${salt}".encode())
        if found is not None and found.startswith(b"$2a$"):
            return found.decode()
    raise Unavailable("no libcrypt with bcrypt; install libcrypt1")


@dataclass(frozen=True)
class _Permissions:
    """Subjects of a user, and the protocol by which it may connect."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    protocol: str


def _permissions(user: FleetUser) -> _Permissions:
    if user.role is Role.BOARD:
        name = user.name
        own = (f"fe.ring.{shard_of(name):x}.{name}", f"fe.ack.{name}")
        return _Permissions(own, (f"fe.order.{name}", f"fe.order.{name}.signed"), "MQTT")
    if user.role is Role.OPERATOR:
        return _Permissions(("fe.order.*.signed",), ("fe.ack.*",), "STANDARD")
    return _Permissions(("$JS.API.>", "fe.order.*"), ("_INBOX.>",), "STANDARD")


def configuration(users: Sequence[FleetUser]) -> str:
    """The sites of a server's configuration: an account each, with its users; raises BadInput if there are none.

    ``nats.conf`` refers to them by their name, since a server without accounts would admit everyone: it does not start
    with a file that is empty or cut off, as ``farm user conf > users.conf`` leaves it after an error.
    """
    if not users:
        raise BadInput("no users; add the first one with: fastenough farm user add")
    lines = ["# Made by: fastenough farm user conf", "SITES {"]
    for site in sorted({user.site for user in users}):
        lines += [f'  "{site}" {{', "    jetstream: enabled", "    users: ["]
        lines += [_entry(user) for user in users if user.site == site]
        lines += ["    ]", "  }"]
    return "\n".join([*lines, "}", ""])


def _entry(user: FleetUser) -> str:
    permissions = _permissions(user)
    publish, subscribe = (
        ", ".join(f'"{subject}"' for subject in subjects) for subjects in (permissions.publish, permissions.subscribe)
    )
    return (
        f'      {{ user: "{user.name}", password: "{user.bcrypt}", '
        f'allowed_connection_types: ["{permissions.protocol}"], '
        f"permissions {{ publish: [{publish}], subscribe: [{subscribe}] }} }}"
    )
