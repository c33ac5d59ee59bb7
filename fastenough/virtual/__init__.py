# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual bench: Debian's kernels in QEMU, their pins on a socket, no hardware."""
