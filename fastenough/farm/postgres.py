# SPDX-License-Identifier: GPL-2.0-or-later
"""A private PostgreSQL in a folder, for a trial farm; other users cannot connect to it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import FastenoughError, NotApplicable

_USER = "fastenough"
_READY_S = 30.0


def server_tool(name: str) -> str:
    """The newest installed program of this name; raises NotApplicable if there is none."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    tool_path = str(installed[-1]) if installed else shutil.which(name)
    if tool_path is None:
        raise NotApplicable("PostgreSQL is not installed (apt-get install postgresql)")
    return tool_path


def as_server_user() -> list[str]:
    """Arguments before a command that run it as the server's user, since PostgreSQL refuses to run as root.

    Raises NotApplicable if there is no such user.
    """
    if os.geteuid() != 0:
        return []
    try:
        pwd.getpwnam("postgres")
    except KeyError as error:
        raise NotApplicable("PostgreSQL refuses to run as root, and no user postgres exists") from error
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@dataclass(frozen=True)
class ServerFolder:
    """The data of a private PostgreSQL.  ``command`` starts it; ``url``: its address for SQLAlchemy."""

    folder: Path
    command: tuple[str | Path, ...]

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{_USER}@/postgres?host={self.folder}"

    @classmethod
    def create(cls, folder: Path) -> ServerFolder:
        """Create an empty database in a folder that does not exist yet.

        Raises NotApplicable if PostgreSQL is not installed, FastenoughError if initdb fails.
        """
        user, server, initialise = as_server_user(), server_tool("postgres"), server_tool("initdb")
        folder.mkdir(mode=0o700)
        if user:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        initialised = subprocess.run(
            [*user, initialise, "-A", "trust", "-U", _USER, "-N", "-D", data],
            capture_output=True,
            check=False,
            cwd=folder,
        )
        if initialised.returncode:
            raise FastenoughError(f"initdb failed: {initialised.stderr.decode(errors='replace')[-200:]}")
        options = ("listen_addresses=", "fsync=off", f"unix_socket_directories={folder}")
        return cls(
            folder, (*user, server, "-D", data, *(argument for option in options for argument in ("-c", option)))
        )


def private_server(folder: Path) -> str:
    """Start a server in a folder that does not exist yet, as a child of this process; returns its SQLAlchemy URL.

    Raises NotApplicable if PostgreSQL is not installed, FastenoughError if it does not start.
    """
    server = ServerFolder.create(folder)
    with (folder / "log").open("wb") as log:
        subprocess.Popen(server.command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    deadline = time.monotonic() + _READY_S
    while not (folder / ".s.PGSQL.5432").exists() or b"ready to accept" not in (folder / "log").read_bytes():
        if time.monotonic() > deadline:
            raise FastenoughError(f"PostgreSQL did not start within {_READY_S:g} s; see {folder}/log")
        time.sleep(0.1)
    return server.url
