# SPDX-License-Identifier: GPL-2.0-or-later
"""The website as an ASGI application.  It is read-only, except for uploads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fastenough.history import NOBODY, OWNER, UnknownBoard
from fastenough.model import FastenoughError, Unavailable
from fastenough.web.addresses import is_served_as, name_of_part
from fastenough.web.api import ApiError
from fastenough.web.asset_files import assets
from fastenough.web.identity import AccessDenied, AccessRules, Identity, identity_of
from fastenough.web.live import LiveStreams
from fastenough.web.page_cache import FRESH_S, CachedPage, GrowingPage, PageCache, packed_parts
from fastenough.web.pages import PAGES
from fastenough.web.pages.run import prepare
from fastenough.web.rendering import as_json, message
from fastenough.web.selection import Selection
from fastenough.web.server import most_connections
from fastenough.web.site import HTML, JSON, NotFound, Page, Site, SiteRole

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
READING = ["GET", "HEAD"]
FOLLOW_S = 1.0
PATIENCE_S = 45.0
"""Time limit of a page; a reverse proxy gives up after a minute."""
_ASSET_FRESH_S = 600
_LISTENS_S = 600.0
"""Longest time of a live connection of a user, whose access is then checked again."""
_LISTENERS_SHARE = 4
"""Users with the same sites have at most this part (1/4) of all live connections."""
_IDENTITY = "fastenough.identity"
_OWN_TOKEN = "/upload/"
"""Beginning of addresses that need no user: their route checks a token, and shows no board."""
_LOG = logging.getLogger(__name__)
_Made = TypeVar("_Made")


def _cached_response(request: Request, cached: CachedPage, kind: str, fresh_s: float = FRESH_S) -> Response:
    packs = cached.packed is not None and "gzip" in request.headers.get("accept-encoding", "")
    tag = f'"{cached.tag}{"-gzip" if packs else ""}"'
    headers = SAFE | {"ETag": tag, "Cache-Control": f"max-age={fresh_s:.0f}", "Vary": "Accept-Encoding"}
    if tag in [known.strip().removeprefix("W/") for known in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(cached.packed if packs else cached.body, media_type=None, headers=headers | {"Content-Type": kind})


def _message_page(status: int, title: str, text: str) -> Response:
    return Response(message(title, text), status, headers=SAFE | {"Content-Type": HTML})


def _not_found() -> Response:
    """The response for a missing page, identical for a page that the viewer may not see."""
    return _message_page(404, "Not found", "No page exists at this address. The first page lists all boards.")


def _problem(status: int, text: str) -> Response:
    title = "Access refused" if status == 403 else "Invalid request"
    return _not_found() if status == 404 else _message_page(status, title, text)


def _api_problem(status: int, text: str) -> Response:
    """As JSON, for programs."""
    body = as_json(ApiError(text or "no such board"))
    return Response(body, status, headers=SAFE | {"Content-Type": JSON})


def _query_of(request: Request) -> tuple[tuple[str, str], ...]:
    return tuple(request.query_params.multi_items())


def _unavailable(why: str, *, is_api: bool) -> Response:
    """The reason goes to the log only, because it may name private boards."""
    _LOG.warning("page unavailable: %s", why)
    text = "The history database does not respond. No data is lost. Try again in a minute."
    response = _api_problem(503, text) if is_api else _message_page(503, "Temporarily unavailable", text)
    response.headers["Retry-After"] = "60"
    return response


def _page_response(request: Request, page: CachedPage | GrowingPage, kind: str, patience_s: float) -> Response:
    """Send a complete page, or the parts of a page while it is made; if making fails, the connection is closed."""
    if isinstance(page, CachedPage):
        return _cached_response(request, page, kind)
    headers = SAFE | {"Cache-Control": f"max-age={FRESH_S:.0f}", "Vary": "Accept-Encoding", "Content-Type": kind}
    parts = page.parts(patience_s)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return StreamingResponse(packed_parts(parts), headers=headers | {"Content-Encoding": "gzip"})
    return StreamingResponse(parts, headers=headers)


async def _page(
    cache: PageCache, page: Page, address: Hashable, site: Site, named: Mapping[str, object]
) -> CachedPage | GrowingPage:
    if page.parts is None:
        return await cache.get(address, partial(page.make, site, **named))
    return await cache.begun(address, partial(page.parts, site, **named))


async def _within(patience_s: float, making: Coroutine[Any, Any, _Made]) -> _Made:
    """Wait for a page until a time-out; its thread continues, so a database that hangs occupies one thread per page."""
    return await asyncio.wait_for(asyncio.shield(making), patience_s)


async def _site_for(request: Request, site: Site, role: SiteRole = SiteRole.VIEWER) -> Site:
    """The site as the user of a request sees it; raises AccessDenied if the user has the role at no site.

    Every route takes its site from here.  If users have roles, ``site`` itself shows no board.
    """
    identity: Identity | None = request.scope.get(_IDENTITY)
    if identity is None:
        return await run_in_threadpool(site.present) if site.own else site
    viewer = identity.viewer(role)
    if viewer == NOBODY:
        raise AccessDenied(f"This address requires the role {role}.")
    return replace(site, viewer=viewer, own=False)


def _status_of(error: Exception) -> int:
    return 403 if isinstance(error, AccessDenied) else 400


def _route(whole_site: Site, cache: PageCache, page: Page, patience_s: float) -> Route:
    async def answer(request: Request) -> Response:
        is_api = page.pattern.startswith("/api/")
        problem = _api_problem if is_api else _problem
        names = {key: name_of_part(part) for key, part in request.path_params.items()}
        if "\0" in "".join(names.values()):  # no name has one, and PostgreSQL refuses the question
            return problem(404, "")
        named: dict[str, object] = dict(names)
        if page.asks:
            named["query"] = _query_of(request)
        # as sent: request.url ends the query at a '#', behind which the page still reads parameters
        query = request.scope["query_string"] if page.asks else b""
        try:
            site = await _within(patience_s, _site_for(request, whole_site, page.role))
            address = site.viewer, request.scope["path"], query
            made = await _within(patience_s, _page(cache, page, address, site, named))
        except (NotFound, UnknownBoard):
            return problem(404, "")
        except Unavailable as error:
            return _unavailable(str(error), is_api=is_api)
        except TimeoutError:
            return _unavailable(f"{page.pattern} was not generated within {patience_s:g} s", is_api=is_api)
        except (AccessDenied, FastenoughError) as error:
            return problem(_status_of(error), str(error))
        return _page_response(request, made, page.kind, patience_s)

    return Route(page.pattern, answer, methods=READING)


def _asset_route(name: str, kind: str, asset: CachedPage) -> Route:
    async def answer(request: Request) -> Response:
        return _cached_response(request, asset, kind, _ASSET_FRESH_S)

    return Route(f"/assets/{name}", answer, methods=READING)


async def _follow(follow: Callable[[], object]) -> None:
    """Update the history until cancelled; a failed update is repeated."""
    while True:
        await asyncio.sleep(FOLLOW_S)
        try:
            await run_in_threadpool(follow)
        except FastenoughError as error:
            _LOG.warning("history update failed: %s", error)
        except Exception:  # the server continues; pages show the age of their data
            _LOG.warning("history update failed", exc_info=True)


def _prepare(site: Site) -> None:
    prepare(site.present())


def _failed(_: Request, error: Exception) -> Response:
    _LOG.error("page generation failed", exc_info=error)
    return _message_page(
        500,
        "Internal error",
        "This page could not be generated. The server log contains the cause. Other pages are not affected.",
    )


def _refused(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code != 404:
        response = _message_page(error.status_code, "Method not allowed", "This site is read-only. Use GET or HEAD.")
        response.headers.update(error.headers or {})
        return response
    return _not_found()


class _HostCheck:
    """Refuse requests for a host name that is not one of the site's, before anything else."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_served_as(Request(scope).headers.get("host", ""), self._names):
            await _message_page(
                421,
                "Unknown host name",
                "This site is not served under this host name. Start it with fastenough web --name NAME, or use its "
                "IP address.",
            )(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class _AccessCheck:
    """Find the user of each request before a route receives it, and refuse requests without a user."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_OWN_TOKEN):
            await self._app(scope, receive, send)
            return

        async def send_uncached(message: Message) -> None:
            """Forbid caches to give the answer to another user, or to the same one without validation."""
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Cache-Control"] = "private, no-cache"
            await send(message)

        identity = identity_of(self._rules, scope)
        if identity is None:
            problem = _api_problem if scope["path"].startswith("/api/") else _problem
            refused = problem(403, "Sign in at the address of this site, as a member of one of its groups.")
            await refused(scope, receive, send_uncached)
        else:
            await self._app({**scope, _IDENTITY: identity}, receive, send_uncached)


def _events_route(whole_site: Site, streams: LiveStreams, listens_s: float | None) -> Route:
    async def events(request: Request) -> Response:
        """Never packed: a compressor would hold events back."""
        try:
            site, selection = await _site_for(request, whole_site), Selection.of(_query_of(request))
        except Unavailable as error:
            return _unavailable(str(error), is_api=False)
        except (AccessDenied, FastenoughError) as error:
            return _problem(_status_of(error), str(error))
        most = most_connections() // 2
        share = most if listens_s is None else most // _LISTENERS_SHARE
        free = streams.listeners < most and streams.listeners_of(site.viewer) < share
        live = streams.stream(site, selection) if free else None
        if live is None:
            return _message_page(
                503,
                "Too many live pages",
                "The limit of live connections or selections is reached. Other pages still work.",
            )
        return StreamingResponse(
            live.listen(listens_s),
            media_type="text/event-stream",
            headers=SAFE | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return Route("/events", events, methods=["GET"])


def make_app(
    site: Site,
    follow: Callable[[], object] | None = None,
    pages: Sequence[Page] = PAGES,
    more: Sequence[Route] = (),
    names: Collection[str] = (),
    *,
    rules: AccessRules | None = None,
    patience_s: float = PATIENCE_S,
) -> Starlette:
    """The site as an application.

    ``follow`` is called once a second to update the history.  ``more``: routes beside the pages.  ``names``: accepted
    host names in lower case, besides addresses and localhost.  ``rules``: what each user may see; without them, all
    see what the viewer of ``site`` sees.  ``patience_s``: time limit of a page.
    """
    streams, cache = LiveStreams(), PageCache()
    prepared = site if rules is None else replace(site, viewer=OWNER, own=False)
    base_site = site if rules is None else replace(site, viewer=NOBODY, own=False)

    @contextlib.asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(run_in_threadpool(_prepare, prepared))]
        if follow is not None:
            tasks.append(asyncio.create_task(_follow(follow)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await streams.end()

    routes = [
        _events_route(base_site, streams, None if rules is None else _LISTENS_S),
        *more,
        *(_asset_route(name, kind, CachedPage.of(content)) for name, (kind, content) in assets().items()),
        *(_route(base_site, cache, page, patience_s) for page in pages),
    ]
    checks = [Middleware(_HostCheck, names=names)]
    if rules is not None:
        checks.append(Middleware(_AccessCheck, rules=rules))
    return Starlette(
        routes=routes,
        lifespan=running,
        middleware=checks,
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
