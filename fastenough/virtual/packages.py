# SPDX-License-Identifier: GPL-2.0-or-later
"""Download of Debian's kernels by the machine's apt; nothing is installed.

A private apt state includes the guest's architecture; the packages are unpacked into a tree in the cache.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fastenough.files import changeable_by_others, replace_whole
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.kernels import KERNELS, Kernel
from fastenough.virtual.suites import choose_suite, run_with_their_libc

GUEST_ARCH = "arm64"
"""Architecture of guests without a named kernel."""

_FLAVOURS = {"armhf": "armmp"}
"""Debian's name of the kernel for an architecture, if it differs from that of the architecture."""

_TREE_VERSION = 1
"""Part of the cache's name: raise it when the layout of the unpacked tree changes."""

DownloadCallback = Callable[[Path, int], None]
"""Progress callback at the begin of a download: its folder, and the total number of bytes."""


def no_progress(folder: Path, size_bytes: int) -> None:
    """Progress callback that does nothing."""


def cache_dir() -> Path:
    """``FASTENOUGH_CACHE``, else ``cache/`` of this user's checkout, else the user's cache directory."""
    if "FASTENOUGH_CACHE" in os.environ:
        return Path(os.environ["FASTENOUGH_CACHE"]).absolute() / "virtual"
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "target" / "module").is_dir() and _is_ours(checkout):
        return checkout / "cache" / "virtual"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fastenough" / "virtual"


def _is_ours(checkout: Path) -> bool:
    return checkout.stat().st_uid == os.geteuid() and changeable_by_others(checkout) is None


def _require_ours(cache: Path) -> None:
    """Raises BadInput if other users can change the cache: its files run in guests, and links in it are followed."""
    path = changeable_by_others(cache)
    if path is not None:
        raise BadInput(
            f"{cache} is not a safe place for the cache: other users can change {path}; "
            "name a private place in FASTENOUGH_CACHE"
        )


