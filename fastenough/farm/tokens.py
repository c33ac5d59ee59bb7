# SPDX-License-Identifier: GPL-2.0-or-later
"""Upload tokens: each is shown once, and only its hash is stored.

A token is ``fe1.ID.SECRET``; the secret has 256 random bits, so that storing one round of SHA-256 is sufficient. Tokens
are in a file that only its owner may read or write.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from fastenough.farm.secret_file import Entry, SecretFile
from fastenough.model import BadInput

UPLOADS_AN_HOUR = 60
_SHAPE = re.compile(r"fe1\.([0-9a-f]{16})\.([0-9A-Za-z_-]{43})")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._@-]{0,63}")
_NOBODY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Token:
    """A token as stored.  ``name``: its holder; ``boards``: boards whose recordings it permits, at most
    ``per_hour``."""

    id: str
    name: str
    boards: tuple[str, ...]
    per_hour: int
    created_s: int
    sha256: str

    @property
    def grants(self) -> dict[str, object]:
        """The token without its hash."""
        return {name: value for name, value in asdict(self).items() if name != "sha256"}


class Tokens:
    """The tokens in a file, which is created with the first token."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, SecretFile(path, "tokens")

    def add(self, name: str, boards: Sequence[str], per_hour: int = UPLOADS_AN_HOUR) -> str:
        """Add a token; its secret cannot be printed again.  Raises BadInput for a name that is in use or invalid."""
        if not _NAME.fullmatch(name):
            raise BadInput(f"invalid token name {name!r}; use up to 64 letters, digits and . _ @ -")
        if not boards or any(not board or not board.isprintable() for board in boards):
            raise BadInput("no board named; give each board that the token permits, as its recordings name it")
        identity, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        with self._changed() as tokens:
            if any(token.name == name for token in tokens):
                raise BadInput(f"token {name} already exists; revoke it first, or choose another name")
            tokens.append(
                Token(
                    identity,
                    name,
                    tuple(dict.fromkeys(boards)),
                    per_hour,
                    int(time.time()),
                    hashlib.sha256(secret.encode()).hexdigest(),
                )
            )
        return f"fe1.{identity}.{secret}"

    def revoke(self, which: str) -> Token:
        """Revoke the token of this name or id; raises BadInput if there is none."""
        with self._changed() as tokens:
            revoked = next((token for token in tokens if which in (token.name, token.id)), None)
            if revoked is None:
                raise BadInput(f"no token {which!r} in {self.path}; list the tokens with: fastenough farm token list")
            tokens.remove(revoked)
        return revoked

    def listed(self) -> list[Token]:
        """All tokens, oldest first; none without a file.  Raises BadInput for a file that others may read."""
        return self._tokens(self._file.entries())

    def known(self, presented: str) -> Token | None:
        """The token of this text, None if it is none.  The comparison takes constant time."""
        shape = _SHAPE.fullmatch(presented)
        identity, secret = shape.groups() if shape else ("", "")
        match = next((token for token in self.listed() if token.id == identity), None)
        expected_sha256 = _NOBODY_SHA256 if match is None else match.sha256
        same = hmac.compare_digest(expected_sha256, hashlib.sha256(secret.encode()).hexdigest())
        return match if same else None

    @contextmanager
    def _changed(self) -> Iterator[list[Token]]:
        """The tokens; the file is rewritten if the block ends without an exception.  Changes are serialised."""
        with self._file.changed() as entries:
            tokens = self._tokens(entries)
            yield tokens
            entries[:] = [asdict(token) for token in tokens]

    def _tokens(self, entries: Sequence[Entry]) -> list[Token]:
        try:
            return [_token(entry) for entry in entries]
        except (ValueError, KeyError, TypeError) as error:
            raise self._file.damaged() from error


def _token(entry: Entry) -> Token:
    """Raises ValueError, KeyError or TypeError."""
    token = Token(**{**entry, "boards": tuple(entry["boards"])})  # type: ignore[arg-type]
    texts = (token.id, token.name, token.sha256, *token.boards)
    if not all(isinstance(text, str) for text in texts) or type(token.per_hour) is not int:
        raise ValueError("not a token")
    return token
