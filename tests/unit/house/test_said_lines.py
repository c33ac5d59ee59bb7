# SPDX-License-Identifier: GPL-2.0-or-later
"""What consoles, ssh and labgrid said is told in a sentence of ours, whatever it was."""

from __future__ import annotations

from fastenough.words import LINE_CHARS, output_lines


def test_hostile_lines_are_printable_and_short() -> None:
    said = b"\x1b]0;title\x07\x9b31m\xe2\x80\xae\xf0\x28" + b"x" * 5000 + b"\n" + b"y\r\n\r\n" * 100
    first, *others = output_lines(said)
    assert len(first) == LINE_CHARS
    assert first.isprintable()
    assert others == ["y"] * 100


def test_colours_leave_no_trace() -> None:
    assert output_lines(b"\x1b[31mKernel panic\x1b[0m: \xe2\x80\xa8why\n \t\n") == ["Kernel panic:  why"]