@contextlib.contextmanager
def cache_lock(name: str = "lock") -> Iterator[Path]:
    """The cache, for one process at a time that takes the lock of that name; raises BadInput if other users could
    change the cache.

    Children that are started with ``close_fds=False`` hold the lock too: a build that outlives a killed process would
    compile what the next one checks out.
    """
    cache = cache_dir()
    try:
        _require_ours(cache)
        cache.mkdir(parents=True, exist_ok=True)
        _require_ours(cache)
        lock = os.open(cache / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        os.set_inheritable(lock, True)
    except OSError as error:
        raise BadInput(f"{cache}: {error.strerror}; name a writable place in FASTENOUGH_CACHE") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache
    finally:
        os.close(lock)


def host_arch() -> str:
    return output_of(["dpkg", "--print-architecture"]).strip()


def _run(
    argv: Sequence[str], environment: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    if shutil.which(argv[0]) is None:
        raise NotApplicable(f"{argv[0]} is missing; the virtual bench needs a Debian machine")
    return subprocess.run(
        argv,
        env={**os.environ, "LC_ALL": "C", **(environment or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def output_of(argv: Sequence[str], environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    result = _run(argv, environment, cwd)
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.startswith("E: ")] or result.stderr.splitlines()
        raise FastenoughError(f"{' '.join(argv[:2])} failed: {' '.join(lines[-2:]) or 'no error message'}")
    return result.stdout


def require_space(stderr: str, place: Path) -> None:
    """Raise OSError if the program with this error output has found the disk of a file or folder full."""
    text = os.strerror(errno.ENOSPC)
    if text in stderr:
        raise OSError(errno.ENOSPC, text, str(place))


class Apt:
    """apt with a private state and cache, for this machine's architecture and another one.

    It uses the machine's package sources, or those in ``directory / "sources.list"`` if the file exists.
    """

    def __init__(self, directory: Path, arch: str) -> None:
        self._directory = directory
        self._unreachable = ""
        for part in ("state/lists/partial", "cache/archives/partial", "download"):
            (self._directory / part).mkdir(parents=True, exist_ok=True)
        (self._directory / "status").touch()
        config = self._directory / f"{arch}.conf"
        architectures = "".join(f'"{name}"; ' for name in dict.fromkeys((host_arch(), arch)))
        sources = self._directory / "sources.list"
        private_sources = (
            f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\n' if sources.is_file() else ""
        )
        config.write_text(
            f"{private_sources}APT::Architectures {{ {architectures}}};\n"
            f'Dir::State "{self._directory}/state";\n'
            f'Dir::State::status "{self._directory}/status";\n'
            f'Dir::Cache "{self._directory}/cache";\n'
            'APT::Sandbox::User "";\n'
            'Acquire::Languages "none";\n'
            'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n'
            'Acquire::http::Timeout "20";\n'
            'Acquire::Retries "1";\n'
            'APT::Update::Post-Invoke-Success "";\n'
        )
        self._environment = {"APT_CONFIG": str(config)}

    def update(self) -> None:
        """Update the package lists; an unreachable source matters only for a package that no other has."""
        messages = _run(["apt-get", "update", "-q"], self._environment).stderr.splitlines()
        self._unreachable = next((line[3:] for line in messages if line.startswith(("E: ", "W: Failed to fetch"))), "")

    def depends(self, package: str) -> list[str]:
        """Names of the packages it depends on; raises FastenoughError if there is no such package."""
        output = self._query(["show", "--no-all-versions", package], package)
        field = re.search(r"^Depends: (.*)$", output, re.MULTILINE)
        return re.findall(r"(?:^|[,|] )([a-z0-9][a-z0-9+.-]+)", field[1]) if field else []

    def with_libraries(self, packages: Sequence[str]) -> list[str]:
        """These packages and all libraries they depend on; raises FastenoughError if there is no such package."""
        output = self._query(["depends", "--important", "--recurse", *packages], ", ".join(packages))
        dependencies: dict[str, list[str]] = {}
        current: list[str] = []
        for line in output.splitlines():
            if re.match(r"[a-z0-9]", line):
                current = dependencies.setdefault(line, [])
            elif match := re.match(r"[ |]*(?:Pre)?Depends: (z?lib\S+)$", line):
                current.append(match[1])
        selected: dict[str, None] = {}
        pending = list(packages)
        while pending:
            package = pending.pop()
            if package in dependencies and package not in selected:
                selected[package] = None
                pending += dependencies[package]
        return list(selected)

    def versions(self, packages: Sequence[str]) -> dict[str, str]:
        """The candidate version of each package."""
        output = output_of(["apt-cache", "show", "--no-all-versions", *packages], self._environment)
        return dict(re.findall(r"^Package: (\S+)\n(?:[^\n]+\n)*?Version: (\S+)$", output, re.MULTILINE))

    def _query(self, arguments: Sequence[str], package: str) -> str:
        """Output of apt-cache; raises FastenoughError if there is no such package."""
        try:
            return output_of(["apt-cache", *arguments], self._environment)
        except FastenoughError as error:
            if self._unreachable:
                raise FastenoughError(
                    f"the package sources cannot be reached, and {package} is not known without them: "
                    f"{self._unreachable}"
                ) from error
            raise FastenoughError(
                f"no package {package} in the apt sources of this machine; "
                "add a suite that has it, or choose another kernel"
            ) from error

    def unpack(self, packages: Sequence[str], tree: Path, on_download: DownloadCallback = no_progress) -> None:
        """Download packages and unpack them into one tree."""
        download = self._directory / "download"
        for outdated in download.iterdir():
            outdated.unlink()
        uris = output_of(["apt-get", "download", "-q", "--print-uris", *packages], self._environment, cwd=download)
        on_download(download, sum(map(int, re.findall(r"^'[^']*' \S+ (\d+)", uris, re.MULTILINE))))
        output_of(["apt-get", "download", "-q", *packages], self._environment, cwd=download)
        for archive in sorted(download.glob("*.deb")):
            output_of(["dpkg", "-x", str(archive), str(tree)])
            archive.unlink()


def _names(packages: Sequence[str], pattern: str) -> list[str]:
    return [name for name in packages if re.fullmatch(pattern, name)]


def _resolve(apt: Apt, name: str, arch: str, image: bool) -> tuple[str, list[str]]:
    """Release of the newest such kernel, and the packages to fetch for it."""
    origin = KERNELS[name]
    meta = f"linux-image-{origin.meta_prefix}{_FLAVOURS.get(arch, arch)}"
    images = _names(apt.depends(f"{meta}:{arch}"), r"linux-image-\d.*")
    if not images:
        raise FastenoughError(f"{meta} depends on no kernel")
    release = images[0].removeprefix("linux-image-")
    dependencies = apt.depends(f"linux-headers-{release}:{arch}")
    host_packages = _names(dependencies, r"linux-(headers|kbuild)-.*") + (["libc6"] if origin.suite else [])
    guest_packages = [f"linux-headers-{release}"]
    if image:
        parts = _names(apt.depends(f"{images[0]}:{arch}"), r"linux-(base|binary|modules)-\d.*")
        guest_packages += [images[0], *parts, "busybox-static"]
    return release, [
        *(f"{package}:{arch}" for package in guest_packages),
        *(f"{package}:{host_arch()}" for package in host_packages),
    ]


def use_in_place(headers: Path, tree: Path) -> None:
    """Headers refer to each other by installed paths: replace these by the unpacked ones, also after the cache has
    been moved since."""
    makefile = headers / "Makefile"
    original = makefile.read_text()
    relocated = re.sub(
        r"^(include |KBUILD_OUTPUT=)/\S*?usr/src/", rf"\g<1>{tree.resolve()}/usr/src/", original, flags=re.M
    )
    if relocated != original:
        makefile.write_text(relocated)


def file_hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _cached_kernel(record: Path, name: str, arch: str, tree: Path) -> Kernel | None:
    """The kernel fetched before, None unless its files are unchanged."""
    try:
        content = json.loads(record.read_bytes())
        unchanged = all(file_hash(tree / part) == sha256 for part, sha256 in content["sha256"].items())
        kernel = Kernel(name, arch, content["release"], tree)
        if (kernel.headers / "Makefile").is_file():
            use_in_place(kernel.headers, tree)
        return kernel if unchanged else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def fetch(
    name: str, arch: str = "", image: bool = True, refresh: bool = False, on_download: DownloadCallback = no_progress
) -> Kernel:
    """The kernel of that name (see KERNELS), from the cache or through apt; ``arch`` if not that of its guests.

    Raises BadInput for an unknown name, NotApplicable if this is not a Debian machine, FastenoughError if
    apt has no such package.
    """
    if name not in KERNELS:
        raise BadInput(f"unknown kernel {name!r}; choose one of {', '.join(KERNELS)}")
    suite, arch = KERNELS[name].suite, arch or KERNELS[name].arch
    with cache_lock() as cache:
        folder = cache / "suites" / suite if suite else cache
        tree = folder / f"tree-{_TREE_VERSION}-{arch}"
        record = tree / f"{name}-{'image' if image else 'headers'}.json"
        cached = None if refresh else _cached_kernel(record, name, arch, tree)
        if cached is not None:
            return cached
        tree.mkdir(parents=True, exist_ok=True)
        if suite:
            choose_suite(folder / "apt", suite)
        apt = Apt(folder / "apt", arch)
        apt.update()
        release, packages = _resolve(apt, name, arch, image)
        apt.unpack(packages, tree, on_download)
        kernel = Kernel(name, arch, release, tree)
        use_in_place(kernel.headers, tree)
        if suite:
            run_with_their_libc(tree)
        parts = {str(part.relative_to(tree)): file_hash(part) for part in (kernel.parts() if image else ())}
        replace_whole(record, json.dumps({"release": release, "sha256": parts}).encode())
        return kernel
