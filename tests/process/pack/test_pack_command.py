# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough pack`` and ``verify`` with real ssh keys."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastenough.jobs.verify import verify
from fastenough.model import BadInput, Verdict
from fastenough.pack.signature import Signer
from fastenough.store import Store
from tests.support.cli_calls import command_line, environment
from tests.support.json_documents import require_valid
from tests.support.packs import add_run, files_of, with_files, zipped
from tests.support.tools import require

pytestmark = pytest.mark.untimed

PACK = ("pack", "--limit", "200us", "--only-these", "--out")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run, two keys, the first of which a file of allowed signers lists, and a signed pack."""
    require("ssh-keygen")
    home = tmp_path_factory.mktemp("packs")
    run = add_run(Store(home / "fastenough-data"), home / "scratch")
    for key in ("alice", "mallory"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", home / key], check=True)
    public = " ".join((home / "alice.pub").read_text().split()[:2])
    (home / "signers").write_text(f'alice@example.org namespaces="fastenough" {public}\n')
    (home / "for-git").write_text(f'alice@example.org namespaces="git" {public}\n')
    done = command_line(*PACK, "signed.zip", "--sign", "alice", run, cwd=home)
    assert done.returncode == 0, done.stderr
    return home


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refusal(home: Path, pack: str, signers: str | None = None) -> str:
    with pytest.raises(BadInput) as caught:
        verify(home / pack, None if signers is None else home / signers)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def signer(home: Path, pack: str, signers: str | None = None) -> Signer | None:
    return verify(home / pack, None if signers is None else home / signers).signer


def test_a_signed_pack_names_its_signer_if_it_is_known(home: Path) -> None:
    done = command_line("verify", "signed.zip", "--signers", "signers", "--json", cwd=home)
    document = require_valid("verify", done.stdout)
    assert done.returncode == 0 and document["same"] and document["signer"]["principal"] == "alice@example.org"
    unknown = signer(home, "signed.zip")
    assert unknown is not None and unknown.principal is None and "SHA256:" in unknown.key
    assert unknown.key == document["signer"]["key"]


def test_a_signature_is_the_only_difference_from_an_unsigned_pack(home: Path) -> None:
    done = command_line(*PACK, "plain.zip", "--json", *names(home / "fastenough-data" / "runs"), cwd=home)
    document = require_valid("pack", done.stdout)
    assert done.returncode == 0 and document["verdict"] == "PASS" and not document["signed"]
    signed, plain = (files_of((home / name).read_bytes()) for name in ("signed.zip", "plain.zip"))
    assert list(signed)[-1] == "manifest.json.sig" and signed == plain | {"manifest.json.sig": [*signed.values()][-1]}
    assert signer(home, "plain.zip") is None
    assert "not signed" in refusal(home, "plain.zip", "signers")


def test_wrong_signatures_are_refused(home: Path) -> None:
    good = (home / "signed.zip").read_bytes()
    files = files_of(good)
    signature = files["manifest.json.sig"]
    made = {
        name: subprocess.run(
            ["ssh-keygen", "-Y", "sign", "-q", "-f", home / key, "-n", namespace],
            input=files["manifest.json"],
            capture_output=True,
            check=True,
        ).stdout
        for name, key, namespace in (("mallory", "mallory", "fastenough"), ("git", "alice", "git"))
    }
    question = files["question.json"].replace(b"200000", b"300000")
    wrong = {
        "changed": with_files(good, {"question.json": question}),
        "git": zipped(files | {"manifest.json.sig": made["git"]}),
        "empty": zipped(files | {"manifest.json.sig": b""}),
        "long": zipped(files | {"manifest.json.sig": signature * 1000}),
        "flipped": zipped(files | {"manifest.json.sig": signature.replace(b"U", b"V", 1)}),
    }
    for name, pack in wrong.items():
        (home / f"{name}.zip").write_bytes(pack)
        refusal(home, f"{name}.zip")
        refusal(home, f"{name}.zip", "signers")
    (home / "mallory.zip").write_bytes(zipped(files | {"manifest.json.sig": made["mallory"]}))
    resigned = signer(home, "mallory.zip")
    assert resigned is not None and resigned != signer(home, "signed.zip")
    refusal(home, "mallory.zip", "signers")
    refusal(home, "signed.zip", "for-git")
    refusal(home, "signed.zip", "absent")
    done = command_line("verify", "changed.zip", cwd=home)
    assert done.returncode == 2 and done.stderr.startswith("fastenough: changed.zip: ") and not done.stdout
    assert done.stderr.count("\n") == 1


def test_a_forged_verdict_has_its_own_status(home: Path) -> None:
    good = (home / "signed.zip").read_bytes()
    unsigned = {name: content for name, content in files_of(good).items() if name != "manifest.json.sig"}
    told = unsigned["assessment.json"].replace(b'"PASS"', b'"FAIL"')
    (home / "forged.zip").write_bytes(with_files(zipped(unsigned), {"assessment.json": told}))
    done = command_line("verify", "forged.zip", cwd=home)
    assert done.returncode == 1 and "the verdict is FAIL in the pack and PASS recomputed" in done.stdout


def test_a_failed_signature_leaves_no_pack(home: Path) -> None:
    before = names(home)
    done = command_line(*PACK, "new.zip", "--sign", "signers", *names(home / "fastenough-data" / "runs"), cwd=home)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert names(home) == before


def test_nothing_is_written_also_after_an_interrupt(home: Path, tmp_path: Path) -> None:
    """All places for temporary files are one folder, which stays empty."""
    before = names(home)
    places = {name: str(tmp_path) for name in ("TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "HOME")}
    words = [sys.executable, "-m", "fastenough", "verify", "signed.zip", "--signers", "signers"]
    with subprocess.Popen(words, cwd=home, env=environment(**places), stdout=subprocess.PIPE) as running:
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        assert running.wait() in (128 + signal.SIGINT, 0)
    assert not names(tmp_path) and names(home) == before


@pytest.mark.slow
def test_only_these_requires_the_loads_of_the_plan(tmp_path: Path) -> None:
    """Without RUNS it excludes other runs; those of the plan are complete."""
    store, planned = Store(tmp_path / "fastenough-data"), ("none", "cpu", "kernel")
    for position, implementation in enumerate(("linux-user", "linux-user", "linux-kernel")):
        origin = {"campaign": "c", "plan_sha256": "p", "position": position, "positions": 3, "planned": planned}
        load, head = "cpu" if position == 1 else "none", {"implementation": implementation}
        add_run(store, tmp_path / "scratch", load=load, head=head, origin=origin, latest_ns=5_000 + position)
    for option in ((), ("--only-these",)):
        done = command_line("report", "--limit", "200us", *option, "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["assessment"]["verdict"] == "PASS", done.stdout
        done = command_line("pack", "--limit", "200us", *option, "--out", f"{len(option)}.zip", "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["verdict"] == "PASS", done.stdout
        verified = verify(tmp_path / f"{len(option)}.zip", None)
        assert verified.assessment.verdict is Verdict.PASS and verified.same
