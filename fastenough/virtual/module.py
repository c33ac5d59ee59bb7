# SPDX-License-Identifier: GPL-2.0-or-later
"""Building ``fastenough.ko`` (and test modules) against a kernel's unpacked headers."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fastenough.model import FastenoughError, NotApplicable
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.packages import cache_lock


def _checkout() -> Path:
    package = Path(__file__).resolve().parents[1]
    return package.parent if (package.parent / "meson.build").is_file() else package / "sources"


CHECKOUT = _checkout()
"""The source tree of programs for boards and instruments, and of plans; in an installation, a copy of it."""
SOURCES = CHECKOUT / "target" / "module"
FORMAT = tuple(CHECKOUT / "format" / name for name in ("bank.h", "fe_hist.h", "periodic.h"))

_KBUILD_ARCH = {"arm64": "arm64", "amd64": "x86", "armhf": "arm"}
_CROSS = {"arm64": "aarch64-linux-gnu-", "amd64": "x86_64-linux-gnu-", "armhf": "arm-linux-gnueabihf-"}

_BUILT_IN = "module"
_ABOVE = re.compile(r"\.\./(\w+)\.o\b")
_COMPLAINT = re.compile("error|warning", re.IGNORECASE)
_ERROR = re.compile(r"\berror:", re.IGNORECASE)
_NO_COMPLAINT = re.compile(
    r"^make(\[\d+\])?: |make(\[\d+\])?: \*\*\*|^  (The kernel was built by|You are using): |"
    r"warning: .*(pahole|compiler).* differs from the one used to build the kernel"
)
"""Output of make that is no error in the sources: repetitions, and warnings about other build tools."""


def compiler(arch: str) -> str:
    """The C compiler for that architecture; raises NotApplicable if it is missing."""
    gcc = f"{_CROSS[arch]}gcc"
    if shutil.which(gcc) is None:
        raise NotApplicable(f"{gcc} is missing; run: apt-get install gcc-{_CROSS[arch].removesuffix('-')}")
    return gcc


def complaint(said: str, failed: bool) -> str | None:
    """The first error or warning on the stderr of make, errors first; None if there is none."""
    ours = [line for line in said.splitlines() if not _NO_COMPLAINT.search(line)]
    complaints = [line for line in ours if _COMPLAINT.search(line)]
    if failed:
        errors = [line for line in complaints if _ERROR.search(line)]
        return (errors or complaints or ours or ["make printed no error message"])[0]
    return complaints[0] if complaints else None


def _shared(folder: Path) -> list[Path]:
    """What the module of a folder has of the folder above it."""
    names = _ABOVE.findall((folder / "Kbuild").read_text())
    return [*(folder.parent / f"{name}.c" for name in names), *(sorted(folder.parent.glob("*.h")) if names else ())]


def _sources(folder: Path) -> dict[Path, str]:
    """What the module of a folder is built of, and where that lies when it is built."""
    own = [path for path in folder.iterdir() if path.suffix in {".c", ".h"} or path.name == "Kbuild"]
    return {path: f"{_BUILT_IN}/{path.name}" for path in (*sorted(own), *FORMAT)} | {
        path: path.name for path in _shared(folder)
    }


def _key(kernel: Kernel, sources: Iterable[Path], variables: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join((kernel.release, *variables)).encode())
    symbols = kernel.headers / "Module.symvers"
    for source in (*sources, *([symbols] if symbols.is_file() else ())):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def build_module(kernel: Kernel, folder: Path = SOURCES, variables: Sequence[str] = ()) -> Path:
    """The module of a folder, built for a kernel; from the cache if nothing changed.

    ``variables`` are further make arguments, after those that the kernel needs (``KERNELS``).
    Raises FastenoughError with the first error of the compiler, NotApplicable if a tool is missing.
    """
    if not kernel.headers.exists():
        raise NotApplicable(
            f"cannot build a module for kernel {kernel.name}: its headers are missing; name the "
            "folder in which it was built (fastenough bench up --headers)"
        )
    sources = _sources(folder)
    variables = (*kernel.make, *variables)
    compiler(kernel.arch)
    with cache_lock() as cache:
        built = cache / "modules" / kernel.release / f"{folder.name}-{_key(kernel, sources, variables)}"
        if not built.is_dir():
            _build(kernel, sources, built, variables)
        return next(built.glob("*.ko"))


def _build(kernel: Kernel, sources: Mapping[Path, str], built: Path, variables: Sequence[str]) -> None:
    work = built.with_suffix(".building")
    shutil.rmtree(work, ignore_errors=True)
    (work / _BUILT_IN).mkdir(parents=True)
    for source, place in sources.items():
        shutil.copy(source, work / place)
    command = [
        "make",
        "-s",
        "--output-sync",
        f"-j{os.cpu_count() or 1}",
        "-C",
        str(kernel.headers),
        f"M={work / _BUILT_IN}",
        f"ARCH={_KBUILD_ARCH[kernel.arch]}",
        f"CROSS_COMPILE={_CROSS[kernel.arch]}",
        f"CC={compiler(kernel.arch)}",
        "W=1",
        *variables,
        "modules",
    ]
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**environment, "LC_ALL": "C"})
    wrong = complaint(done.stderr, bool(done.returncode))
    if wrong:
        raise FastenoughError(f"the module does not build for {kernel.release}: {wrong}")
    kept = work / "kept"
    kept.mkdir()
    for module in (work / _BUILT_IN).glob("*.ko"):
        module.rename(kept / module.name)
    kept.rename(built)
    shutil.rmtree(work)
