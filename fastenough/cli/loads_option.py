# SPDX-License-Identifier: GPL-2.0-or-later
"""``--load``: names of loads, and load files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from fastenough.campaign.written import SUFFIX, named_loads
from fastenough.cli.parameters import Names
from fastenough.loads import LOADS, Load


class _NamesOrFiles(Names):
    """Load names; a name with a plan's suffix is a file."""

    def knows(self, name: str) -> bool:
        return super().knows(name) or name.endswith(SUFFIX)


_NAMES = _NamesOrFiles("load", list(LOADS))


class Loads(click.ParamType[dict[str, Load]]):
    """Comma-separated loads by name, in the order given."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Load]:
        if isinstance(value, dict):
            return value
        return named_loads(_NAMES.convert(value, param, ctx))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return _NAMES.shell_complete(ctx, param, incomplete)


def loads_of_files(loads: Mapping[str, Load]) -> dict[str, Load]:
    """The loads that come from files."""
    return {name: load for name, load in loads.items() if name not in LOADS}
