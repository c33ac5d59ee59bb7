# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan argument: a file, or the name of a plan that comes with fastenough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fastenough.campaign.shipped import shipped


class PlanFile(click.Path):
    """A path; a bare word that is not a file is the name of a shipped plan."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if path.name != str(value) or path.suffix or path.exists():
            return super().convert(value, param, ctx)
        plans = shipped()
        if str(value) not in plans:
            self.fail(
                f"no file {value}, and no shipped plan of that name; shipped plans: {', '.join(plans)}",
                param,
                ctx,
            )
        return plans[str(value)]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        names = [CompletionItem(name) for name in shipped() if name.startswith(incomplete)]
        return [*names, *super().shell_complete(ctx, param, incomplete)]
