# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments: a board, an instrument beside it, and what each of them says of the same acts."""
