# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds of kernels for guests, from a source tree and fragments of a configuration.

Each source, architecture and set of options has its own build directory in the cache.  Make continues there, so that a
build after a change of the source compiles the changed files only.  As the files of a directory may change, image and
modules of each build are copied into a separate folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough.model import BadInput, FastenoughError
from fastenough.virtual.custom_kernels import REPLACED_S, KernelFiles, linked_images
from fastenough.virtual.kernel_config import dropped_options, fragment_text, read_options
from fastenough.virtual.kernel_source import BUILD_LOCK, KernelSource, require_plain
from fastenough.virtual.module import (
    IMAGE_RECORD,
    cross_compiler,
    first_diagnostic,
    make_arguments,
    make_environment,
)
from fastenough.virtual.packages import cache_lock, file_hash, require_space

_IMAGES = {"arm64": "arch/arm64/boot/Image", "amd64": "arch/x86/boot/bzImage"}
_TOOLS = {"make": "make", "gcc": "gcc", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils"}
"""Debian's package of each tool; xz unpacks source packages."""
_OBJTOOL_HEADER, _OBJTOOL_PACKAGE = "libelf.h", "libelf-dev"
"""Kernels for x86-64 are built with objtool, which uses this library."""
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "fastenough",
    "KBUILD_BUILD_HOST": "bench",
    "KBUILD_BUILD_VERSION": "1",
}
"""Environment of make: the same source and options give the same image."""
_MODULES = "installed"
_COPY = re.compile(r"\.?[0-9a-f]{12}-[0-9a-f]{12}")
"""Name of the folder of a copy, with a dot until it is whole."""

StepCallback = Callable[[str], None]
"""Progress callback with the name of a step that begins."""


@dataclass(frozen=True)
class BuiltKernel:
    """``files``: image, modules and build directory; ``built``: False if it was in the cache."""

    files: KernelFiles
    built: bool


def missing_packages(arch: str) -> list[str]:
    """Debian's packages that a build for this architecture needs and that are not installed."""
    cross = cross_compiler(arch)
    tools = _TOOLS | {cross: f"gcc-{cross.removesuffix('-gcc')}"}
    missing = [package for tool, package in tools.items() if shutil.which(tool) is None]
    if arch == "amd64" and "gcc" not in missing and not _has_header(_OBJTOOL_HEADER):
        missing.append(_OBJTOOL_PACKAGE)
    return missing


