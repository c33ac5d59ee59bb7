# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose address it is: this machine's own, and the names that a site is served under."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether only this machine is reached there; a name that merely looks like such an address is not one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_served_as(header: str, names: Collection[str]) -> bool:
    """Whether a request for this Host means the site: by an address, or a name that it has.

    A page of a stranger can let a name of its own lead to this machine, and then read what is served here as its own
    (DNS rebinding); it cannot do so with an address.  So only ``names``, in lower case, are answered, and localhost.
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
"""Of a part that can be the name of a folder."""
_OTHERS = re.compile(r"^[.-]|[^A-Za-z0-9._-]")
_WRITTEN = re.compile(r"(?:~[0-9A-F]{2})+")


def path_part(name: str) -> str:
    """Letters, digits, ``.``, ``_`` and ``-`` stay, if the first is no ``.`` or ``-``; each byte of the rest is ``~``
    and its number."""
    return _OTHERS.sub(lambda match: "".join(f"~{byte:02X}" for byte in match[0].encode(errors="replace")), name)


def name_of_part(part: str) -> str:
    return _WRITTEN.sub(lambda match: bytes.fromhex(match[0].replace("~", "")).decode(errors="replace"), part)
