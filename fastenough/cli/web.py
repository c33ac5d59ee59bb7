# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough web``: the runs of a store or a farm as web pages, served or written as files."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastenough import words
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import existing_store, json_option, store_option
from fastenough.cli.output import print_json, say
from fastenough.model import BadInput

if TYPE_CHECKING:
    from starlette.routing import Route

    from fastenough.farm.tokens import Tokens
    from fastenough.history import History
    from fastenough.store import Store
    from fastenough.web.identity import AccessRules
    from fastenough.web.site import Site

_LISTEN = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(?P<port>\d{1,5})")
_DEFAULT = "127.0.0.1:8731"
Follow = Callable[[], object]


def _address(text: str) -> tuple[str, int]:
    match = _LISTEN.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise BadInput(f"--listen {text} is not ADDRESS:PORT; write it as {_DEFAULT} or [::1]:8731")
    return match["host"].strip("[]"), int(match["port"])


def _bound(host: str, port: int) -> socket.socket:
    """A bound socket; raises BadInput for a wrong address."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        bound.listen()  # so that a client can connect as soon as the address is printed
    except OSError as error:
        raise BadInput(f"--listen {host}:{port}: {error.strerror or error}; use another address or port") from error
    return bound


def _upload_tokens(store: Store | None, tokens: Path | None) -> Tokens | None:
    if tokens is None:
        return None
    if store is None:
        raise BadInput("--uploads requires a store for the recordings; give --store")
    known: Tokens = import_module("fastenough.farm.tokens").Tokens(tokens)
    known.listed()  # an invalid file is reported now
    return known


def _upload_routes(site: Site, tokens: Tokens | None, follow: Follow) -> tuple[list[Route], Follow]:
    """The routes for uploads, and a function that updates the history, also with uploaded recordings."""
    if tokens is None or site.store is None:
        return [], follow
    history, uploads = import_module("fastenough.history"), import_module("fastenough.web.uploads")
    if isinstance(follow, history.HistoryFollower):  # reads the whole store
        return [uploads.upload_route(site.store.path, tokens.known)], follow
    follower = history.UploadFollower(site.history, site.store)
    return [uploads.upload_route(site.store.path, tokens.known, stored=follower.uploaded.append)], follower


def _access_rules(path: Path | None, *, all_boards: bool, out_dir: Path | None) -> AccessRules | None:
    """What each user may see; raises BadInput for an invalid file, and for options that contradict it."""
    if path is None:
        return None
    if all_boards or out_dir is not None:
        raise BadInput(f"--access and {'--all-boards' if all_boards else '--out-dir'} exclude each other; omit one")
    rules: AccessRules = import_module("fastenough.web.identity").read_access(path)
    return rules


def _serve(site: Site, follow: Follow, bound: socket.socket, **named: Any) -> None:
    """``named``: further arguments of `make_app`."""
    server, app = import_module("fastenough.web.server"), import_module("fastenough.web.app")
    server.raise_descriptors()
    server.make_server(app.make_app(site, follow, **named)).run(sockets=[bound])


def _store(path: Path, database: str | None) -> Store | None:
    """The store; None if only the history of a farm is shown."""
    return None if database is not None and not (path / "runs").is_dir() else existing_store(path)


def _history(store: Store | None, database: str | None) -> History:
    """The history; a temporary one for a store that other users can write."""
    kinds = import_module("fastenough.history").History
    if database is not None and not database.startswith("sqlite"):
        opened: History = kinds.later(database, None if store is None else store.path / "history-archive")
    elif store is None:
        opened = kinds.at(database)
    elif database is None and not store.is_private():
        opened = kinds.temporary()
    else:
        opened = kinds.of(store, database)
    return opened


@contextlib.contextmanager
def _open_site(store: Store | None, database: str | None, *, rebuild: bool) -> Iterator[tuple[Site, Follow]]:
    """A public site, and a function that updates its history from the store.

    A farm updates the history in its ``database`` itself; the function then updates only the summaries.
    """
    history_room, site_room = import_module("fastenough.history"), import_module("fastenough.web.site")
    if rebuild and store is None:
        raise BadInput("--rebuild requires a store; give --store")
    history = _history(store, database)
    try:
        if rebuild:
            history_room.rebuild(history, store)
        follow = (
            history_room.HistoryFollower(history, store) if database is None else history_room.SummaryRefresher(history)
        )
        yield site_room.Site(history, history_room.PUBLIC, store), follow
    finally:
        history.close()


def _publish(site: Site, out_dir: Path, as_json: bool) -> None:
    count = import_module("fastenough.web.published").publish(site, out_dir)
    if as_json:
        print_json({"out_dir": str(out_dir), "files": count})
    else:
        say(f"{words.counted(count, 'file')} written to {out_dir}")


def _print_url(url: str, as_json: bool) -> None:
    """Print the address at once."""
    if as_json:
        print_json({"url": url})
    else:
        say(f"{url} (Ctrl-C stops)")
    sys.stdout.flush()


def _caught_up(site: Site, follow: Follow | None, *, all_boards: bool) -> Site:
    """The site with an updated history, for its viewers."""
    if follow is not None:
        follow()
    return replace(site, viewer=import_module("fastenough.history").OWNER, own=False) if all_boards else site


def _is_own(host: str, names: tuple[str, ...], database: str | None) -> bool:
    """Whether only people of this machine use the site: a name is that of a reverse proxy."""
    return not names and database is None and bool(import_module("fastenough.web.addresses").is_loopback(host))


@click.command(cls=Command, example="fastenough web --listen 127.0.0.1:8731")
@click.option(
    "--database",
    metavar="URL",
    help="History of a farm, such as postgresql+psycopg://HOST/NAME  [default: history.sqlite in the "
    "store, kept up to date]",
)
@click.option(
    "--listen", default=_DEFAULT, show_default=True, metavar="ADDRESS:PORT", help="Address and port of the pages."
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Host name to accept, such as that of a reverse proxy; may be repeated. Addresses and localhost are accepted.",
)
@click.option(
    "--access",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Access file: each user sees the boards of their sites, by groups from an authenticating proxy.",
)
@click.option("--all-boards", is_flag=True, help="Also show boards that are not public.")
@click.option(
    "--out-dir",
    "out_dir",
    cls=Option,
    former_names=["--into"],
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the pages to this directory instead of serving them, for any web server.",
)
@click.option("--rebuild", is_flag=True, help="First rebuild the history from the store.")
@click.option(
    "--uploads",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="TOKENS",
    help="Accept uploads with a token of this file (see fastenough farm token).",
)
@click.option("--note", default="", metavar="TEXT", help="Text at the top of every page.")
@store_option
@json_option
def command(
    *,
    database: str | None,
    listen: str,
    names: tuple[str, ...],
    access: Path | None,
    all_boards: bool,
    out_dir: Path | None,
    rebuild: bool,
    uploads: Path | None,
    note: str,
    store_path: Path,
    as_json: bool,
) -> None:
    """Show runs or boards as web pages.

    Serves the runs of a store, or the boards of a farm, until Ctrl-C, on this machine only unless --listen states
    another address.  The pages are read-only, except for --uploads.
    """
    host, port = _address(listen)
    rules = _access_rules(access, all_boards=all_boards, out_dir=out_dir)
    store = _store(store_path, database)
    tokens = _upload_tokens(store, uploads)
    with _open_site(store, database, rebuild=rebuild) as (opened, updater):
        more, follow = _upload_routes(opened, tokens, updater)
        own = out_dir is None and rules is None and _is_own(host, names, database)
        site = replace(opened, note=note, served=out_dir is None, own=own)
        own_history = follow if database is None else None  # a farm's database may be down at first
        if out_dir is not None:
            _publish(_caught_up(site, own_history, all_boards=all_boards), out_dir, as_json)
            return
        with _bound(host, port) as bound:
            site = _caught_up(site, own_history, all_boards=all_boards)
            _print_url(f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}/", as_json)
            _serve(site, follow, bound, more=more, names={host.lower(), *map(str.lower, names)}, rules=rules)
