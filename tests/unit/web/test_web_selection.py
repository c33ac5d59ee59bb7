# SPDX-License-Identifier: GPL-2.0-or-later
"""Values in addresses: links have those of their page, and times that no calendar has are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastenough.history import OWNER, History, declare
from fastenough.model import BadInput
from fastenough.web.pages import figures
from fastenough.web.selection import Selection
from fastenough.web.site import Site


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


@pytest.mark.check
def test_a_time_without_a_next_month_is_refused(tmp_path: Path) -> None:
    """It was an internal error: there is no year 10000."""
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    declare(history, "gate")
    site = Site(history, OWNER)
    (page,) = (page for page in figures.PAGES if page.pattern.endswith("/selection.json"))
    december_s = int(datetime(9999, 12, 1, tzinfo=UTC).timestamp())
    for end_s in (december_s, december_s + 31 * 86400 - 1):
        with pytest.raises(BadInput, match="end is missing or invalid"):
            page.make(site, name="gate", query=[("begin", str(december_s - 86400)), ("end", str(end_s))])
    query = [("begin", str(december_s - 86400)), ("end", str(december_s - 1))]
    assert b'"events":[]' in page.make(site, name="gate", query=query)
    history.close()
