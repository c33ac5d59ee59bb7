# SPDX-License-Identifier: GPL-2.0-or-later
"""The farm: switches, measures and pulls many boards for years, in processes that can be killed at any time."""
