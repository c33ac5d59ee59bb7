# SPDX-License-Identifier: GPL-2.0-or-later
# Written by Yocto's manual and NOT YET BUILT by its authors, who have no bitbake where they test.  Put it into a layer of yours
# as recipes-rt/fastenough/fastenough_0.2.0.bb, with the released archive beside it in files/.
SUMMARY = "How late real-time tasks of this board are, and where in the kernel the time goes"
LICENSE = "GPL-2.0-or-later"
LIC_FILES_CHKSUM = "file://COPYING;md5=b234ee4d69f5fce4486a80fdaf4a4263"

SRC_URI = "file://fastenough-${PV}.tar.xz"

inherit meson pkgconfig

PACKAGECONFIG ??= ""
# The monitor needs clang and bpftool on the host (layer meta-clang), and CONFIG_DEBUG_INFO_BTF in the board's kernel.
PACKAGECONFIG[monitor] = "-Dmonitor=enabled,-Dmonitor=disabled,libbpf clang-native bpftool-native"

# Images have no static C library unless they ask for one.
EXTRA_OEMESON = "-Dpython_package=false -Dprobe_static=false"

PACKAGES =+ "${PN}-monitor"
FILES:${PN}-monitor = "${bindir}/fastenough-monitor ${bindir}/fastenough-inject"
