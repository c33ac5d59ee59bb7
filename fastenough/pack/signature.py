# SPDX-License-Identifier: GPL-2.0-or-later
"""Signatures with ssh keys (ssh-keygen(1), ``-Y``), without a file on disk: all is passed as open descriptors."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastenough import words
from fastenough.files import Untrusted, read_regular
from fastenough.model import BadInput

NAMESPACE = "fastenough"
"""Signatures made for another purpose, such as a commit, are not accepted."""
_MOST_SIGNERS_BYTES = 1 << 20
_PATIENCE_S = 60
_KEY = re.compile(rb"with (\S+) key (\S+)")


@dataclass(frozen=True)
class Signer:
    """Fingerprint of the signing key, and its principal in the file of allowed signers; None without such a file."""

    key: str
    principal: str | None


def sign(content: bytes, key: Path, namespace: str = NAMESPACE) -> bytes:
    """The signature of this content; asks for the key's passphrase on the terminal.  Raises BadInput."""
    done = _ssh_keygen(["sign", "-q", "-f", str(key)], content, patience_s=None, namespace=namespace)
    if done.returncode:
        raise BadInput(f"--sign {key}: {_reason(done)}; name a private key, or the public key of one in ssh-agent")
    return done.stdout


def signer_of(content: bytes, signature: bytes, signers: Path | None) -> Signer:
    """The signer of this content; raises BadInput if the signature is wrong or not by an allowed signer."""
    with _descriptor(signature) as (file, path):
        if signers is None:
            done = _ssh_keygen(["check-novalidate", "-s", path], content, [file])
            return Signer(_key(done), None)
        with _descriptor(_allowed(signers)) as (listed, list_path):
            arguments = ["-s", path, "-f", list_path]
            principals = _ssh_keygen(["find-principals", *arguments], b"", [file, listed])
            principal = principals.stdout.decode(errors="replace").partition("\n")[0].partition(",")[0]
            if principals.returncode or not principal:
                raise BadInput(f"the key of its signature is not in {signers}")
            done = _ssh_keygen(["verify", *arguments, "-I", principal], content, [file, listed])
            return Signer(_key(done), principal)


def _key(done: subprocess.CompletedProcess[bytes]) -> str:
    """The type and fingerprint of the key; raises BadInput unless the signature is right."""
    match = _KEY.search(done.stdout)
    if done.returncode or match is None:
        raise BadInput(f"its signature is wrong: {_reason(done)}")
    return " ".join(text.decode(errors="replace") for text in match.groups())


def _allowed(signers: Path) -> bytes:
    try:
        return read_regular(signers, _MOST_SIGNERS_BYTES)
    except Untrusted as error:
        raise BadInput(f"--signers {error}") from error
    except OSError as error:
        raise BadInput(f"--signers {signers}: {error.strerror}; name a file of allowed signers") from error


@contextmanager
def _descriptor(content: bytes) -> Iterator[tuple[int, str]]:
    """An anonymous file with this content, and the path by which a child that inherits it opens it."""
    file = os.memfd_create("fastenough")
    try:
        with os.fdopen(file, "wb", closefd=False) as stream:
            stream.write(content)
        yield file, f"/proc/self/fd/{file}"
    finally:
        os.close(file)


def _ssh_keygen(
    arguments: Sequence[str],
    content: bytes,
    files: Sequence[int] = (),
    patience_s: float | None = _PATIENCE_S,
    namespace: str = NAMESPACE,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", *arguments, "-n", namespace],
            input=content,
            capture_output=True,
            pass_fds=files,
            timeout=patience_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise BadInput("ssh-keygen is not installed; install openssh-client to sign or check signatures") from error
    except subprocess.TimeoutExpired as error:
        raise BadInput(f"ssh-keygen did not end within {_PATIENCE_S} s") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = words.output_lines(done.stderr) or words.output_lines(done.stdout)
    return lines[0] if lines else f"ssh-keygen ended with status {done.returncode}"
