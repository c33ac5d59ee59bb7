# SPDX-License-Identifier: GPL-2.0-or-later
"""Names as parts of addresses: boards have names such as ssh://root@10.0.0.2, addresses and folders few letters."""

from __future__ import annotations

import re

MOST_LETTERS = 200
"""Of a part that can be the name of a folder."""
_OTHERS = re.compile(r"^[.-]|[^A-Za-z0-9._-]")
_WRITTEN = re.compile(r"(?:~[0-9A-F]{2})+")


def as_part(name: str) -> str:
    """Letters, digits, ``.``, ``_`` and ``-`` stay, if the first is no ``.`` or ``-``; each byte of the rest is ``~``
    and its number."""
    return _OTHERS.sub(lambda found: "".join(f"~{byte:02X}" for byte in found[0].encode(errors="replace")), name)


def as_name(part: str) -> str:
    return _WRITTEN.sub(lambda found: bytes.fromhex(found[0].replace("~", "")).decode(errors="replace"), part)
