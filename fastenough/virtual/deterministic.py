# SPDX-License-Identifier: GPL-2.0-or-later
"""Deterministic guests: QEMU counts instructions, and nothing crosses from the host between boot and power-off.

The work of a guest is in its initramfs; its results leave through a port whose driver is loaded when the work is done.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fastenough.link.base import Completed, Stalled
from fastenough.model import BadInput, FastenoughError
from fastenough.virtual.board import own_prefix
from fastenough.virtual.cost_model import ARCH, COUNTS_FILE, CostModel, build_plugin
from fastenough.virtual.initramfs import base_archive
from fastenough.virtual.kernels import Kernel, module_content
from fastenough.virtual.machines import GuestMachine
from fastenough.virtual.packages import file_hash, output_of
from fastenough.virtual.probe import PROBE, build_chrt, build_probe
from fastenough.words import output_lines

EMULATOR_FILE = "/etc/fastenough-emulator"
"""File of the guest that names the QEMU that runs it."""
TOOLS_FOLDER = "tools"
"""Folder of the guest for programs that a load needs; its ``bin`` is in ``PATH``."""
_INIT = Path(__file__).resolve().parent / "deterministic.sh"
_SIZE = ("-smp", "1", "-m", "768M")
_CLOCK = ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm")
"""Each instruction takes 1 ns of the guest's clock, idle time none of the host's; the clock starts at a fixed date."""
_BARE = ("-nodefaults", "-nographic", "-no-reboot")
_PORT = ("-device", "virtserialport,chardev=results,nr=1,name=results")
_ARGUMENTS = "quiet panic=-1 random.trust_cpu=off"
_TAIL_LINES = 4


@dataclass(frozen=True)
class _Machine:
    """The QEMU machine of an architecture: its options, the controller of its ports, and kernel arguments."""

    options: tuple[str, ...]
    controller: str
    arguments: str = ""


_MACHINES = {
    "arm64": _Machine(("-M", "virt,dtb-randomness=off", "-cpu", "cortex-a53"), "virtio-serial-device"),
    "amd64": _Machine(("-M", "q35", "-cpu", "qemu64"), "virtio-serial-pci", "nokaslr"),
}


@dataclass(frozen=True)
class Command:
    """A command line, and its standard input."""

    argv: tuple[str, ...]
    input: bytes = b""


@dataclass(frozen=True)
class Background:
    """Command lines that run beside the measured one, from ``warm_up_s`` of the guest's time before it.

    Each has the directory of the same position in ``scratches``.  ``files``: additional programs of the guest, by path.
    """

    argvs: tuple[tuple[str, ...], ...]
    scratches: tuple[str, ...]
    warm_up_s: float
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Beginning:
    """Preparation of a guest before its commands: it writes ``settings`` (content of kernel files by path), and waits
    for ``phase_ns`` of its time."""

    settings: Mapping[str, bytes] = field(default_factory=dict)
    phase_ns: int = 0


@dataclass(frozen=True)
class Watcher:
    """A command line that records from before the background starts until SIGTERM after the last command.

    ``files``: additional programs of the guest, by path.
    """

    argv: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """Results of a guest: its commands in order; process ids of its background, their standard error, and samples of
    /proc (output of ``head``) from the begin of the first command to the end of the last.  ``watcher``: None without
    one.  ``costs``: what the cost model counted, None without one."""

    commands: tuple[Completed, ...]
    background: tuple[int, ...]
    errors: tuple[bytes, ...]
    samples: tuple[bytes, ...]
    watcher: Completed | None = None
    costs: bytes | None = None


_AT_ONCE = Beginning()


class DeterministicGuest:
    """Boots a kernel, with additional kernel arguments, for a piece of work.

    ``cost_model``: counts the paths of the probe.  Raises BadInput for a kernel of another architecture.
    """

    def __init__(self, kernel: Kernel, arguments: str = "", cost_model: CostModel | None = None) -> None:
        if kernel.arch not in _MACHINES:
            known = " and ".join(_MACHINES)
            raise BadInput(f"kernel {kernel.name} is for {kernel.arch}; deterministic boards run {known} kernels only")
        if cost_model is not None and kernel.arch != ARCH:
            raise BadInput(f"kernel {kernel.name} is for {kernel.arch}; cost models are for {ARCH} kernels only")
        self.kernel = kernel
        self.cost_model = cost_model
        self._machine = _MACHINES[kernel.arch]
        console = f"console={kernel.machine.console}"
        self._arguments = " ".join(filter(None, (console, _ARGUMENTS, self._machine.arguments, arguments)))

    @property
    def arch(self) -> str:
        """The architecture, by Debian's name."""
        return self.kernel.arch

    @cached_property
    def _probe(self) -> bytes:
        return build_probe(self.arch)

    @cached_property
    def _emulator(self) -> bytes:
        return "".join(f"{name}: {value}\n" for name, value in emulator_of(self.kernel.machine).items()).encode()

    def initramfs(
        self,
        commands: Sequence[Command],
        background: Background | None,
        beginning: Beginning = _AT_ONCE,
        watcher: Watcher | None = None,
    ) -> bytes:
        """The file system of a guest, with its work."""
        archive = base_archive(self.kernel)
        archive.file(PROBE.lstrip("/"), self._probe, 0o755)
        archive.file("bin/chrt", build_chrt(self.arch), 0o755)
        archive.file(EMULATOR_FILE.lstrip("/"), self._emulator)
        archive.file("init", _INIT.read_bytes(), 0o755)
        for number, (name, module) in enumerate(self.kernel.guest_modules().items()):
            archive.file(f"lib/{number:02}-{name}.ko", module_content(module))
        files = work_files(commands, background, beginning, watcher)
        for folder in sorted({str(parent) for path in files for parent in Path(path).parents} - {"."}):
            archive.directory(folder)
        for path, content in files.items():
            archive.file(path, content, 0o755)
        return archive.finish()

    @property
    def sha256(self) -> str:
        """Hash of the machine, the kernel, the probe and all other files of the guest, without work."""
        words = self.command_line(Path("/"))
        words[words.index(str(self.kernel.image))] = file_hash(self.kernel.image)
        return hashlib.sha256("\0".join(words).encode() + self.initramfs((), None)).hexdigest()

    def command_line(self, directory: Path) -> list[str]:
        """The command line of QEMU; the initramfs, the console's log and the results are files of ``directory``."""
        return [
            self.kernel.machine.program,
            *self._machine.options,
            *_SIZE,
            *_CLOCK,
            *_BARE,
            "-kernel",
            str(self.kernel.image),
            "-initrd",
            str(directory / "initramfs"),
            "-append",
            self._arguments,
            "-serial",
            f"file:{directory / 'console'}",
            "-chardev",
            f"file,id=results,path={directory / 'results'}",
            "-device",
            self._machine.controller,
            *_PORT,
            *self._cost_options(directory),
        ]

    def _cost_options(self, directory: Path) -> list[str]:
        """Options of the cost model, whose file with the probe is then in the directory."""
        if self.cost_model is None:
            return []
        program = directory / "probe"
        program.write_bytes(self._probe)
        return self.cost_model.options(build_plugin(), program, directory)

    def boot(
        self,
        commands: Sequence[Command],
        background: Background | None = None,
        beginning: Beginning = _AT_ONCE,
        watcher: Watcher | None = None,
    ) -> GuestRun:
        """Boot a guest, which runs the commands one after another and powers off."""
        directory = tempfile.TemporaryDirectory(prefix=own_prefix())
        Path(directory.name, "initramfs").write_bytes(self.initramfs(commands, background, beginning, watcher))
        return GuestRun(directory, self.command_line(Path(directory.name)), len(commands))


