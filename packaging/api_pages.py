# SPDX-License-Identifier: GPL-2.0-or-later
"""Generate the pages of the documentation site that have no file in docs/: the start page and the API.

mkdocs runs this file (`mkdocs.yml`, plugin gen-files).  The start page is README.md with its links rewritten.  Each
package of fastenough/ gets one page with the docstrings of all its modules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import mkdocs_gen_files

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fastenough"
OUTSIDE_DOCS = re.compile(r"\[([^\]]+)\]\((?!docs/|https?:|#)[^)]+\)")
"""A link to a file of the checkout that is no page: its text is kept, the link is not."""


def start_page(readme: str) -> str:
    """Return README.md with links relative to docs/ and without links to files that are not part of the site."""
    return OUTSIDE_DOCS.sub(r"\1", readme).replace("](docs/", "](")


def modules_of(folder: Path) -> Iterator[str]:
    """Yield the dotted names of a package and of its modules, sub-packages included, except migrations."""
    for path in sorted(folder.rglob("*.py")):
        if "migrations" not in path.parts:
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def summary_of(init: Path) -> str:
    """Return the first line of a package's docstring."""
    return (ast.get_docstring(ast.parse(init.read_text())) or "").partition("\n")[0]


def write(path: str, text: str) -> None:
    with mkdocs_gen_files.open(path, "w") as page:
        page.write(text)


def write_api() -> None:
    """Write api/index.md and one page for each package."""
    rows = []
    for init in sorted(PACKAGE.glob("*/__init__.py")):
        name = init.parent.name
        rows.append(f"| [{name}]({name}.md) | {summary_of(init)} |")
        entries = "\n\n".join(f"::: {module}" for module in modules_of(init.parent))
        write(f"api/{name}.md", f"# fastenough.{name}\n\n{entries}\n")
    write(
        "api/index.md",
        "# API\n\nOne page for each package; [the map](../overview.md) shows how they depend on each "
        "other.\n\n| package | contents |\n|---|---|\n" + "\n".join(rows) + "\n",
    )


write("index.md", start_page((ROOT / "README.md").read_text()))
write_api()
