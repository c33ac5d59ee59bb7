# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for the load that a machine takes worst: pure, of what it was told alone."""
