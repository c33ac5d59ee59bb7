# SPDX-License-Identifier: GPL-2.0-or-later
"""How eagerly memory is compacted ahead of need."""

from __future__ import annotations

from fastenough.settings.setting import number_in

SETTING = number_in(
    "compaction",
    "how eagerly memory is compacted ahead of need, 0 to 100",
    "/proc/sys/vm/compaction_proactiveness",
    0,
    100,
)