class GuestRun:
    """A guest from its boot to its power-off; its files are in ``directory``, which is removed at the end."""

    def __init__(self, directory: tempfile.TemporaryDirectory[str], command_line: Sequence[str], commands: int) -> None:
        self._directory = directory
        self._commands = commands
        with Path(directory.name, "qemu").open("wb") as log:
            self._popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command_line],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def end(self) -> None:
        """Kill the guest; ``results`` then raises FastenoughError."""
        self._popen.kill()

    def results(self, limit_s: float) -> Results:
        """Wait for the end of the guest, and return its results; to be called once.

        Raises Stalled after ``limit_s`` of the bench's time, FastenoughError with the last lines of the console if the
        guest ends without results.
        """
        try:
            self._popen.wait(limit_s)
            return read_results(Path(self._directory.name), self._commands)
        except subprocess.TimeoutExpired:
            raise Stalled(f"the deterministic guest has not ended after {limit_s:g} s") from None
        finally:
            self._popen.kill()
            self._popen.wait()
            self._directory.cleanup()


def emulator_of(machine: GuestMachine) -> dict[str, str]:
    """The program that emulates a machine: its version, as it prints it, and its SHA-256."""
    machine.require()
    program = Path(output_of(["sh", "-c", 'command -v "$1"', "sh", machine.program]).strip())
    version = output_of([str(program), "--version"]).splitlines()[0]
    return {"program": machine.program, "version": version, "sha256": file_hash(program)}


