# SPDX-License-Identifier: GPL-2.0-or-later
"""Search for the load with the worst latency; pure: depends only on its input."""
