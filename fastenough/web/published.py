# SPDX-License-Identifier: GPL-2.0-or-later
"""Write all pages as files for any web server; each file has the path of its page."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from string import Formatter

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.history import UnknownBoard, board_statuses
from fastenough.model import BadInput
from fastenough.web.addresses import MOST_LETTERS, path_part
from fastenough.web.asset_files import assets
from fastenough.web.pages import PAGES
from fastenough.web.pages.board import view
from fastenough.web.site import NotFound, Page, Site, conclusions_of
from fastenough.web.spans import SPANS

_LIST = "site-files.json"
"""The list of files of this site: files of removed boards are deleted, and no others."""
_MOST_LIST_BYTES = 64 << 20
_NAME = re.compile(r"[A-Za-z0-9_~][A-Za-z0-9._~-]*\Z")
"""A name that is valid as a folder and as an address."""

Named = dict[str, str]


def _boards(site: Site) -> list[str]:
    return sorted(status.board.name for status in board_statuses(site.history, site.viewer, site.now_s))


def _runs(site: Site, boards: Sequence[str]) -> list[str]:
    """The runs that the pages of boards lead to."""
    runs: dict[str, None] = {}
    for name in boards:
        board_view = view(site, name)
        runs |= dict.fromkeys([*(event.run for event in board_view.events), *(band.run for band in board_view.runs)])
    return [run for run in runs if run]


def _values(site: Site) -> Mapping[str, list[str]]:
    """All values of each name in the patterns of pages."""
    boards = _boards(site)
    values = {
        "name": boards,
        "span": list(SPANS),
        "run": _runs(site, boards),
        "conclusion": [conclusion.id for conclusion in conclusions_of(site)],
    }
    return {name: [value for value in mine if len(path_part(value)) <= MOST_LETTERS] for name, mine in values.items()}


def _named(names: Sequence[str], values: Mapping[str, list[str]]) -> Iterator[Named]:
    for chosen in product(*(values[name] for name in names)):
        yield dict(zip(names, chosen, strict=True))


def _by_names(pages: Sequence[Page]) -> dict[tuple[str, ...], list[Page]]:
    """The published pages by the names in their addresses: successive pages of one thing share the data read for it."""
    by_names: dict[tuple[str, ...], list[Page]] = {}
    for page in pages:
        if page.published:
            names = tuple(name for _, name, _, _ in Formatter().parse(page.pattern) if name)
            by_names.setdefault(names, []).append(page)
    return by_names


def addresses(site: Site, pages: Sequence[Page] = PAGES) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The address of every published page, and the function that renders it."""
    values = _values(site)
    for names, alike in _by_names(pages).items():
        for named in _named(names, values):
            for page in alike:
                parts = {key: path_part(value) for key, value in named.items()}
                yield page.pattern.format(**parts), partial(page.make, site, **named)


def files(site: Site, pages: Sequence[Page] = PAGES) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file.  A page that has nothing to show, such as of a run that is not here, has none,
    and neither has the CSV of a recording that is not believed."""
    for address, make in addresses(site, pages):
        with contextlib.suppress(NotFound, UnknownBoard, BadInput):
            yield address.lstrip("/") + ("index.html" if address.endswith("/") else ""), make()
    for name, (_, content) in assets().items():
        yield f"assets/{name}", content


@contextlib.contextmanager
def _below(folder: Folder, parts: Sequence[str]) -> Iterator[Folder]:
    if not parts:
        yield folder
        return
    with folder.below(parts[0], make=True) as inner, _below(inner, parts[1:]) as deepest:
        yield deepest


def _former(folder: Folder, into: Path) -> set[str]:
    """The files of an earlier site in the folder; raises BadInput for a folder with other content."""
    try:
        paths = json.loads(folder.read(_LIST, _MOST_LIST_BYTES))
    except FileNotFoundError:
        if folder.names():
            raise BadInput(f"--out-dir {into}: the folder contains other files; name an empty or new folder") from None
        return set()
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) and _is_ours(path) for path in paths):
        raise BadInput(f"--out-dir {into}: its {_LIST} is invalid; name an empty or new folder")
    return set(paths)


def _is_ours(path: str) -> bool:
    return all(_NAME.match(part) for part in path.split("/"))


def _note(folder: Folder, paths: set[str]) -> None:
    folder.replace(_LIST, json.dumps(sorted(paths), indent=0).encode())


def _remove(folder: Folder, path: str) -> None:
    """A file, and the folders that are empty without it."""
    first, _, rest = path.partition("/")
    with contextlib.suppress(FileNotFoundError):
        if not rest:
            folder.remove(first)
            return
        with folder.below(first) as inner:
            _remove(inner, rest)
            empty = not inner.names()
        if empty:
            folder.remove_tree(first)


def publish(site: Site, into: Path, pages: Sequence[Page] = PAGES) -> int:
    """Write the site into a folder that is new, empty or holds an earlier version; returns the number of files.

    Each file is written under a temporary name and renamed, so that a web server never sends a partial one; the first
    page is last.  Raises BadInput if the folder cannot be written.
    """
    try:
        with Folder.at(into, make=True) as folder:
            before = _former(folder, into)
            written: set[str] = set()
            last: dict[str, bytes] = {}
            for path, content in files(site, pages):
                if "/" in path:
                    _write(folder, path, content)
                else:
                    last[path] = content
                written.add(path)
                if len(written) % 100 == 0:
                    _note(folder, before | written)
            _note(folder, before | written)
            for path, content in last.items():
                _write(folder, path, content)
            for path in sorted(before - written):
                _remove(folder, path)
            _note(folder, written)
    except Untrusted as error:
        raise BadInput(f"--out-dir {into}: {error}") from error
    except OSError as error:
        raise BadInput(f"--out-dir {into}: cannot write the site: {error.strerror}; name another folder") from error
    return len(written)


def _write(folder: Folder, path: str, content: bytes) -> None:
    *parts, name = path.split("/")
    with _below(folder, parts) as below:
        below.replace(name, content)
