# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether equal pages are merged."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in("page-merging", "1: equal pages are merged; 0: no more are", "/sys/kernel/mm/ksm/run", 0, 1)
