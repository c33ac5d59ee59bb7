# SPDX-License-Identifier: GPL-2.0-or-later
"""Histograms as CSV: a line for each bucket; no cell is a formula in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from fastenough.exchange.rows import COLUMNS, rows
from fastenough.recording import Recording
from fastenough.words import no_formula


def _cell(value: object) -> object:
    return no_formula(value) if isinstance(value, str) else value


def export(recordings: Sequence[Recording]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in row] for row in rows(recordings))
    return text.getvalue().encode()
