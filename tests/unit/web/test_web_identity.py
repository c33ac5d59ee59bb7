# SPDX-License-Identifier: GPL-2.0-or-later
"""The access file, and the headers of an authenticating proxy: whatever is not certain is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.history import NOBODY, OWNER, Viewer
from fastenough.model import BadInput
from fastenough.web.identity import AccessDenied, AccessRules, read_access
from fastenough.web.site import SiteRole

WHOLE = """
trusted = ["127.0.0.1", "10.1.0.0/24", "::1"]

[[group]]
name = "lab-graz"
role = "viewer"
sites = ["graz", "linz"]

[[group]]
name = "rack-graz"
role = "operator"
sites = ["graz"]

[[group]]
name = "chiefs"
role = "administrator"
"""
SECRET = "a secret of more than 16 characters"
Headers = list[tuple[bytes, bytes]]


def rules(folder: Path, text: str = WHOLE) -> AccessRules:
    path = folder / "access.toml"
    path.write_text(text)
    path.chmod(0o644)
    return read_access(path)


def headers(groups: str = "lab-graz", user: str = "ada") -> Headers:
    return [(b"host", b"x"), (b"x-forwarded-user", user.encode()), (b"x-forwarded-groups", groups.encode())]


def viewer(known: AccessRules, groups: str, role: SiteRole = SiteRole.VIEWER) -> Viewer:
    return known.identity("127.0.0.1", headers(groups)).viewer(role)


def test_groups_state_sites_by_role(tmp_path: Path) -> None:
    known = rules(tmp_path)
    graz, both = (Viewer(sites=frozenset(names)) for names in (["graz"], ["graz", "linz"]))
    assert viewer(known, "lab-graz") == both
    assert viewer(known, "everyone, lab-graz") == both
    assert viewer(known, "rack-graz") == graz
    assert viewer(known, "lab-graz", SiteRole.OPERATOR) == NOBODY
    assert viewer(known, "lab-graz,rack-graz", SiteRole.OPERATOR) == graz, "not at the site where it only views"
    assert viewer(known, "lab-graz,rack-graz", SiteRole.ADMINISTRATOR) == NOBODY
    assert {viewer(known, "chiefs", role) for role in SiteRole} == {OWNER}


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.1.0.9", "::1", "::ffff:10.1.0.9"])
def test_headers_count_from_a_trusted_address(tmp_path: Path, peer: str) -> None:
    assert rules(tmp_path).identity(peer, headers()).user == "ada"


@pytest.mark.parametrize("peer", [None, "", "127.0.0.2", "10.1.1.9", "::2", "::ffff:10.1.1.9", "localhost"])
def test_headers_from_any_other_address_are_refused(tmp_path: Path, peer: str | None) -> None:
    with pytest.raises(AccessDenied):
        rules(tmp_path).identity(peer, headers("chiefs"))


@pytest.mark.parametrize(
    "given",
    [
        [],
        headers("unknown"),
        headers(""),
        headers("zarg-bal"),
        headers("LAB-GRAZ"),
        headers("lab-graz;chiefs"),
        headers(user=""),
        headers(user=" "),
        headers(user="ada\u202e"),
        headers()[:2],
        headers()[::2],
        [*headers(), (b"x-forwarded-groups", b"chiefs")],
        [*headers(), (b"X-Forwarded-Groups", b"chiefs")],
        [*headers(), (b"x_forwarded_groups", b"chiefs")],
        [*headers(), (b"x-forwarded_user", b"eve")],
        [(b"x-forwarded-user", b"ada"), (b"x_forwarded_groups", b"chiefs")],
        [(b"x-forwarded-user", b"\xff"), (b"x-forwarded-groups", b"chiefs")],
    ],
)
def test_missing_unknown_doubled_and_forged_headers_are_refused(tmp_path: Path, given: Headers) -> None:
    with pytest.raises(AccessDenied):
        rules(tmp_path).identity("127.0.0.1", given)


def test_a_secret_distinguishes_the_proxy_from_other_users_of_its_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    known = rules(tmp_path, f'secret-file = "secret"\n{WHOLE}')
    shown = (b"x-fastenough-secret", SECRET.encode())
    assert known.identity("127.0.0.1", [*headers(), shown]).user == "ada"
    assert SECRET not in repr(known)
    for wrong in (
        [],
        [(shown[0], b"another")],
        [(shown[0], b"")],
        [shown, shown],
        [(b"x_fastenough_secret", shown[1])],
    ):
        with pytest.raises(AccessDenied):
            known.identity("127.0.0.1", [*headers(), *wrong])
    with pytest.raises(AccessDenied):
        known.identity("127.0.0.2", [*headers(), shown])
    secret.chmod(0o644)
    with pytest.raises(BadInput, match="chmod 600"):
        rules(tmp_path, f'secret-file = "secret"\n{WHOLE}')
    secret.write_text("short\n")
    secret.chmod(0o600)
    with pytest.raises(BadInput, match="longer"):
        rules(tmp_path, f'secret-file = "secret"\n{WHOLE}')


def test_other_names_of_headers(tmp_path: Path) -> None:
    known = rules(tmp_path, f'groups-header = "X-Auth-Request-Groups"\nuser-header = "X-Auth-Request-User"\n{WHOLE}')
    other = [(b"x-auth-request-user", b"ada"), (b"x-auth-request-groups", b"chiefs")]
    assert known.identity("127.0.0.1", other).viewer(SiteRole.VIEWER) == OWNER
    with pytest.raises(AccessDenied):
        known.identity("127.0.0.1", headers("chiefs"))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("[", "x["),
        ('"127.0.0.1"', '"proxy.example"'),
        ('"127.0.0.1"', '"10.1.0.1/24"'),
        ('"127.0.0.1"', '"0.0.0.0/0"'),
        ('"::1"', '"::/0"'),
        ('["127.0.0.1", "10.1.0.0/24", "::1"]', "[]"),
        ('role = "viewer"', 'role = "root"'),
        ('role = "viewer"', ""),
        ('sites = ["graz"]', ""),
        ('sites = ["graz"]', "sites = []"),
        ('sites = ["graz"]', 'sites = [""]'),
        ('sites = ["graz"]', 'site = "graz"'),
        ('role = "administrator"', 'role = "administrator"\nsites = ["graz"]'),
        ('name = "chiefs"', 'name = "lab-graz"'),
        ('name = "chiefs"', 'name = "chiefs,others"'),
        ('name = "chiefs"', 'name = " chiefs"'),
        ('name = "chiefs"', 'name = ""'),
        ("trusted", 'user-header = "X_User"\ntrusted'),
        ("trusted", 'user-header = "X-Forwarded-Groups"\ntrusted'),
        ("trusted", 'secret-file = "missing"\ntrusted'),
        ("trusted", 'secret-file = "a\\u0000b"\ntrusted'),
        ("trusted", "more = 1\ntrusted"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, was: str, now: str) -> None:
    assert was in WHOLE
    with pytest.raises(BadInput) as refused:
        rules(tmp_path, WHOLE.replace(was, now, 1))
    assert len(str(refused.value).splitlines()) == 1
    assert str(tmp_path) in str(refused.value)


def test_a_file_without_groups_or_one_that_others_can_change_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="group"):
        rules(tmp_path, 'trusted = ["127.0.0.1"]\n')
    path = tmp_path / "access.toml"
    path.write_text(WHOLE)
    path.chmod(0o666)
    with pytest.raises(BadInput, match="chmod go-w"):
        read_access(path)
    with pytest.raises(BadInput):
        read_access(tmp_path / "missing.toml")