def _has_header(name: str) -> bool:
    command = ["gcc", "-fsyntax-only", "-include", name, "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def require_packages(arch: str) -> None:
    """Raises BadInput with the names of missing packages."""
    missing = missing_packages(arch)
    if missing:
        raise BadInput(
            f"no kernel for {arch} can be built: not installed: {', '.join(missing)}; "
            f"run: apt-get install {' '.join(missing)}"
        )


def build_key(source: KernelSource, arch: str, options: Mapping[str, str]) -> str:
    """Key of a build: a hash of the source's version or directory, the architecture and the options."""
    text = "\0".join((source.identity, arch, fragment_text(options)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def compiler_version(arch: str) -> str:
    """The first line of the compiler's version, as the kernel's CC_VERSION_TEXT."""
    command = [cross_compiler(arch), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def build_kernel(
    source: KernelSource, arch: str, options: Mapping[str, str], tell: StepCallback = lambda step: None
) -> BuiltKernel:
    """Build a kernel, or take it from the cache if its source is a package and nothing changed.

    Raises BadInput for options that the kernel's configuration drops, FastenoughError with the first error of the
    build, OSError on a full disk.
    """
    key = build_key(source, arch, options)
    with cache_lock(BUILD_LOCK) as cache:
        require_plain(cache, "name another directory in FASTENOUGH_CACHE")
        build = _Build(source.tree, cache / "builds" / key, arch, key)
        cached = source.version is not None and build.is_complete()
        if not cached:
            tell("configuring")
            build.configure(options)
            tell("compiling")
            build.compile()
        files = build.files if source.version else _stored(build.files, cache / "built", key)
        return BuiltKernel(files, not cached)


def _stored(files: KernelFiles, parent: Path, key: str) -> KernelFiles:
    """Copies of image and modules in a folder named by their content, made whole or not at all."""
    assert files.modules is not None
    _remove_unused(parent)
    folder = parent / f"{key}-{_content_hash(files.image, files.modules)[:12]}"
    if not folder.is_dir():
        unfinished = folder.with_name(f".{folder.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        shutil.copy2(files.image, unfinished / files.image.name)
        shutil.copytree(files.modules, unfinished / files.modules.name, symlinks=True)
        unfinished.rename(folder)
    os.utime(folder)  # it stays until its kernel is registered
    return replace(files, image=folder / files.image.name, modules=folder / files.modules.name)


def _remove_unused(parent: Path) -> None:
    """Remove the copies that no registered kernel has used for a day."""
    used = {image.parent for image in linked_images()}
    for folder in parent.glob("*"):
        is_old = time.time() - folder.stat().st_mtime > REPLACED_S
        if _COPY.fullmatch(folder.name) and is_old and folder.resolve() not in used:
            shutil.rmtree(folder, ignore_errors=True)


def _content_hash(image: Path, modules: Path) -> str:
    files = sorted(path for path in modules.rglob("*") if path.is_file() and not path.is_symlink())
    lines = [file_hash(image), *(f"{file_hash(path)} {path.relative_to(modules)}" for path in files)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class _Build:
    tree: Path
    objects: Path
    arch: str
    key: str

    @property
    def files(self) -> KernelFiles:
        return KernelFiles(self.objects / _IMAGES[self.arch], self.objects / _MODULES, self.objects)

    def is_complete(self) -> bool:
        """Whether the image is that of the last complete build."""
        image, record = self.files.image, self.objects / IMAGE_RECORD
        return image.is_file() and record.is_file() and record.read_text() == file_hash(image)

    def configure(self, options: Mapping[str, str]) -> None:
        """Write the smallest configuration with these options; raises BadInput for those that were dropped."""
        self.objects.mkdir(parents=True, exist_ok=True)
        fragment = self.objects / "fastenough.config"
        fragment.write_text(fragment_text(options))
        self._make("allnoconfig", f"KCONFIG_ALLCONFIG={fragment}")
        dropped = dropped_options(options, read_options(self.objects / ".config"))
        if dropped:
            raise BadInput(
                f"the configuration of {self.tree} has dropped {', '.join(dropped)}; this source does not have "
                "these options, or the fragments lack options that they depend on"
            )

    def compile(self) -> None:
        (self.objects / IMAGE_RECORD).write_text("")  # of no image, until the build is complete
        self._make(Path(_IMAGES[self.arch]).name, "modules")
        shutil.rmtree(self.objects / _MODULES, ignore_errors=True)
        self._make("modules_install", f"INSTALL_MOD_PATH={self.objects / _MODULES}")
        (self.objects / IMAGE_RECORD).write_text(file_hash(self.files.image))

    def _make(self, *arguments: str) -> None:
        """Run make; raises FastenoughError with the first error."""
        variables = (f"O={self.objects}", f"LOCALVERSION=-{self.key}", *_with_ccache(make_arguments(self.arch)))
        command = ("make", "-s", f"-j{os.cpu_count() or 1}", "-C", str(self.tree), *variables, *arguments)
        status, errors = _run_make(command, make_environment() | _REPRODUCIBLE)
        require_space(errors, self.objects)
        if status:
            raise FastenoughError(
                f"the kernel of {self.tree} does not build: "
                f"{first_diagnostic(errors.replace(f'{self.tree}/', ''), True)}"
            )


def _run_make(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and standard error.  However this process ends, make gets SIGTERM, by which it ends its children."""
    with subprocess.Popen(
        ("setpriv", "--pdeathsig", "TERM", *command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        close_fds=False,
    ) as make:
        try:
            _, errors = make.communicate()
        except BaseException:
            make.terminate()
            make.communicate()
            raise
    return make.returncode, errors


def _with_ccache(arguments: Sequence[str]) -> list[str]:
    """Arguments of make, with ccache before the compiler if it is installed."""
    if shutil.which("ccache") is None:
        return list(arguments)
    return [
        argument.replace("CC=", "CC=ccache ", 1) if argument.startswith("CC=") else argument for argument in arguments
    ]
