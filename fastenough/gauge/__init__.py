# SPDX-License-Identifier: GPL-2.0-or-later
"""The instrument, as the bench speaks with it: protocol, session, what it measured, how its firmware is written."""
