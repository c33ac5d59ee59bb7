# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor prefers where it chooses its frequency itself."""

from __future__ import annotations

from fastenough.settings.setting import word_of_each_cpu

SETTING = word_of_each_cpu(
    "energy-preference",
    "what a processor prefers that chooses its frequency itself, such as performance",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/energy_performance_preference",
    "energy_performance_available_preferences",
    "the processor chooses no frequency by itself here (no energy_performance_preference)",
)
