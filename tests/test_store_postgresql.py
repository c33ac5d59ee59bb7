# SPDX-License-Identifier: GPL-2.0-or-later
"""The index in PostgreSQL: the same code, one setting."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_store_runs import keep_run

from fastenough.model import FastenoughError
from fastenough.store import INDEX_SETTING, Store

pytest.importorskip("psycopg", reason="no PostgreSQL driver: pip install 'psycopg[binary]'")


def _tool(name: str) -> str:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    return found


def _as_server_user() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("root needs a user postgres to run the server as")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    user = _as_server_user()
    directory = Path(tempfile.mkdtemp(prefix="fe-pg-"))
    if user:
        shutil.chown(directory, "postgres")
    data = directory / "data"
    subprocess.run([*user, _tool("initdb"), "-A", "trust", "-U", "fe", "-N", "-D", str(data)], check=True,
                   capture_output=True, cwd=directory)
    options = f"-c listen_addresses='' -c unix_socket_directories={directory} -c fsync=off"
    control = [*user, _tool("pg_ctl"), "-D", str(data), "-w"]
    subprocess.run([*control, "-o", options, "-l", str(directory / "log"), "start"], check=True, cwd=directory,
                   stdout=subprocess.DEVNULL)
    try:
        yield f"postgresql+psycopg://fe@/postgres?host={directory}"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True, cwd=directory)
        shutil.rmtree(directory)


def test_several_benches_share_one_index(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INDEX_SETTING, url)
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    first, second = keep_run(one, "cpu"), keep_run(other, "io")
    assert [run.id for run in one.runs()] == [run.id for run in other.runs()] == [first, second]
    assert [run.id for run in one.runs(load="io")] == [second]
    assert one.find(first[:-1]) == first
    assert not (tmp_path / "one" / "index.sqlite").exists()
    before = one.runs()
    one.rebuild()
    assert one.runs() == before


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FastenoughError, match="index cannot be used") as caught:
        Store(tmp_path, index_url="postgresql+psycopg://fe@/postgres?host=/nowhere")
    assert "\n" not in str(caught.value)
