# SPDX-License-Identifier: GPL-2.0-or-later
"""Which boards a request may see: users and groups from an authenticating proxy, roles and sites from the access file.

The proxy signs users in by OpenID Connect and passes their name and groups in headers.  Headers count only if the
request comes from a trusted address.  A request without a known group sees nothing.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastenough.campaign.toml import Table, read_toml
from fastenough.files import Untrusted, changeable_by_others, read_regular
from fastenough.history import NOBODY, OWNER, Viewer
from fastenough.model import BadInput
from fastenough.web.site import SiteRole

USER_HEADER = "X-Forwarded-User"
GROUPS_HEADER = "X-Forwarded-Groups"
SECRET_HEADER = "X-Fastenough-Secret"
_KEYS = ("trusted", "user-header", "groups-header", "secret-file", "group")
_GROUP_KEYS = ("name", "role", "sites")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)
_SHORTEST_SECRET = 16
_MOST_SECRET_BYTES = 4096
_MOST_NAME = 200
_EXAMPLE = "docs/website.md"
_LOG = logging.getLogger(__name__)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AccessDenied(Exception):
    """The request has no identity that this site knows, or its user lacks a role."""


@dataclass(frozen=True)
class AccessGrant:
    """A role at some sites; the role of an administrator is for all sites."""

    role: SiteRole
    sites: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Identity:
    """A user with the grants of all known groups."""

    user: str
    grants: frozenset[AccessGrant]

    def viewer(self, role: SiteRole) -> Viewer:
        """The boards that this user may see on a page that requires a role."""
        enough = [grant for grant in self.grants if grant.role.includes(role)]
        if any(grant.role is SiteRole.ADMINISTRATOR for grant in enough):
            return OWNER
        sites = frozenset(site for grant in enough for site in grant.sites)
        return Viewer(sites=sites) if sites else NOBODY


@dataclass(frozen=True)
class AccessRules:
    """The content of an access file.  ``secret``: what the proxy must send; empty if its address is enough."""

    trusted: tuple[Network, ...]
    grants: dict[str, AccessGrant] = field(hash=False)
    user_header: str = USER_HEADER
    groups_header: str = GROUPS_HEADER
    secret: bytes = field(default=b"", repr=False)

    def identity(self, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> Identity:
        """The user of a request from an address; raises AccessDenied.

        ``headers``: as received.  A header that occurs twice is refused, as is one with ``_`` for ``-`` in its name:
        a proxy that replaces the first would pass the second, which a client could have sent.
        """
        if not self._is_trusted(peer):
            raise AccessDenied(f"{peer or 'an unknown address'} is not a trusted address")
        values = self._values(headers)
        if self.secret and not hmac.compare_digest(values.get(SECRET_HEADER.lower(), b""), self.secret):
            raise AccessDenied(f"{SECRET_HEADER} is missing or wrong")
        user, groups = (_text(values, name) for name in (self.user_header, self.groups_header))
        grants = {self.grants[name] for name in map(str.strip, groups.split(",")) if name in self.grants}
        if not grants:
            raise AccessDenied(f"user {user!r} has no known group")
        return Identity(user, frozenset(grants))

    def _is_trusted(self, peer: str | None) -> bool:
        try:
            address = ipaddress.ip_address(peer or "")
        except ValueError:
            return False
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return any((mapped or address) in network for network in self.trusted)

    def _values(self, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, bytes]:
        """The headers of the proxy, by name in lower case."""
        names = {name.lower() for name in (self.user_header, self.groups_header, SECRET_HEADER)}
        values: dict[str, bytes] = {}
        for raw_name, value in headers:
            name = raw_name.decode("latin-1").lower()
            if name.replace("_", "-") not in names:
                continue
            if name not in names or name in values:
                raise AccessDenied(f"{name} occurs twice, or is written with _")
            values[name] = value
        return values


def _text(values: dict[str, bytes], header: str) -> str:
    """The value of a header; raises AccessDenied if it is missing, empty or cannot be printed."""
    try:
        text = values.get(header.lower(), b"").decode()
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or not text.isprintable():
        raise AccessDenied(f"{header} is missing, empty or not printable")
    return text


def read_access(path: Path) -> AccessRules:
    """The rules in a file; raises BadInput for a file that is invalid or that other users can change."""
    _require_own(path)
    table = read_toml(path, _EXAMPLE)
    trusted = tuple(_network(table, text) for text in table.texts("trusted", None))
    user_header, groups_header = (
        _header(table, key, usual) for key, usual in (("user-header", USER_HEADER), ("groups-header", GROUPS_HEADER))
    )
    if len({name.lower() for name in (user_header, groups_header, SECRET_HEADER)}) < 3:
        raise table.fault(f"user-header, groups-header and {SECRET_HEADER} must differ")
    secret_file = table.text("secret-file", '"/etc/fastenough/proxy-secret"', "")
    if "\0" in secret_file:
        raise table.fault("secret-file contains a NUL; name a file", "secret-file")
    grants = _grants(table.tables("group"))
    if not grants:
        raise table.fault("no [[group]]; add one, since users without a group see nothing")
    table.finish(_KEYS)
    secret = _secret(path.parent / secret_file) if secret_file else b""
    return AccessRules(trusted, grants, user_header, groups_header, secret)


def _network(table: Table, text: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise table.fault(
            f'trusted: {text!r} is not an address; write "127.0.0.1" or "10.1.0.0/24"', "trusted"
        ) from error
    if not network.prefixlen:
        raise table.fault(f"trusted: {text} contains every address; write that of the proxy", "trusted")
    return network


def _header(table: Table, key: str, usual: str) -> str:
    name = table.text(key, f'"{usual}"', usual)
    if not _HEADER.fullmatch(name):
        raise table.fault(f"{key} = {name!r} is not the name of a header; use letters, digits and -", key)
    return name


def _grants(groups: Sequence[Table]) -> dict[str, AccessGrant]:
    grants: dict[str, AccessGrant] = {}
    for group in groups:
        name = group.text("name", '"lab-graz"')
        if name != name.strip() or "," in name or not name.isprintable() or len(name) > _MOST_NAME:
            raise group.fault(
                f"name: use at most {_MOST_NAME} characters, without commas, control characters or surrounding spaces",
                "name",
            )
        if name in grants:
            raise group.fault(f"the group {name} is stated twice; state it once", "name")
        grants[name] = _grant(group)
        group.finish(_GROUP_KEYS)
    return grants


def _grant(group: Table) -> AccessGrant:
    text = group.text("role", '"viewer"')
    if text not in list(SiteRole):
        raise group.fault(f"role = {text!r} is invalid; use one of {', '.join(SiteRole)}", "role")
    role = SiteRole(text)
    if role is not SiteRole.ADMINISTRATOR:
        return AccessGrant(role, frozenset(group.texts("sites", None)))
    if "sites" in group:
        raise group.fault("an administrator sees all sites; remove sites, or use another role", "sites")
    return AccessGrant(role)


def _require_own(path: Path) -> None:
    try:
        place = changeable_by_others(path)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if place is not None:
        raise BadInput(f"{place} can be changed by other users, so {path} is not used; run: chmod go-w {place}")


def _secret(path: Path) -> bytes:
    """The first line of a file; raises BadInput if others can read it, or it is short."""
    _require_own(path)
    try:
        readable = path.stat().st_mode & 0o044
        secret = read_regular(path.resolve(), _MOST_SECRET_BYTES).partition(b"\n")[0].strip()
    except (OSError, Untrusted) as error:
        raise BadInput(f"secret-file {path}: {getattr(error, 'strerror', None) or error}") from error
    if readable:
        raise BadInput(f"secret-file {path} can be read by other users; run: chmod 600 {path}")
    if len(secret) < _SHORTEST_SECRET:
        raise BadInput(f"secret-file {path} has fewer than {_SHORTEST_SECRET} characters; write a longer secret")
    return secret


def identity_of(rules: AccessRules, scope: Any) -> Identity | None:
    """The user of an ASGI request; None if it is refused, with the reason in the log."""
    client: Sequence[Any] | None = scope.get("client")
    headers: Collection[tuple[bytes, bytes]] = scope["headers"]
    try:
        return rules.identity(str(client[0]) if client else None, headers)
    except AccessDenied as error:
        _LOG.warning("access refused: %s", error)
        return None
