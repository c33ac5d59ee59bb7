# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose address it is: this machine's own, and the names that a site is served under."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether the address is of the loopback interface; a name that only looks like one is not."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_served_as(header: str, names: Collection[str]) -> bool:
    """Whether a request for this Host is for the site: an address, localhost or one of ``names`` (lower case).

    A page of an attacker could let its own name resolve to this machine and read the site as its own (DNS rebinding).
    That is not possible with an address.
    """
    try:
        host = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.removesuffix(".") in {"localhost", *names}
    return True


MOST_LETTERS = 200
"""Maximum length of a part that can be the name of a folder."""
_OTHERS = re.compile(r"^[.-]|[^A-Za-z0-9._-]")
_WRITTEN = re.compile(r"(?:~[0-9A-F]{2})+")


def path_part(name: str) -> str:
    """Letters, digits, ``.``, ``_`` and ``-`` stay, if the first is no ``.`` or ``-``; each byte of the rest is ``~``
    and its number."""
    return _OTHERS.sub(lambda match: "".join(f"~{byte:02X}" for byte in match[0].encode(errors="replace")), name)


def name_of_part(part: str) -> str:
    return _WRITTEN.sub(lambda match: bytes.fromhex(match[0].replace("~", "")).decode(errors="replace"), part)
