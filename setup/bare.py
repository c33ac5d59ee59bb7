# SPDX-License-Identifier: GPL-2.0-or-later
"""Bare Debian systems to try things in: made, entered and removed again, with nothing left on this machine.

A bare system is what ``mmdebstrap --variant=minbase`` (or ``debootstrap``) makes, with a few packages and this
machine's own configuration of package sources.  All mounts and processes live in namespaces that end with the program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

CHECKOUT = Path(__file__).resolve().parents[1]
HOST_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf", "/etc/npmrc")
HOST_VARIABLES = re.compile(r"(PIP_(?!FIND_LINKS)\w+|NODE_EXTRA_CA_CERTS|\w+_proxy|\w+_PROXY)\Z")
NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
REAPER = ["sh", "-c", '"$@" & wait $!', "sh"]
"""The first process of a PID namespace adopts orphans and must wait for them, as a system's init does."""
INSIDE = "FASTENOUGH_FRESH_INSIDE"
"""Environment variable that names the folder to work in, for a program started again in its namespaces."""


def stop(why: str) -> NoReturn:
    print(f"{Path(sys.argv[0]).name}: {why}", file=sys.stderr)
    sys.exit(2)


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        print(tail, file=sys.stderr)
        stop(f"{command[0]} failed with status {done.returncode}; the lines above say why")


def sources(suite: str) -> str:
    """This machine's Debian sources, for another suite of Debian."""
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))]
    found = [place.read_text() for place in places if place.is_file() and "debian" in place.read_text()]
    if not found:
        stop("this machine has no Debian package sources to make a bare system from")
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return re.sub(rf"\b{release['VERSION_CODENAME']}\b", suite, "\n".join(found))


def host_apt_options() -> str:
    """How this machine reaches its sources: proxies, certificates, time-outs."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return "".join(f"{line}\n" for line in dump.splitlines() if line.startswith("Acquire::"))


def make_base(suite: str, work: Path, given: str) -> Path:
    """A bare system of a suite, with packages (comma-separated); where it lies."""
    base, listed, options = work / suite, work / f"{suite}.sources", work / "apt.conf"
    listed.write_text(sources(suite))
    options.write_text(host_apt_options())
    if shutil.which("mmdebstrap"):
        run(
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={given}",
            f"--aptopt={options}",
            suite,
            base,
            listed,
        )
    else:
        mirror = re.search(r"https?://\S+", re.sub(r"(?m)^#.*$", "", sources(suite)))
        assert mirror is not None
        run("debootstrap", "--variant=minbase", f"--include={given}", suite, base, mirror[0])
        shutil.copy(listed, base / "etc/apt/sources.list.d/debian.sources")
        (base / "etc/apt/sources.list").write_text("")
        shutil.copy(options, base / "etc/apt/apt.conf.d/01host")
    for name in HOST_FILES:
        if Path(name).is_file():
            shutil.copy(name, f"{base}{name}")
    return base


@contextmanager
def copy_of(base: Path, work: Path) -> Iterator[Path]:
    """A system that begins as the bare one and may be changed; with /proc, /sys and /dev of this machine."""
    place = Path(tempfile.mkdtemp(dir=work))
    root = place / "root"
    for folder in ("root", "upper", "work"):
        (place / folder).mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={base},upperdir={place}/upper,workdir={place}/work", root)
    run("mount", "-t", "proc", "proc", root / "proc")
    for folder in ("sys", "dev"):
        run("mount", "--rbind", f"/{folder}", root / folder)
    try:
        yield root
    finally:
        run("umount", "--recursive", "--lazy", root)
        shutil.rmtree(place)


def environment(user: str) -> list[str]:
    home = "/root" if user == "root" else f"/home/{user}"
    given = {name: value for name, value in os.environ.items() if HOST_VARIABLES.match(name)}
    return [
        f"{name}={value}"
        for name, value in given.items()
        | {
            "HOME": home,
            "USER": user,
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }.items()
    ]


def started_inside(argv: Sequence[str], name: str) -> int:
    """This program again, in namespaces and with a folder of its own to work in; its exit status."""
    if os.geteuid() != 0:
        stop(f"making a system of its own needs root; run: sudo make {name}")
    if not (shutil.which("mmdebstrap") or shutil.which("debootstrap")):
        stop("needs mmdebstrap or debootstrap; run: apt-get install mmdebstrap")
    work = tempfile.mkdtemp(prefix=f"fastenough-{name}-", dir="/var/tmp")
    try:
        return subprocess.run(
            [*NAMESPACES, *REAPER, sys.executable, sys.argv[0], *argv], check=False, env={**os.environ, INSIDE: work}
        ).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(work, ignore_errors=True)


def enter(play: Callable[[Path], bool], argv: Sequence[str], name: str) -> int:
    """``play`` in namespaces, with the folder to work in; exit status 0 where it says that all went well, else 4."""
    if INSIDE in os.environ:
        return 0 if play(Path(os.environ[INSIDE])) else 4
    return started_inside(argv, name)
