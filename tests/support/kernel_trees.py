# SPDX-License-Identifier: GPL-2.0-or-later
"""A source tree of a kernel whose Makefile writes an image; the tools of its build are stand-ins, only make is real."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fastenough.virtual import custom_kernels
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.machines import GuestMachine

TOOLS = ("gcc", "aarch64-linux-gnu-gcc", "flex", "bison", "bc", "xz")
PROGRAMS = ("make", "sh", "grep", "mkdir", "head", "printf", "touch", "test", "cat", "git", "setpriv", "sleep")
"""Programs that the builds use."""
MAKEFILE = r"""
INSTALLED = $(INSTALL_MOD_PATH)/lib/modules/6.99$(LOCALVERSION)
allnoconfig:
	@grep -v CONFIG_DROPPED $(KCONFIG_ALLCONFIG) >$(O)/.config
	@mkdir -p $(O)/include/generated
	@echo '#define UTS_RELEASE "6.99$(LOCALVERSION)"' >$(O)/include/generated/utsrelease.h
	@printf 'modules:\n\t@cat $(O)/arch/arm64/boot/Image >$$(M)/test.ko\n' >$(O)/Makefile
Image:
	@test ! -e $(CURDIR)/broken.c || { echo 'broken.c:7:1: error: no such thing' >&2; false; }
	@mkdir -p $(O)/arch/arm64/boot && echo "$(ARCH) $(CROSS_COMPILE) $(CC) $(KBUILD_BUILD_HOST)" >>$(O)/made
	@head -c 56 /dev/zero >$(O)/arch/arm64/boot/Image
	@printf 'ARM\144Linux version 6.99%s (bench)' $(LOCALVERSION) >>$(O)/arch/arm64/boot/Image
	@if test -e $(CURDIR)/content; then cat $(CURDIR)/content >>$(O)/arch/arm64/boot/Image; fi
modules:
modules_install:
	@mkdir -p $(INSTALLED)
	@touch $(INSTALLED)/modules.builtin
	@if test -e $(CURDIR)/module; then cat $(CURDIR)/module >$(INSTALLED)/test.ko; fi
"""
"""Its release is 6.99.  It does not build beside a file ``broken.c``; a file ``content`` becomes part of the image, and
a file ``module`` becomes a module ``test``.  Each module that is built for it is a copy of its image."""


def install_tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder of the tools all of PATH, with an empty cache beside it, and need neither apt nor QEMU."""
    tools = folder / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    for name in PROGRAMS:
        path = shutil.which(name)
        assert path is not None
        (tools / name).symlink_to(path)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("FASTENOUGH_CACHE", str(folder / "cache"))
    monkeypatch.setattr(GuestMachine, "require", lambda machine: None)
    debian = Kernel("stock", "arm64", "6.1", folder / "debian")
    monkeypatch.setattr(custom_kernels, "fetch", lambda name, **_: debian)
