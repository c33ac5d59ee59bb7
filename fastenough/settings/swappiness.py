# SPDX-License-Identifier: GPL-2.0-or-later
"""How eagerly memory is swapped out."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in("swappiness", "how eagerly the kernel swaps out, 0 to 200", "/proc/sys/vm/swappiness", 0, 200)
