# SPDX-License-Identifier: GPL-2.0-or-later
"""Values in addresses: links have those of their page, and times that no calendar has are refused."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastenough.web.selection import Selection


@given(st.integers(0, 10**15))
@example(0)
@example(1_234_567)
@example(1_000_000)
def test_a_link_to_another_page_has_the_same_limit(within_ns: int) -> None:
    first = Selection.of((("within", f"{within_ns / 1000:.3f}"),))
    second = Selection.of(tuple(parse_qsl(first.on_page(2).removeprefix("?"))))
    assert (first.wanted.within_ns, second.wanted.within_ns) == (within_ns, within_ns)
    assert (second.wanted, second.page) == (first.wanted, 2)


@pytest.mark.parametrize(("given_text", "text"), [("100", "100"), ("0.5", "0.5"), ("1e3", "1000"), ("0", "0")])
def test_a_limit_in_a_link_is_short(given_text: str, text: str) -> None:
    assert Selection.of((("within", given_text),)).query == f"?within={text}"
