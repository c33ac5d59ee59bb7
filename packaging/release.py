# SPDX-License-Identifier: GPL-2.0-or-later
"""What a release consists of: the sources, and the probe as one static file for each architecture of target/cross.

``python packaging/release.py [OUT] [ARCHITECTURE...]``, or ``make release``.  Everything is made of the last commit,
outside the checkout, and each probe has recorded a run (under qemu-user) before it is put into the archive.  The same
commit and the same compilers give the same bytes: the archive's BUILT-WITH names them.
"""

from __future__ import annotations

import configparser
import hashlib
import io
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fastenough import __version__
from fastenough.board.files import MACHINES
from fastenough.model import Outcome
from fastenough.recording import read_recording
from fastenough.virtual.meson_build import tools_path

ROOT = Path(__file__).resolve().parents[1]
PROBE = "fastenough-probe"
_OPTIONS = (
    "-Dpython_package=false",
    "-Dmonitor=disabled",
    "-Dpublisher=disabled",
    "-Dprobe_static=true",
    "-Ddebug=false",
    "-Dc_link_args=-s",
)
_TRIAL = ("timer", "--duration=500ms", "--interval=2ms", "--method=futex", "--allow-difference", "--quiet")
_README = """fastenough {version}: the probe, one static file for each kind of board.

Copy the file that is called as `uname -m` answers on the board, and run it there as root:

    ./fastenough-probe-aarch64 timer --duration 1m

Or let the bench bring it: it takes from here what a board needs, wherever the archive is unpacked:

    FASTENOUGH_PROBES=$PWD fastenough assess --board ssh://root@board

Each was built from commit {commit} with the compilers in BUILT-WITH,
and has recorded a run under qemu-user: that shows that it works, and nothing of any board's speed.  `uname -m` says
mips on little-endian MIPS as well: take fastenough-probe-mipsel there.  fastenough-probe-amd64-musl is for x86_64, with
musl instead of glibc.

The sources are in fastenough-{version}.tar.xz, released beside this archive.  GPL-2.0-or-later, see COPYING.
"""


@dataclass(frozen=True)
class Architecture:
    """A file of target/cross: what compiles for it, and what runs that here."""

    name: str
    compiler: str
    runner: str

    @property
    def cross_file(self) -> str:
        return f"target/cross/{self.name}.ini"


def architectures() -> dict[str, Architecture]:
    """All that there are, by name."""
    found = {}
    for path in sorted((ROOT / "target" / "cross").glob("*.ini")):
        parser = configparser.ConfigParser()
        parser.read(path)
        found[path.stem] = Architecture(
            path.stem, parser["binaries"]["c"].strip("'"), parser["properties"]["run_with"].strip("'")
        )
    return found


@dataclass(frozen=True)
class Commit:
    """What is released."""

    id: str
    date_s: int
    """Since 1970: the time of every file in the archives."""


@dataclass(frozen=True)
class File:
    """One of an archive: a program, a text, or another name of a file beside it."""

    content: bytes = b""
    mode: int = 0o644
    target: str = ""


def _said(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout.strip()


def last_commit() -> Commit:
    if _said("git", "status", "--porcelain", "--untracked-files=no"):
        print("release: what is not committed is not in it", file=sys.stderr)
    return Commit(_said("git", "rev-parse", "HEAD"), int(_said("git", "log", "-1", "--format=%ct")))


def _packed(tar: bytes) -> bytes:
    return lzma.compress(tar, preset=9)


def sources(commit: Commit) -> bytes:
    """The committed tree as a tar archive."""
    return subprocess.run(
        ["git", "-c", "tar.umask=0022", "archive", f"--prefix=fastenough-{__version__}/", commit.id],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout


def built(tree: Path, architecture: Architecture, commit: Commit) -> Path:
    """The probe, built in an unpacked tree; raises CalledProcessError."""
    place = tree / f"build-{architecture.name}"
    environment = {**os.environ, "PATH": tools_path(), "SOURCE_DATE_EPOCH": str(commit.date_s)}
    for command in (
        ["meson", "setup", place.name, "--cross-file", architecture.cross_file, *_OPTIONS],
        ["ninja", "-j2", "-C", place.name, f"target/probe/{PROBE}"],
    ):
        subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, check=True)
    return place / "target" / "probe" / PROBE


def try_out(probe: Path, architecture: Architecture) -> None:
    """Raises RuntimeError where the probe does not record a whole run, under the program that runs its kind here."""
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch) / "recording"
        done = subprocess.run(
            [architecture.runner, probe, *_TRIAL, "--record", record],
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )
        if done.returncode or read_recording(record).outcome is not Outcome.COMPLETED:
            raise RuntimeError(f"the probe for {architecture.name} does not work: {done.stderr.strip()}")