def _script(argv: Sequence[str], first: str = "") -> bytes:
    """A shell script that runs a command as its child, as the agent does on other boards."""
    return f"{first}{shlex.join(argv)}\nexit $?\n".encode()


def work_files(
    commands: Sequence[Command],
    background: Background | None,
    beginning: Beginning = _AT_ONCE,
    watcher: Watcher | None = None,
) -> dict[str, bytes]:
    """The files of a guest that are its work, by path."""
    files = {"work/phase": f"{beginning.phase_ns / 1e9:.9f}\n".encode()} if beginning.phase_ns else {}
    for number, (path, content) in enumerate(beginning.settings.items()):
        files[f"work/setting-{number:03}"] = content
        files[f"work/place-{number:03}"] = path.encode()
    for number, command in enumerate(commands):
        files[f"work/command-{number:03}"] = _script(command.argv)
        files[f"work/input-{number:03}"] = command.input
    if watcher is not None:
        files["work/watcher"] = f"exec {shlex.join(watcher.argv)}\n".encode()
        files |= watcher.files
    if background is not None:
        files["work/warm-up"] = f"{background.warm_up_s:g}\n".encode()
        files |= background.files
        for number, (argv, scratch) in enumerate(zip(background.argvs, background.scratches, strict=True)):
            files[f"work/load-{number:03}"] = _script(argv, f"mkdir -p {shlex.quote(scratch)}\n")
    return files


def read_results(directory: Path, commands: int) -> Results:
    """The results that a guest left in a directory; raises FastenoughError if they are not complete."""
    try:
        content = (directory / "results").read_bytes()
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            files = {
                Path(entry.name).name: stream.read()
                for entry in archive
                if entry.isfile() and (stream := archive.extractfile(entry)) is not None
            }
        return Results(
            tuple(_completed(files, f"{number:03}") for number in range(commands)),
            tuple(map(int, files.get("loads", b"").split())),
            tuple(files[name] for name in sorted(files) if name.startswith("errors-load-")),
            tuple(files[name] for name in sorted(files) if name.startswith("sample-")),
            _completed(files, "watcher") if "status-watcher" in files else None,
            costs.read_bytes() if (costs := directory / COUNTS_FILE).exists() else None,
        )
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise FastenoughError(f"the deterministic guest ended without results; {_last_output(directory)}") from error


def _completed(files: Mapping[str, bytes], number: str) -> Completed:
    return Completed(int(files[f"status-{number}"]), files[f"output-{number}"], files[f"errors-{number}"])


def _last_output(directory: Path) -> str:
    lines: list[str] = []
    for name in ("qemu", "console"):
        with contextlib.suppress(OSError):
            lines += output_lines((directory / name).read_bytes())
    panic = [line for line in lines if "Kernel panic" in line]
    return f"last output: {' | '.join(panic[-1:] or lines[-_TAIL_LINES:]) or 'nothing'}"
