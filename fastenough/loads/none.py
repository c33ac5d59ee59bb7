# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing in the background: the board as it is."""

from fastenough.loads.load import Load

LOAD = Load(
    name="none",
    source="Enea, Optimizing for real-time on the P2041, table A.2, column no stress",
)