def _version(compiler: str) -> str:
    return _said(compiler, "--version").splitlines()[0]


def names(architecture: Architecture) -> list[str]:
    """What ``uname -m`` says where its probe runs; its own name where that says nothing."""
    return [machine for machine, known in MACHINES.items() if known.cross == architecture.name] or [architecture.name]


def contents(tree: Path, commit: Commit, chosen: list[Architecture]) -> Iterator[tuple[str, File]]:
    """The files of the archive of probes, by name."""
    for architecture in chosen:
        probe = built(tree, architecture, commit)
        try_out(probe, architecture)
        print(f"release: {architecture.name}: recorded a run under {architecture.runner}", flush=True)
        name, *others = (f"{PROBE}-{machine}" for machine in names(architecture))
        yield name, File(probe.read_bytes(), 0o755)
        yield from ((other, File(mode=0o777, target=name)) for other in others)
    yield "README", File(_README.format(version=__version__, commit=commit.id).encode())
    yield "BUILT-WITH", File("".join(f"{one.name}: {_version(one.compiler)}\n" for one in chosen).encode())
    yield "COPYING", File((tree / "COPYING").read_bytes())


def sums(files: dict[str, bytes]) -> bytes:
    """As sha256sum writes and checks them."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items())
    ).encode()


def buildroot_hash(source: str, packed: bytes, licence: bytes) -> bytes:
    """fastenough.hash, beside which Buildroot takes the sources from anywhere; they cannot hold their own sum."""
    return "".join(
        f"sha256  {hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in ((source, packed), ("COPYING", licence))
    ).encode()


def archive(files: dict[str, File], folder: str, date_s: int) -> bytes:
    """A tar archive that says nothing of who made it, when and where."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, file in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode, entry.mtime, entry.linkname = len(file.content), file.mode, date_s, file.target
            entry.type = tarfile.SYMTYPE if file.target else tarfile.REGTYPE
            tar.addfile(entry, io.BytesIO(file.content))
    return stream.getvalue()


def make(out: Path, chosen: list[Architecture]) -> list[str]:
    """Writes the release into a folder; the names of its files."""
    commit = last_commit()
    name = f"fastenough-{__version__}"
    source = sources(commit)
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(fileobj=io.BytesIO(source)) as tar:
            tar.extractall(scratch)
        files = dict(contents(Path(scratch) / name, commit, chosen))
    files["SHA256SUMS"] = File(sums({file: one.content for file, one in files.items() if not one.target}))
    released = {
        f"{name}.tar.xz": _packed(source),
        f"{name}-probes.tar.xz": _packed(archive(files, f"{name}-probes", commit.date_s)),
    }
    released["fastenough.hash"] = buildroot_hash(f"{name}.tar.xz", released[f"{name}.tar.xz"], files["COPYING"].content)
    released["SHA256SUMS"] = sums(released)
    out.mkdir(parents=True, exist_ok=True)
    for file, content in released.items():
        (out / file).write_bytes(content)
    return list(released)


def main(argv: list[str]) -> int:
    known = architectures()
    out, *wanted = argv or ["build/release"]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"release: there is no architecture {unknown[0]}; use some of {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in wanted or known]
    missing = [tool for one in chosen for tool in (one.compiler, one.runner) if shutil.which(tool) is None]
    if missing:
        print(f"release: {', '.join(missing)}: not installed; run: setup/install test", file=sys.stderr)
        return 2
    for file in make(Path(out), chosen):
        print(Path(out) / file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
