# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's file system: a cpio archive in "newc" format, built without root or tools."""

from __future__ import annotations

import gzip
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from fastenough.model import FastenoughError
from fastenough.virtual.kernels import Kernel, module_content
from fastenough.virtual.module import CHECKOUT, SOURCES, build_module, compiler
from fastenough.virtual.packages import cache_lock

_FOLDER = Path(__file__).resolve().parent
AGENT = CHECKOUT / "target" / "agent"
_CONSOLE = (5, 1)


@dataclass
class Archive:
    """Archive entries in order of addition; a folder must precede its content."""

    _parts: list[bytes] = field(default_factory=list)
    _inode: int = 0

    def _entry(self, path: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._inode += 1
        name = path.encode() + b"\0"
        numbers = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % number for number in numbers) + name
        self._parts += [head, bytes(-len(head) % 4), content, bytes(-len(content) % 4)]

    def directory(self, path: str) -> None:
        self._entry(path, stat.S_IFDIR | 0o755)

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._entry(path, stat.S_IFREG | mode, content)

    def link(self, path: str, to: str) -> None:
        self._entry(path, stat.S_IFLNK | 0o777, to.encode())

    def tree(self, root: Path) -> None:
        """Add the content of a folder; only files, folders and links."""
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if path.is_symlink():
                self.link(name, str(path.readlink()))
            elif path.is_dir():
                self.directory(name)
            elif path.is_file():
                self.file(name, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))

    def device(self, path: str, numbers: tuple[int, int]) -> None:
        self._entry(path, stat.S_IFCHR | 0o600, device=numbers)

    def finish(self) -> bytes:
        """End the archive and return it, compressed."""
        self._inode = -1
        self._entry("TRAILER!!!", 0)
        return gzip.compress(b"".join(self._parts), compresslevel=1, mtime=0)


def build_agent(arch: str) -> bytes:
    """The static agent; raises FastenoughError with the first error of the compiler, NotApplicable without one."""
    with cache_lock() as cache:
        agent = cache / f"agent-{arch}"
        command = [
            compiler(arch),
            "-std=gnu11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-static",
            "-s",
            "-o",
            str(agent),
            *map(str, sorted(AGENT.glob("*.c"))),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise FastenoughError(f"the guest's agent does not build: {(result.stderr.splitlines() or ['?'])[0]}")
        return agent.read_bytes()


def base_archive(kernel: Kernel) -> Archive:
    """The content of every guest: the user's files for it, its folders, the console, busybox and the user root.

    Files that are added later override those of the user with the same names.
    """
    archive = Archive()
    archive.tree(kernel.root)
    for directory in ("bin", "dev", "etc", "lib", "proc", "root", "run", "sys", "tmp", "var"):
        archive.directory(directory)
    archive.device("dev/console", _CONSOLE)
    archive.file("bin/busybox", kernel.busybox.read_bytes(), 0o755)
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    return archive


def build_initramfs(kernel: Kernel) -> bytes:
    """The initramfs of a guest: busybox, the agent, and the modules of its port."""
    archive = base_archive(kernel)
    archive.file("bin/agent", build_agent(kernel.arch), 0o755)
    archive.file("init", (_FOLDER / "init.sh").read_bytes(), 0o755)
    pins = {name: build_module(kernel, SOURCES / name) for name in kernel.machine.pins.modules}
    for number, (name, module) in enumerate((kernel.guest_modules() | pins).items()):
        archive.file(f"lib/{number:02}-{name}.ko", module_content(module))
    return archive.finish()
