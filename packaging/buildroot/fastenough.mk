################################################################################
#
# fastenough
#
################################################################################

# SPDX-License-Identifier: GPL-2.0-or-later
# Written by Buildroot's manual and NOT YET BUILT by its authors, who have no Buildroot where they test.  Copy this folder to
# package/fastenough with the fastenough.hash that "make release" writes beside the archive, add its Config.in to
# package/Config.in, and name where the archive lies:
#   make FASTENOUGH_SITE=file:///where/it/lies

FASTENOUGH_VERSION = 0.2.0
FASTENOUGH_SOURCE = fastenough-$(FASTENOUGH_VERSION).tar.xz
FASTENOUGH_SITE ?= file://$(TOPDIR)/..
FASTENOUGH_LICENSE = GPL-2.0-or-later
FASTENOUGH_LICENSE_FILES = COPYING

# One file without dependencies where the toolchain can link statically.
FASTENOUGH_CONF_OPTS = \
	-Dpython_package=false \
	-Dprobe_static=$(if $(BR2_SHARED_LIBS),false,true)

ifeq ($(BR2_PACKAGE_FASTENOUGH_MONITOR),y)
FASTENOUGH_DEPENDENCIES += libbpf host-bpftool
FASTENOUGH_CONF_OPTS += -Dmonitor=enabled
else
FASTENOUGH_CONF_OPTS += -Dmonitor=disabled
endif

$(eval $(meson-package))
