# SPDX-License-Identifier: GPL-2.0-or-later
"""Who chooses the CPU's frequency."""

from __future__ import annotations

from fastenough.settings.setting import word_of_each_cpu

SETTING = word_of_each_cpu(
    "governor",
    "the frequency governor of every CPU, such as performance",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "scaling_available_governors",
    "the kernel scales no frequencies here (no cpufreq driver)",
)
