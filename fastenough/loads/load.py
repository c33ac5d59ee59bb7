# SPDX-License-Identifier: GPL-2.0-or-later
"""Declaration of a load: commands, required tools, bounds, and the expected use of resources."""

from __future__ import annotations

from dataclasses import dataclass

TOOL_PACKAGES = {
    "stress-ng": "stress-ng",
    "hackbench": "rt-tests",
    "scp": "openssh-client",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "ping": "iputils-ping",
    "unshare": "util-linux",
    "nice": "coreutils",
}
"""Debian package of each tool a load may need and a minimal system may lack."""


@dataclass(frozen=True)
class Expectation:
    """Minimum use of resources by a load during the measurement; the rates are far below the usual ones.

    ``cpu_share`` is CPU time per second and CPU; switches are voluntary and involuntary ones together; bytes are
    those passed through read and write calls; ``counted`` is by how much the load's own counter grows.  Processes are
    all those that always exist, the commands' first ones included: a surplus would hide the end of a worker.
    """

    cpu_share: float = 0.0
    switches_per_s: float = 0.0
    bytes_read_per_s: float = 0.0
    bytes_written_per_s: float = 0.0
    counted_per_s: float = 0.0
    processes: int = 0
    processes_per_cpu: int = 0

    def processes_on(self, cpus: int) -> int:
        """Minimum number of processes."""
        return self.processes + self.processes_per_cpu * cpus


@dataclass(frozen=True)
class Load:
    """One kind of background work.

    In ``commands``, ``{cpus}`` stands for the number of CPUs in use, ``{scratch}`` for a directory of the command's
    own, removed at the end, and ``{limit_s}`` for the time after which the command must be gone by itself.
    ``disk_bytes`` and ``memory_bytes`` are bounds per CPU.  ``counter`` is a command that prints a number, which grows
    as the load works: the proof of a load whose processes do not show its work; ``{scratch}`` is the first command's.
    ``start_s`` is how long it may take until the processes that are expected of it are there. ``trial`` is a command
    that succeeds where the commands can run; its last words are the reason why they cannot.
    """

    name: str
    source: str
    tools: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    expects: Expectation = Expectation()
    disk_bytes: int = 0
    memory_bytes: int = 0
    counter: tuple[str, ...] = ()
    start_s: float = 10.0
    trial: tuple[str, ...] = ()

    def command_lines(self, cpus: int, scratches: list[str], limit_s: int) -> list[list[str]]:
        """The commands to start, each with its scratch directory."""
        return [
            _filled(command, cpus, scratch, limit_s) for command, scratch in zip(self.commands, scratches, strict=True)
        ]

    def counter_line(self, cpus: int, scratches: list[str], limit_s: int) -> list[str]:
        """The command of the counter, empty if there is none."""
        return _filled(self.counter, cpus, scratches[0], limit_s) if self.counter else []

    def bounds(self, cpus: int, limit_s: int) -> dict[str, int]:
        return {"disk_bytes": self.disk_bytes * cpus, "memory_bytes": self.memory_bytes * cpus, "time_s": limit_s}


def _filled(command: tuple[str, ...], cpus: int, scratch: str, limit_s: int) -> list[str]:
    return [
        argument.replace("{cpus}", str(cpus)).replace("{scratch}", scratch).replace("{limit_s}", str(limit_s))
        for argument in command
    ]


def again_and_again(command: str, fine: str = "0") -> tuple[str, ...]:
    """A command that is restarted as long as its exit status matches ``fine``, a shell pattern.

    A failure must not count as work: the load then ends with the last error output of the command.
    """
    return (
        "sh",
        "-c",
        f'while {command}; status=$?; case $status in {fine}) :;; *) false;; esac; do :; done; exit "$status"',
    )


def stress_ng(*arguments: str) -> tuple[str, ...]:
    """A stress-ng command that keeps its files in the scratch directory and ends by itself."""
    return ("stress-ng", *arguments, "--temp-path", "{scratch}", "--timeout", "{limit_s}s", "--quiet")
