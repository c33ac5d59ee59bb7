# SPDX-License-Identifier: GPL-2.0-or-later
"""Imported, as the first thing, by the process that acts are forked from, and by nobody else: it ends with the farm.

By itself it would end once it sees that the farm has gone, and only after what its libraries do at their end.
"""

from __future__ import annotations

from fastenough.farm.parent_death import end_with_parent

end_with_parent()
