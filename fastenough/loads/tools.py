# SPDX-License-Identifier: GPL-2.0-or-later
"""Tools that a load requires and a board lacks: copied by the bench, and removed when the load ends in any way.

Only to boards with an agent: on the bench's own machine the user installs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastenough.link import BoardGone, Link, Process
from fastenough.loads.load import TOOL_PACKAGES, Load
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.tools import Tools, fetch_tools
from fastenough.words import output_lines

DEBIAN = {
    "aarch64": "arm64",
    "armv8l": "armhf",
    "armv7l": "armhf",
    "armv6l": "armel",
    "armv5tel": "armel",
    "armv5tejl": "armel",
    "i586": "i386",
    "i686": "i386",
    "riscv64": "riscv64",
    "x86_64": "amd64",
}
"""Output of ``uname -m``, and Debian's name of an architecture whose programs run there."""

_UNPACK = """
cd "$1" && gzip -dc | tar -xf - || exit 1
for start in bin/*; do
	"$1/$start" --version >said 2>&1 </dev/null
	case $? in
	126|127|1[3-9]?|2[0-4]?) cat said >&2; exit 1;;
	esac
done
echo ready
exec sleep "$2" </dev/null
"""
"""A program that cannot be started, or dies at once, has an exit status of the shell's own."""
_UNPACK_S = 180.0


@dataclass(frozen=True)
class CopiedTools:
    """``folder``: directory of the programs; ``names``: their names.  They are removed when ``holder`` ends."""

    holder: Process
    folder: str
    names: str


def lacking_tools(link: Link, load: Load) -> list[str]:
    """The tools of a load that the board lacks."""
    return [tool for tool in load.tools if link.which(tool) is None]


def _missing(load: Load, tool: str) -> str:
    fix = f"apt-get install {TOOL_PACKAGES[tool]}" if tool in TOOL_PACKAGES else "install it"
    return f"load {load.name} requires {tool}, which is not installed: {fix}"


def require_tools(link: Link, load: Load) -> None:
    """Raises NotApplicable with a hint if the board lacks a tool and the bench does not copy it."""
    for tool in lacking_tools(link, load):
        if link.name == "local" or tool not in TOOL_PACKAGES:
            raise NotApplicable(_missing(load, tool))


def bring(link: Link, load: Load, limit_s: int) -> CopiedTools | None:
    """Copy the tools that the board lacks, for at most that long; None if it lacks none.

    Raises NotApplicable, with reason and hint, if they cannot be copied.
    """
    require_tools(link, load)
    tools = lacking_tools(link, load)
    if not tools:
        return None
    try:
        return _unpacked(link, tools, _fetched(link), limit_s)
    except (BadInput, BoardGone):
        raise
    except (FastenoughError, OSError) as error:
        raise NotApplicable(f"{_missing(load, tools[0])}; it could not be copied either: {error}") from error


def _fetched(link: Link) -> Tools:
    machine = link.run(["uname", "-m"]).text.strip()
    if machine not in DEBIAN:
        raise NotApplicable(f"Debian has no programs for a board of the kind {machine!r}")
    return fetch_tools(TOOL_PACKAGES, DEBIAN[machine])


def _unpacked(link: Link, tools: Sequence[str], fetched: Tools, limit_s: int) -> CopiedTools:
    scratch = link.scratch_name()
    holder = link.start(
        ["sh", "-c", _UNPACK, "sh", scratch, str(limit_s)],
        input=fetched.archive(tools),
        scratch=scratch,
        limit_s=limit_s,
    )
    try:
        if next(holder.lines(_UNPACK_S), b"") != b"ready\n":
            raise NotApplicable(" ".join(output_lines(holder.stderr())[-1:]) or "the board cannot unpack the programs")
    except BaseException:
        holder.stop()
        raise
    of = {TOOL_PACKAGES[tool]: fetched.versions[TOOL_PACKAGES[tool]] for tool in tools}
    return CopiedTools(holder, f"{scratch}/bin", ", ".join(f"{name} {version}" for name, version in sorted(of.items())))
