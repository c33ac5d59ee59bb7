# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough.ko builds without a warning against every kernel of Debian's we know, and from a DKMS tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fastenough.model import FastenoughError
from fastenough.virtual.module import SOURCES, build_module, first_diagnostic
from fastenough.virtual.packages import fetch, host_arch
from tests.support.virtual_boards import ONE_OF_EACH, OWN_KERNELS, every_kernel

pytestmark = pytest.mark.untimed


def information(module: Path, field: str) -> bytes:
    """One field of a module's information section."""
    start = module.read_bytes().split(b"\0" + field.encode() + b"=", 1)[1]
    return start.split(b"\0", 1)[0]


OTHER_TOOLS = """warning: the compiler differs from the one used to build the kernel
  The kernel was built by: aarch64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0
  You are using:           aarch64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0
warning: pahole version differs from the one used to build the kernel
"""


@pytest.mark.parametrize(
    ("said", "failed", "told"),
    [
        ("", False, None),
        (OTHER_TOOLS, False, None),
        ("a word", False, None),
        ("x.c:1: warning: y", False, "x.c:1: warning: y"),
        ("", True, "make printed no error message"),
        (OTHER_TOOLS, True, "make printed no error message"),
        (
            "/bin/sh: 1: make[1]: *** [a.o] Error 1\nx.c:1: warning: y\nz.c:2:3: error: w\nz.c:4:3: error: v",
            True,
            "z.c:2:3: error: w",
        ),
        (
            f"{OTHER_TOOLS}/bin/sh: 1: exec: /gone: not found\nmake: *** [all] Error 127",
            True,
            "/bin/sh: 1: exec: /gone: not found",
        ),
    ],
)
def test_the_cause_is_told_and_not_what_goes_with_it(said: str, failed: bool, told: str | None) -> None:
    assert first_diagnostic(said, failed) == told


@pytest.mark.parametrize("arch", ["arm64", "amd64"])
@pytest.mark.parametrize("name", every_kernel(*ONE_OF_EACH, among=OWN_KERNELS))
def test_builds_without_a_warning(name: str, arch: str) -> None:
    kernel = fetch(name, arch, image=arch == "arm64")
    magic = information(build_module(kernel), "vermagic").decode()
    assert magic.startswith(f"{kernel.release} ")


def test_a_warning_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "careless"
    folder.mkdir()
    (folder / "Kbuild").write_text("obj-m := careless.o\n")
    (folder / "careless.c").write_text(
        '#include <linux/module.h>\nstatic int unused;\nMODULE_LICENSE("GPL");\nMODULE_DESCRIPTION("careless");\n'
    )
    with pytest.raises(FastenoughError, match=r"does not build for .*unused"):
        build_module(fetch("stock"), folder)


@pytest.mark.skipif(host_arch() != "amd64", reason="builds for the machine it runs on, with amd64 headers")
def test_the_dkms_tree_builds_by_itself(tmp_path: Path) -> None:
    kernel = fetch("stock", "amd64", image=False)
    subprocess.run(["make", "-s", "-C", str(SOURCES), "dkms-tree", f"DESTDIR={tmp_path}"], check=True)
    (tree,) = (tmp_path / "usr/src").iterdir()
    shutil.copytree(tree, tmp_path / "dkms")
    done = subprocess.run(
        ["make", "-s", "-C", str(tmp_path / "dkms"), f"KERNEL={kernel.headers}", "modules"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, (tmp_path / "dkms/fastenough.ko").is_file()) == (0, True), done.stderr
    assert tree.name == f"fastenough-{information(tmp_path / 'dkms/fastenough.ko', 'version').decode()}"
