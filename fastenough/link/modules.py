# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel modules on a board: insertion, with the reason of a refusal."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from fastenough.files import Untrusted, require_trusted
from fastenough.link.base import Link
from fastenough.link.local import LocalLink
from fastenough.model import BadInput, NotApplicable

_TIMEOUT_S = 30.0
_EXPLAINS = b"\0parmtype=explain:bool\0"
_RELEASE = re.compile(rb"\0vermagic=([^ \0]+)")


def module_name(path: str) -> str:
    """Return the kernel's name for the module in a file."""
    return PurePosixPath(path).stem.replace("-", "_")


def insert_module(link: Link, path: str, parameters: Sequence[str] = ()) -> None:
    """Insert a module that is on the board.

    Raises BadInput as `require_own_module` does, and OSError with the reason if it cannot be inserted.  A module of
    fastenough with the parameter ``explain`` stays loaded, with the reason in its parameter ``refused``; it is then
    removed.  If its real-time core is stopped, NotApplicable is raised.
    """
    require_own_module(link, path)
    module = link.read(path)
    explain = ["explain=1"] if _EXPLAINS in module else []
    done = link.run(["insmod", path, *parameters, *explain], timeout_s=_TIMEOUT_S)
    if done.status:
        message = done.stderr.decode(errors="replace").strip() or "insmod gave no reason"
        raise OSError(errno.EPERM, _kernel_mismatch(link, module) or message)
    name = module_name(path)
    reason, core_stopped = (_parameter(link, name, parameter) for parameter in ("refused", "core_stopped"))
    if reason:
        link.run(["rmmod", name], timeout_s=_TIMEOUT_S)
        if core_stopped == "Y":
            raise NotApplicable(reason)
        raise OSError(errno.EPERM, reason)


def require_own_module(link: Link, path: str) -> None:
    """Raise BadInput for a module on this machine that another user could have changed.

    Root also trusts the owner of the program that it runs.
    """
    if link.name != LocalLink.name:
        return
    try:
        require_trusted(path, trusted=Path(__file__).stat().st_uid if os.geteuid() == 0 else None)
    except Untrusted as error:
        raise BadInput(f"module {path}: {error}") from error


def _parameter(link: Link, name: str, parameter: str) -> str:
    path = f"/sys/module/{name}/parameters/{parameter}"
    return link.read(path).decode(errors="replace").strip() if link.exists(path) else ""


def _kernel_mismatch(link: Link, module: bytes) -> str | None:
    """Return a message if the module was built for another kernel than the running one, else None."""
    built_for = _RELEASE.search(module)
    running = link.read("/proc/sys/kernel/osrelease").decode(errors="replace").strip()
    if built_for is None or built_for[1].decode(errors="replace") == running:
        return None
    return (
        f"it was built for kernel {built_for[1].decode(errors='replace')}, but {running} is running; build it "
        "against this kernel's headers"
    )
