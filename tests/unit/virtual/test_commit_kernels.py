# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of the commits of a repository: each is built once, in one build directory, and stored by itself."""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fastenough.model import BadInput, FastenoughError
from fastenough.virtual.commit_kernels import CommitKernels
from fastenough.virtual.custom_kernels import find_kernel, registered_names
from fastenough.virtual.git_repository import open_repository
from tests.support.cli_calls import ROOT
from tests.support.git_history import Commit, make_history
from tests.support.kernel_trees import MAKEFILE, install_tools
from tests.support.processes import eventually

pytestmark = pytest.mark.check

SLEEP = f"{shutil.which('sleep')} 1"
HISTORY = [
    Commit("one", (), {"Makefile": MAKEFILE, "Kconfig": "", "content": "one"}),
    Commit("two", ("one",), {"content": "two"}),
    Commit("broken", ("two",), {"broken.c": ""}),
    Commit("three", ("broken",), {"content": "three", "broken.c": None}),
    Commit(
        "large",
        ("three",),
        {"Makefile": MAKEFILE.replace("modules:\n", "modules:\n\t@head -c 1 /dev/zero >/dev/full\n")},
    ),
    Commit(
        "endless",
        ("three",),
        {"Makefile": MAKEFILE.replace("modules:\n", "modules:\n\t@touch $(O)/begun\n\t@sleep 1000\n")},
    ),
    Commit(
        "lasting", ("three",), {"Makefile": MAKEFILE.replace("modules:\n", f"modules:\n\t@{SLEEP} >/dev/null 2>&1 &\n")}
    ),
]


class Kernels:
    """The kernels of a history, by the names of its commits."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache" / "virtual"
        self.ids = make_history(folder / "linux", HISTORY)
        self.kernels = CommitKernels(open_repository(folder / "linux"), "arm64", {"HZ": "100"})
        self.steps: list[str] = []

    def build(self, name: str) -> str:
        return self.kernels.build(self.ids[name], self.steps.append)

    def made(self) -> int:
        """The number of compilations, all in one build directory."""
        (made,) = self.cache.glob("builds/*/made")
        return len(made.read_text().splitlines())


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    install_tools(tmp_path, monkeypatch)
    return Kernels(tmp_path)


def test_each_commit_has_a_kernel_of_its_own(kernels: Kernels) -> None:
    names = {name: kernels.build(name) for name in ("one", "three", "two")}
    assert kernels.made() == 3
    for name, kernel in names.items():
        assert kernel.startswith(kernels.ids[name][:12])
        assert find_kernel(kernel).image.read_bytes().endswith(name.encode())
    assert sorted(names.values()) == list(registered_names())
    assert kernels.steps[:3] == ["checking out", "configuring", "compiling"]


def test_a_commit_is_built_once(kernels: Kernels) -> None:
    name = kernels.build("one")
    kernels.build("two")
    assert kernels.build("one") == name and kernels.made() == 2
    other = CommitKernels(kernels.kernels.repository, "arm64", {"HZ": "250"})
    assert other.name(kernels.ids["one"]) != name, "other options are another kernel"


def test_another_compiler_makes_another_kernel(kernels: Kernels, tmp_path: Path) -> None:
    name = kernels.build("one")
    (tmp_path / "tools" / "aarch64-linux-gnu-gcc").write_text("#!/bin/sh\necho gcc 99.1\n")
    assert kernels.build("one") != name and kernels.made() == 2


def test_a_full_disk_is_no_fault_of_a_commit(kernels: Kernels) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        kernels.build("large")


def test_a_process_that_outlives_its_build_holds_the_lock(kernels: Kernels) -> None:
    kernels.build("lasting")
    with (kernels.cache / "commits-lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


_BUILD = """
import sys
from pathlib import Path
from fastenough.virtual.commit_kernels import CommitKernels
from fastenough.virtual.git_repository import open_repository
CommitKernels(open_repository(Path(sys.argv[1])), "arm64", {"HZ": "100"}).build(sys.argv[2], print)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_make_ends_with_the_build(kernels: Kernels, tmp_path: Path, number: signal.Signals) -> None:
    arguments = [sys.executable, "-c", _BUILD, str(tmp_path / "linux"), kernels.ids["endless"]]
    build = subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    assert eventually(lambda: list(kernels.cache.rglob("begun")), 60.0)
    build.send_signal(number)
    build.wait()

    def is_free() -> bool:
        with (kernels.cache / "commits-lock").open() as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    assert eventually(is_free, 60.0)


def test_an_interrupted_copy_is_made_again(kernels: Kernels) -> None:
    folder = find_kernel(kernels.build("one")).image.resolve().parent
    unfinished = folder.with_name(f".{folder.name}")
    folder.rename(unfinished)
    (unfinished / "Image").write_bytes(b"incomplete")
    assert find_kernel(kernels.build("one")).image.resolve().parent == folder
    assert not unfinished.exists()


def test_a_commit_that_does_not_build_leaves_nothing_and_the_next_one_builds(kernels: Kernels) -> None:
    for _ in range(2):
        with pytest.raises(FastenoughError, match=r"broken\.c:7:1: error: no such thing"):
            kernels.build("broken")
    assert not registered_names()
    assert find_kernel(kernels.build("three")).image.read_bytes().endswith(b"three")


def test_a_commit_without_an_option_is_refused(kernels: Kernels) -> None:
    dropped = CommitKernels(kernels.kernels.repository, "arm64", {"DROPPED": "y", "HZ": "100"})
    with pytest.raises(BadInput, match="CONFIG_DROPPED=y"):
        dropped.build(kernels.ids["one"], kernels.steps.append)
