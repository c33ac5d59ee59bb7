# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough: is this Linux fast enough for this real-time job, and how sure can we be?"""

__version__ = "0.2.0"
