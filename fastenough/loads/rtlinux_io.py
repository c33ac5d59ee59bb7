# SPDX-License-Identifier: GPL-2.0-or-later
"""Directories of the whole machine are listed, again and again."""

from fastenough.loads.load import Expectation, Load, again_and_again

LOAD = Load(
    name="rtlinux-io",
    source="RTLinux on x86, a case study, figure 1: ls -lR",
    commands=(again_and_again("ls -lR / >/dev/null 2>&1", "[012]"),),
    expects=Expectation(cpu_share=0.002, processes=1),
)
