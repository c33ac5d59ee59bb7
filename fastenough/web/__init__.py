# SPDX-License-Identifier: GPL-2.0-or-later
"""The website of a store or a farm."""
