# SPDX-License-Identifier: GPL-2.0-or-later
"""A website behind Apache, which signs users in at an OpenID provider: all on loopback, as docs/website.md shows it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import oidc_provider_mock
import werkzeug.serving
from flask import Flask, Response, request

from tests.support.documented import PAGES
from tests.support.tools import require

CALLBACK = "/oauth2/callback"
SIGN_IN, TOKEN = "/oauth2/authorize", "/oauth2/token"
"""Addresses of the provider."""
_MODULES = Path("/usr/lib/apache2/modules")
_ENABLED_BY_DEBIAN = ("mpm_event", "authn_core", "authz_core", "authz_user", "proxy")
"""Modules of a new Apache, and one that ``a2enmod proxy_http`` enables too."""
_STARTS_S = 30
_STARTED = "AH00489: "
"""Message of Apache after each start and reload."""
_USER = "www-data"
"""Debian's user of Apache."""


def code_block(language: str, beginning: str) -> str:
    """Return the code block of docs/website.md in this language that starts with `beginning`."""
    (block,) = re.findall(rf"```{language}\n({re.escape(beginning)}.*?)```", PAGES["website.md"], re.DOTALL)
    return str(block)


def _replace_all(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


@dataclass(frozen=True)
class RegisteredClient:
    id: str
    secret: str
    callback: str


@dataclass
class Provider:
    """An OpenID provider at ``url``.  ``substitute``: the tokens that it sends instead of its own, if any."""

    url: str
    substitute: str | None = None

    def register(self, *callbacks: str) -> RegisteredClient:
        answer = httpx.post(f"{self.url}/oauth2/clients", json={"redirect_uris": callbacks}, trust_env=False)
        registration = answer.raise_for_status().json()
        return RegisteredClient(registration["client_id"], registration["client_secret"], callbacks[0])

    def set_groups(self, user: str, groups: list[str] | None) -> None:
        claims = {} if groups is None else {"groups": groups}
        httpx.put(f"{self.url}/users/{user}", json=claims, trust_env=False).raise_for_status()


def issued_tokens(provider: Provider, client: RegisteredClient, nonce: str, issuer: str) -> str:
    """The tokens that a provider issues to a client for its user vera, as JSON.

    ``issuer``: the address under which the provider is asked, which the token states.
    """
    with httpx.Client(base_url=provider.url, headers={"Host": urlsplit(issuer).netloc}, trust_env=False) as browser:
        sign_in = {"client_id": client.id, "redirect_uri": client.callback, "response_type": "code"}
        query = {**sign_in, "scope": "openid", "nonce": nonce}
        redirect = browser.post(SIGN_IN, params=query, data={"sub": "vera"})
        (code,) = parse_qs(urlsplit(redirect.headers["location"]).query)["code"]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": client.callback}
        return browser.post(TOKEN, data=form, auth=(client.id, client.secret)).raise_for_status().text


@contextmanager
def provider_running(*, knows_clients: bool = True) -> Iterator[Provider]:
    """A provider that requires a nonce.  ``knows_clients``: it refuses clients that are not registered."""
    app: Flask = oidc_provider_mock.app(require_client_registration=knows_clients, require_nonce=True)
    server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
    provider = Provider(f"http://localhost:{server.server_port}")  # only this name may do without TLS

    @app.after_request
    def substitute_token(response: Response) -> Response:
        if provider.substitute is not None and request.path == TOKEN:
            response.set_data(provider.substitute)
        return response

    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_secrets(folder: Path, client: RegisteredClient) -> None:
    """Run the documented commands, which write the secrets of Apache and of the website, in a folder."""
    (folder / "client-secret").write_text(client.secret)
    commands = _replace_all(
        code_block("sh", "umask 077\nmkdir"), {"/etc/apache2": str(folder), "/etc/fastenough": str(folder)}
    )
    subprocess.run(["sh", "-ec", commands], cwd=folder, check=True)


def make_certificate(folder: Path) -> None:
    """For the address 127.0.0.1."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run([*command.split(), *files], cwd=folder, check=True, stderr=subprocess.DEVNULL)


@dataclass(frozen=True)
class Apache:
    """Apache at ``place``, an address with a port, in a folder that has its secrets and its certificate."""

    folder: Path
    place: str
    client: RegisteredClient
    issuer: str
    website: str
    idle_s: int = 3600

    @property
    def url(self) -> str:
        return f"https://{self.place}"

    @property
    def log(self) -> str:
        return (self.folder / f"{self.place}.log").read_text()

    @contextmanager
    def browser(self, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Client]:
        """A browser without cookies, which sends these headers with each request and follows no redirect."""
        trusted = ssl.create_default_context(cafile=self.folder / "certificate.pem")
        with httpx.Client(base_url=self.url, headers=headers, verify=trusted, trust_env=False, timeout=60) as browser:
            yield browser

    @contextmanager
    def signed_in(self, user: str, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Client]:
        with self.browser(headers) as browser:
            answer = finish_sign_in(browser, begin_sign_in(browser), user)
            assert (answer.status_code, answer.headers["location"]) == (302, f"{self.url}/")
            yield browser

    @contextmanager
    def running(self) -> Iterator[None]:
        require("apache2")
        path = self.folder / f"{self.place}.conf"
        command = ["apache2", "-f", str(path), "-D", "FOREGROUND"]
        with tempfile.TemporaryDirectory() as sessions:
            if os.geteuid() == 0:
                shutil.chown(sessions, _USER)
            path.write_text(self._configuration(sessions))
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]}) as server:
                try:
                    self._wait(server)
                    yield
                finally:
                    server.terminate()

    def reload(self) -> None:
        """Reload Apache as ``apachectl graceful`` does, and wait until it has done so."""
        starts = self.log.count(_STARTED)
        os.kill(int((self.folder / f"{self.place}.pid").read_text()), signal.SIGUSR1)
        until_s = time.monotonic() + _STARTS_S
        while self.log.count(_STARTED) == starts:
            assert time.monotonic() < until_s, self.log
            time.sleep(0.02)

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        host, port = self.place.split(":")
        until_s = time.monotonic() + _STARTS_S
        while time.monotonic() < until_s:
            assert server.poll() is None, self.log
            try:
                with socket.create_connection((host, int(port))):
                    return
            except ConnectionRefusedError:
                time.sleep(0.02)
        raise AssertionError("Apache does not listen")

    def _configuration(self, sessions: str) -> str:
        """The documented configuration with other addresses and files, after the lines that Debian adds.

        ``sessions``: a folder that Apache may write.
        """
        site = _replace_all(
            code_block("apache", "Include /etc/apache2/fastenough-secrets.conf"),
            {
                "/etc/apache2": str(self.folder),
                "/var/cache/apache2/mod_auth_openidc/cache": sessions,
                "/etc/ssl/farm.example.pem": f"{self.folder}/certificate.pem",
                "/etc/ssl/farm.example.key": f"{self.folder}/key.pem",
                "https://id.example": self.issuer,
                "OIDCClientID fastenough": f"OIDCClientID {self.client.id}",
                "InactivityTimeout 3600": f"InactivityTimeout {self.idle_s}",
                "*:443": self.place,
                "farm.example": self.place,
                "http://127.0.0.1:8731/": self.website,
            },
        )
        modules = "".join(f"LoadModule {name}_module {_MODULES}/mod_{name}.so\n" for name in _enabled_modules())
        user = f"User {_USER}\nGroup {_USER}\n" if os.geteuid() == 0 else ""
        return (
            f"ServerRoot {self.folder}\nDefaultRuntimeDir {self.folder}\nPidFile {self.folder}/{self.place}.pid\n"
            f"ErrorLog {self.folder}/{self.place}.log\nServerName 127.0.0.1\nListen {self.place}\n{modules}{user}{site}"
        )


def _enabled_modules() -> list[str]:
    (modules,) = re.findall("^a2enmod (.+)$", code_block("sh", "a2enmod "), re.MULTILINE)
    return [*_ENABLED_BY_DEBIAN, *modules.split()]


def begin_sign_in(browser: httpx.Client, path: str = "/") -> str:
    """The address at the provider to which a request is redirected."""
    answer = browser.get(path)
    assert answer.status_code == 302
    return answer.headers["location"]


def finish_sign_in(browser: httpx.Client, form: str, user: str) -> httpx.Response:
    """Sign in at the provider; return the answer of Apache to the redirect from there."""
    redirect = browser.post(form, data={"sub": user})
    assert redirect.status_code == 302
    return browser.get(redirect.headers["location"])


def free_places(count: int) -> list[str]:
    """Addresses with different ports that are free."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]
