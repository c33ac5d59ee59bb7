# SPDX-License-Identifier: GPL-2.0-or-later
"""Tokens of benches: shown once, kept as hashes in a file of their own, revoked at once."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

import pytest

from fastenough.farm.tokens import Tokens
from fastenough.model import BadInput


def test_a_token_is_known_until_it_is_revoked(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    one, other = tokens.add("rack-1", ["r1s1", "r1s2", "r1s1"], 5), tokens.add("rack-2", ["r2s1"])
    found = tokens.known(one)
    assert found is not None
    assert (found.name, found.boards, found.per_hour) == ("rack-1", ("r1s1", "r1s2"), 5)
    assert tokens.revoke("rack-1").id == found.id
    assert tokens.known(one) is None
    assert tokens.known(other) is not None


def test_only_the_hash_is_kept_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    secret = tokens.add("rack-1", ["r1s1"]).rpartition(".")[2]
    content = tokens.path.read_text()
    assert secret not in content
    assert hashlib.sha256(secret.encode()).hexdigest() in content
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    assert "sha256" not in tokens.listed()[0].grants
    tokens.path.chmod(0o644)
    with pytest.raises(BadInput, match="chmod 600"):
        tokens.listed()


@pytest.mark.parametrize(
    "change",
    [
        lambda token: "",
        lambda token: token + "A",
        lambda token: token[:-1],
        lambda token: token.lower(),
        lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
        lambda token: "fe1..",
        lambda token: token + "\n",
        lambda token: "fe1." + "0" * 16 + token[20:],
        lambda token: "fe1." + "0" * 16 + "." + "A" * 43,
    ],
)
def test_no_other_text_is_a_token(tmp_path: Path, change: object) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.add("rack-1", ["r1s1"])
    assert callable(change)
    assert tokens.known(change(token)) is None
    assert tokens.known(token) is not None


@pytest.mark.parametrize(
    ("name", "boards"),
    [("", ["b"]), ("a b", ["b"]), ("../x", ["b"]), ("ok", []), ("ok", [""]), ("ok", ["b\x1b[2J"]), ("x" * 65, ["b"])],
)
def test_names_are_plain(tmp_path: Path, name: str, boards: list[str]) -> None:
    with pytest.raises(BadInput):
        Tokens(tmp_path / "tokens.json").add(name, boards)


def test_a_name_is_given_once_and_unknown_ones_cannot_be_revoked(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    tokens.add("rack-1", ["r1s1"])
    with pytest.raises(BadInput, match="already"):
        tokens.add("rack-1", ["r1s1"])
    with pytest.raises(BadInput, match="no token '"):
        tokens.revoke("rack-9")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"tokens": [{}]}',
        '{"tokens": 3}',
        "\x00",
        json.dumps({"tokens": [{"id": 1, "name": "a", "boards": ["b"], "per_hour": 1, "created_s": 1, "sha256": "c"}]}),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(BadInput, match="not a valid file of tokens"):
        Tokens(path).listed()


def test_tokens_made_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    adding = [threading.Thread(target=Tokens(path).add, args=(f"rack-{number}", ["b"])) for number in range(8)]
    for each in adding:
        each.start()
    for each in adding:
        each.join()
    assert {token.name for token in Tokens(path).listed()} == {f"rack-{number}" for number in range(8)}
