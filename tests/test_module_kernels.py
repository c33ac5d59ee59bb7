# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough.ko builds for Debian's kernels from 5.10 to 7.x, stock and rt, on three architectures.

``make bench`` builds for all of them (``pytest -m matrix``), ``make check`` for one old and one new.
"""

from __future__ import annotations

import pytest
from kernel_headers import OTHER_TOOLS, headers
from test_module_build import information

from fastenough.model import FastenoughError, NotApplicable
from fastenough.virtual.module import SOURCES, build_module
from fastenough.virtual.packages import KERNELS, Kernel, fetch

OLD, NEW = "bullseye", "sid"
FIRST = [(OLD, "armmp", "armhf"), (NEW, "rt-arm64", "arm64")]
REST = [(OLD, "rt-armmp", "armhf"), (OLD, "arm64", "arm64"), (OLD, "rt-arm64", "arm64"), (OLD, "amd64", "amd64"),
        (OLD, "rt-amd64", "amd64"), (NEW, "armmp", "armhf"), (NEW, "arm64", "arm64"), (NEW, "amd64", "amd64"),
        (NEW, "rt-amd64", "amd64")]


def builds(kernel: Kernel, *variables: str) -> None:
    """Both modules, without a warning and for that kernel."""
    for folder in (SOURCES, SOURCES / "inject"):
        try:
            module = build_module(kernel, folder, variables)
        except NotApplicable as reason:
            pytest.skip(str(reason))
        assert information(module, "vermagic").decode().startswith(f"{kernel.release} ")


@pytest.mark.parametrize(("suite", "flavour", "arch"), [*FIRST, *(pytest.param(*each, marks=pytest.mark.matrix)
                                                                 for each in REST)])
def test_builds_for_other_releases(suite: str, flavour: str, arch: str) -> None:
    try:
        kernel = headers(suite, flavour, arch)
    except FastenoughError as reason:
        pytest.skip(f"there are no headers of {suite}'s {flavour}: {reason}")
    assert kernel.release.startswith({OLD: "5.10.", NEW: "7."}[suite])
    builds(kernel, *(OTHER_TOOLS if suite == NEW else ()))


@pytest.mark.parametrize("name", ["stock", *(pytest.param(name, marks=pytest.mark.matrix)
                                             for name in KERNELS if name != "stock")])
def test_builds_for_32_bit_arm(name: str) -> None:
    try:
        kernel = fetch(name, "armhf", image=False)
    except FastenoughError as reason:
        pytest.skip(f"there are no headers of {name} for armhf: {reason}")
    builds(kernel)


def test_what_is_said_is_the_cause() -> None:
    """Not make's own last line, which only says that there was one."""
    with pytest.raises(FastenoughError, match=r"no-such-compiler.*not found"):
        build_module(fetch("stock"), SOURCES, ["CC=no-such-compiler"])
