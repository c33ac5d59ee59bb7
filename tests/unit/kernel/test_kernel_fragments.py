# SPDX-License-Identifier: GPL-2.0-or-later
"""The fragments of target/kernel name all that a guest needs, and none of them takes back what another one sets."""

from __future__ import annotations

import re

import pytest

from fastenough.virtual.kernel_config import ARCHITECTURES, required_options
from tests.support.tools import ROOT

FOLDER = ROOT / "target" / "kernel"
SET, NOT_SET = re.compile(r"CONFIG_([A-Z0-9_]+)=[ym]"), re.compile(r"# CONFIG_([A-Z0-9_]+) is not set")
LOST_ON_ALLNOCONFIG = {
    "MODULES",
    "BINFMT_ELF",
    "PROC_FS",
    "SYSFS",
    "TTY",
    "HIGH_RES_TIMERS",
    "VIRTIO_CONSOLE",
    "GPIO_CDEV",
    "DEVTMPFS",
    "BLK_DEV_INITRD",
    "RD_GZIP",
}
BACK_ON_DEFCONFIG = {"MIGRATION", "COMPACTION", "CPU_FREQ"}
MACHINES = {
    "guest-arm64": {"VIRTIO_MMIO", "SERIAL_AMBA_PL011_CONSOLE", "GPIO_PL061"},
    "guest-x86-64": {"VIRTIO_PCI", "PCI_MSI", "SERIAL_8250_CONSOLE"},
}


def _options(name: str) -> tuple[set[str], set[str]]:
    """Those that a fragment sets, and those that it takes back; every other line is a comment."""
    on, off = set(), set()
    for line in (FOLDER / f"{name}.config").read_text().splitlines():
        if found := SET.fullmatch(line):
            on.add(found[1])
        elif found := NOT_SET.fullmatch(line):
            off.add(found[1])
        else:
            assert re.fullmatch(r"# (?!CONFIG_).*", line), line
    return on, off


def test_the_driver_of_the_port_is_a_module_on_deterministic_boards() -> None:
    for arch in ARCHITECTURES:
        assert required_options(arch, False)["VIRTIO_CONSOLE"] == "m"


def test_what_allnoconfig_and_defconfig_take_from_a_guest_is_named() -> None:
    assert _options("guest")[0] >= LOST_ON_ALLNOCONFIG
    assert _options("dual-kernel") == (set(), BACK_ON_DEFCONFIG | _options("dual-kernel")[1])
    assert _options("rt")[0] == {"EXPERT", "PREEMPT_RT"}


@pytest.mark.parametrize("machine", MACHINES)
def test_no_fragment_takes_back_what_another_sets(machine: str) -> None:
    assert _options(machine)[0] >= MACHINES[machine]
    named = [_options(name) for name in ("guest", machine, "deterministic", "rt", "dual-kernel")]
    on, off = ({option for options in named for option in options[which]} for which in (0, 1))
    assert not on & off


def test_every_fragment_is_in_the_page_that_says_how_to_merge_them() -> None:
    page = (ROOT / "docs" / "virtual-bench.md").read_text()
    assert [path.name for path in FOLDER.glob("*.config") if f"`{path.name}`" not in page] == []
