# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual bench (SPEC section 12): Debian's kernels in QEMU, their pins on a socket, no hardware."""
