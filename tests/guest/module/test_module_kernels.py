# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough.ko builds for Debian's kernels from 5.10 to 7.x, stock and rt, on three architectures.

``make bench`` builds for all of them (``pytest -m matrix``), ``make check-slow`` for the oldest and the newest.
"""

from __future__ import annotations

import pytest

from fastenough.model import FastenoughError, NotApplicable
from fastenough.virtual.kernels import KERNELS
from fastenough.virtual.module import SOURCES, build_module
from fastenough.virtual.packages import GUEST_ARCH, fetch
from tests.guest.module.test_module_build import information

pytestmark = pytest.mark.untimed

FIRST = [("stock-5.10", "armhf"), ("rt-sid", "arm64")]
REST = [
    (name, arch)
    for name, origin in KERNELS.items()
    for arch in ("armhf", "arm64", "amd64")
    if (origin.suite or arch == "armhf") and origin.arch == GUEST_ARCH and (name, arch) not in FIRST
]
"""test_module_build.py has the rest of this machine's own release."""


@pytest.mark.parametrize(("name", "arch"), [*FIRST, *(pytest.param(*each, marks=pytest.mark.matrix) for each in REST)])
def test_the_modules_build(name: str, arch: str) -> None:
    """Without a warning, and for that kernel."""
    try:
        kernel = fetch(name, arch, image=False)
    except FastenoughError as reason:
        pytest.skip(f"there are no headers of {name} for {arch}: {reason}")
    number = name.partition("-")[2]
    assert kernel.release.startswith("" if number in ("", "sid") else f"{number}.")
    for folder in (SOURCES, SOURCES / "inject", SOURCES / "pins"):
        try:
            module = build_module(kernel, folder)
        except NotApplicable as reason:
            pytest.skip(str(reason))
        assert information(module, "vermagic").decode().startswith(f"{kernel.release} ")


def test_what_is_said_is_the_cause() -> None:
    """Not make's own last line, which only says that there was one."""
    with pytest.raises(FastenoughError, match=r"no-such-compiler.*not found"):
        build_module(fetch("stock"), SOURCES, ["CC=no-such-compiler"])
