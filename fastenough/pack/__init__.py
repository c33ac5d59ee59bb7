# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence packs (docs/pack.md): recordings, question and verdict in one file that anyone can verify."""
