# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose address it is: this machine's own, and the names that a site is served under."""

from __future__ import annotations

import ipaddress
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
