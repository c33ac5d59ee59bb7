# SPDX-License-Identifier: GPL-2.0-or-later
"""A private PostgreSQL server for tests, on a socket of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from fastenough.farm.postgres import as_server_user, server_tool
from fastenough.model import NotApplicable
from tests.support.processes import with_words


@dataclass(frozen=True)
class Server:
    """``url`` of its database; it can be stopped, as if its machine were gone, and started again."""

    directory: Path
    user: tuple[str, ...]

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://fe@/postgres?host={self.directory}"

    def control(self, *what: str) -> None:
        subprocess.run(
            [*self.user, server_tool("pg_ctl"), "-D", str(self.directory / "data"), "-w", *what],
            check=True,
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
        )

    def send(self, number: signal.Signals) -> None:
        """To all of it: the first process, whose command line names the folder, and those it has forked."""
        (first,) = (pid for pid in with_words(f"-D {self.directory}/data".replace(" ", "\0"), "postgres"))
        children = Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii").split()
        for pid in (first, *map(int, children)):
            os.kill(pid, number)

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.directory} -c fsync=off"
        self.control("-o", options, "-l", str(self.directory / "log"), "start")

    def stop(self) -> None:
        self.control("-m", "immediate", "stop")


def empty(server: Server) -> str:
    """The address of its database, with nothing in it."""
    engine = create_engine(server.url)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return server.url


@contextmanager
def running_server() -> Iterator[Server]:
    """Gone without trace when the context ends."""
    pytest.importorskip("psycopg", reason="no PostgreSQL driver: pip install 'psycopg[binary]'")
    try:
        user, initialise = as_server_user(), server_tool("initdb")
    except NotApplicable as reason:
        pytest.skip(str(reason))
    directory = Path(tempfile.mkdtemp(prefix="fe-pg-"))
    if user:
        shutil.chown(directory, "postgres")
    server = Server(directory, tuple(user))
    subprocess.run(
        [*user, initialise, "-A", "trust", "-U", "fe", "-N", "-D", str(directory / "data")],
        check=True,
        capture_output=True,
        cwd=directory,
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)
