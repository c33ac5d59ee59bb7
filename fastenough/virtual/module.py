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
from fastenough.virtual.packages import cache_lock, file_hash


def _checkout() -> Path:
    package = Path(__file__).resolve().parents[1]
    return package.parent if (package.parent / "meson.build").is_file() else package / "sources"


CHECKOUT = _checkout()
"""The source tree of programs for boards and instruments, and of plans; in an installation, a copy of it."""
SOURCES = CHECKOUT / "target" / "module"
FORMAT = tuple(CHECKOUT / "format" / name for name in ("bank.h", "fe_hist.h", "periodic.h"))

IMAGE_RECORD = "fastenough-image"
"""File in a build directory of the bench: the hash of the image of its last complete build."""

_KBUILD_ARCH = {"arm64": "arm64", "amd64": "x86", "armhf": "arm"}
_CROSS = {"arm64": "aarch64-linux-gnu-", "amd64": "x86_64-linux-gnu-", "armhf": "arm-linux-gnueabihf-"}

_BUILD_FOLDER = "module"
_PARENT_OBJECT = re.compile(r"\.\./(\w+)\.o\b")
_DIAGNOSTIC = re.compile("error|warning", re.IGNORECASE)
_ERROR = re.compile(r"\berror:", re.IGNORECASE)
_NO_DIAGNOSTIC = re.compile(
    r"^make(\[\d+\])?: |make(\[\d+\])?: \*\*\*|^  (The kernel was built by|You are using): |"
    r"warning: .*(pahole|compiler).* differs from the one used to build the kernel"
)
"""Output of make that is no error in the sources: repetitions, and warnings about other build tools."""


def cross_compiler(arch: str) -> str:
    """Name of the C compiler for that architecture."""
    return f"{_CROSS[arch]}gcc"


def compiler(arch: str) -> str:
    """The C compiler for that architecture; raises NotApplicable if it is missing."""
    gcc = cross_compiler(arch)
    if shutil.which(gcc) is None:
        raise NotApplicable(f"{gcc} is missing; run: apt-get install gcc-{_CROSS[arch].removesuffix('-')}")
    return gcc


def make_arguments(arch: str) -> tuple[str, ...]:
    """Arguments of make for a kernel of that architecture; raises NotApplicable if the compiler is missing."""
    return f"ARCH={_KBUILD_ARCH[arch]}", f"CROSS_COMPILE={_CROSS[arch]}", f"CC={compiler(arch)}"


def make_environment() -> dict[str, str]:
    """Environment of make: messages in English, and no options of a make that runs this program."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
    return {**inherited, "LC_ALL": "C"}


def first_diagnostic(output: str, failed: bool) -> str | None:
    """The first error or warning on the stderr of make, errors first; None if there is none."""
    relevant = [line for line in output.splitlines() if not _NO_DIAGNOSTIC.search(line)]
    diagnostics = [line for line in relevant if _DIAGNOSTIC.search(line)]
    if failed:
        errors = [line for line in diagnostics if _ERROR.search(line)]
        return (errors or diagnostics or relevant or ["make printed no error message"])[0]
    return diagnostics[0] if diagnostics else None


def _shared_sources(folder: Path) -> list[Path]:
    """Sources in the folder above that the module of a folder shares."""
    names = _PARENT_OBJECT.findall((folder / "Kbuild").read_text())
    return [*(folder.parent / f"{name}.c" for name in names), *(sorted(folder.parent.glob("*.h")) if names else ())]


def _sources(folder: Path) -> dict[Path, str]:
    """Sources of the module of a folder, each with its path in the build folder."""
    own = [path for path in folder.iterdir() if path.suffix in {".c", ".h"} or path.name == "Kbuild"]
    return {path: f"{_BUILD_FOLDER}/{path.name}" for path in (*sorted(own), *FORMAT)} | {
        path: path.name for path in _shared_sources(folder)
    }


def _key(kernel: Kernel, sources: Iterable[Path], variables: Sequence[str]) -> str:
    """Key of a module in the cache.  It depends on the image: two builds of one release may differ in their structures.

    In a build directory of the bench the symbols are those of the last image, and so in no key.
    """
    image = file_hash(kernel.image) if kernel.image.is_file() else ""  # the headers of a package may be here alone
    digest = hashlib.sha256("\0".join((kernel.release, image, *variables)).encode())
    symbols = kernel.headers / "Module.symvers"
    is_of_image = symbols.is_file() and not (kernel.headers / IMAGE_RECORD).is_file()
    for source in (*sources, *([symbols] if is_of_image else ())):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def has_headers(kernel: Kernel) -> bool:
    """Whether modules can be built for a kernel: not if its build directory is now that of another image."""
    record = kernel.headers / IMAGE_RECORD
    return kernel.headers.exists() and (not record.is_file() or record.read_text() == file_hash(kernel.image))


def _require_headers(kernel: Kernel) -> None:
    if not has_headers(kernel):
        raise NotApplicable(
            f"cannot build a module for kernel {kernel.name}: its source was changed and built again since; "
            "build each kernel from a separate directory (git worktree)"
        )


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
            _require_headers(kernel)
            _build(kernel, sources, built, variables)
        return next(built.glob("*.ko"))


def build_guest_modules(kernel: Kernel) -> None:
    """Build the modules that guests of every kernel use, which a later build of the same directory then leaves usable.

    Raises as :func:`build_module` does.
    """
    for folder in (SOURCES, SOURCES / "inject", *(SOURCES / name for name in kernel.machine.pins.modules)):
        build_module(kernel, folder)


def _build(kernel: Kernel, sources: Mapping[Path, str], built: Path, variables: Sequence[str]) -> None:
    work = built.with_suffix(".building")
    shutil.rmtree(work, ignore_errors=True)
    (work / _BUILD_FOLDER).mkdir(parents=True)
    for source, path in sources.items():
        shutil.copy(source, work / path)
    command = [
        "make",
        "-s",
        "--output-sync",
        f"-j{os.cpu_count() or 1}",
        "-C",
        str(kernel.headers),
        f"M={work / _BUILD_FOLDER}",
        *make_arguments(kernel.arch),
        "W=1",
        *variables,
        "modules",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=make_environment())
    _require_headers(kernel)  # a build of the kernel in that directory does not wait for this one
    diagnostic = first_diagnostic(result.stderr, bool(result.returncode))
    if diagnostic:
        raise FastenoughError(f"the module does not build for {kernel.release}: {diagnostic}")
    modules = work / "modules"
    modules.mkdir()
    for module in (work / _BUILD_FOLDER).glob("*.ko"):
        module.rename(modules / module.name)
    modules.rename(built)
    shutil.rmtree(work)
