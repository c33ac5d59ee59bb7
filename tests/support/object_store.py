# SPDX-License-Identifier: GPL-2.0-or-later
"""An object store on loopback, as much of S3's protocol as an archive uses, in the memory of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote
from xml.sax.saxutils import escape

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


async def _content(request: Request) -> bytes:
    """The body, without the frames that clients put around its blocks to append a checksum."""
    body = await request.body()
    if "aws-chunked" not in request.headers.get("content-encoding", ""):
        return body
    blocks = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if not length:
            break
        blocks.append(body[:length])
        body = body[length + 2 :]
    return b"".join(blocks)


class ObjectStore:
    """Objects by ``BUCKET/KEY``."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self._parts: dict[str, dict[int, bytes]] = {}

    async def answer(self, request: Request) -> Response:
        path = unquote(request.url.path).strip("/")
        if "partNumber" in request.query_params:
            self._parts.setdefault(path, {})[int(request.query_params["partNumber"])] = await _content(request)
            return _xml("")
        if request.method == "POST":
            return self._upload(path, ends="uploadId" in request.query_params)
        if request.method == "PUT":
            return self._put(path, unquote(request.headers.get("x-amz-copy-source", "")), await _content(request))
        if request.method == "DELETE":
            self.objects.pop(path, None)
            return Response(status_code=204)
        if "/" not in path:
            return self._listed(path, request.query_params.get("prefix", ""), request.query_params.get("delimiter", ""))
        return self._got(path, request.headers.get("range", ""), request.method == "HEAD")

    def _upload(self, path: str, *, ends: bool) -> Response:
        """Of an object in several parts: it is there once the upload ends."""
        if not ends:
            return _xml("<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
        parts = self._parts.pop(path)
        self.objects[path] = b"".join(parts[number] for number in sorted(parts))
        return _xml("<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>")

    def _put(self, path: str, source: str, content: bytes) -> Response:
        self.objects[path] = self.objects[source.strip("/")] if source else content
        return _xml("<CopyObjectResult><ETag>1</ETag></CopyObjectResult>" if source else "")

    def _got(self, path: str, part: str, only_head: bool) -> Response:
        if path not in self.objects:
            return _xml("" if only_head else "<Error><Code>NoSuchKey</Code></Error>", 404)
        content = self.objects[path]
        first, _, last = part.removeprefix("bytes=").partition("-")
        chosen = content[int(first) : int(last) + 1] if part else content
        headers = {"ETag": '"1"', "Last-Modified": _DATE, "Content-Length": str(len(chosen))}
        if part:
            headers["Content-Range"] = f"bytes {first}-{int(first) + len(chosen) - 1}/{len(content)}"
        return Response(b"" if only_head else chosen, 206 if part else 200, headers)

    def _listed(self, bucket: str, prefix: str, delimiter: str) -> Response:
        """The objects with a prefix; those with the delimiter after it only once, as a common prefix."""
        keys, folders = [], set()
        for path in sorted(path for path in self.objects if path.startswith(f"{bucket}/{prefix}")):
            key = path.removeprefix(f"{bucket}/")
            first, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if found:
                folders.add(f"{prefix}{first}{found}")
            else:
                keys.append(key)
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[f'{bucket}/{key}'])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
        )
        entries += "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)
        )
        return _xml(f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>")


def _xml(text: str, status: int = 200) -> Response:
    return Response(text, status, {"ETag": '"1"'}, "application/xml")


@contextmanager
def object_store_url(bucket: str) -> Iterator[str]:
    """A server with an empty store; yields the URL of a folder in it, for pyarrow's file systems."""
    store = ObjectStore()
    store.objects[f"{bucket}/"] = b""
    application = Starlette(
        routes=[Route("/{path:path}", store.answer, methods=["GET", "HEAD", "PUT", "DELETE", "POST"])]
    )
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            if not thread.is_alive():
                raise RuntimeError("the object store did not start")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"s3://{bucket}/archive?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
