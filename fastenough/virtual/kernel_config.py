# SPDX-License-Identifier: GPL-2.0-or-later
"""Configurations of kernels that the bench builds: fragments, their union, and options that the kernel's make drops.

An option whose dependencies are off is dropped without a message, so the resulting configuration is always read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fastenough.model import BadInput
from fastenough.virtual.module import CHECKOUT

FRAGMENTS = CHECKOUT / "target" / "kernel"
"""Folder of the fragments that are part of this program."""
_MACHINE_FRAGMENTS = {"arm64": "guest-arm64", "amd64": "guest-x86-64"}
ARCHITECTURES = tuple(_MACHINE_FRAGMENTS)
"""Architectures that kernels are built for, by Debian's names."""
_SET = re.compile(r"CONFIG_(\w+)=(\S.*?)\s*")
_NOT_SET = re.compile(r"# CONFIG_(\w+) is not set\s*")
_OFF = "n"


def read_options(path: Path) -> dict[str, str]:
    """The options of a fragment or configuration: value by name without ``CONFIG_``, ``n`` if it is not set.

    The last of several lines for one option counts.  Raises BadInput for a file that cannot be read, and for a line
    that is neither an option nor a comment.
    """
    options: dict[str, str] = {}
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from error
    for number, line in enumerate(lines, 1):
        if match := _SET.fullmatch(line):
            options[match[1]] = match[2]
        elif match := _NOT_SET.fullmatch(line):
            options[match[1]] = _OFF
        elif line.strip() and not line.startswith("#"):
            raise BadInput(
                f"{path}, line {number}: {line.strip()!r} is not an option of a kernel; write CONFIG_NAME=VALUE or "
                "'# CONFIG_NAME is not set'"
            )
    return options


def required_options(arch: str, rt: bool) -> dict[str, str]:
    """The options that every kernel of the bench has, by architecture and with or without PREEMPT_RT."""
    names = ("guest", _MACHINE_FRAGMENTS[arch], "deterministic", *(("rt",) if rt else ()))
    return _union(FRAGMENTS / f"{name}.config" for name in names)


def all_options(arch: str, rt: bool, fragments: Sequence[Path]) -> dict[str, str]:
    """The required options and those of fragments, of which a later one overrides an earlier one.

    Raises BadInput for a fragment that changes a required option.
    """
    required = required_options(arch, rt)
    for fragment in fragments:
        for name, value in read_options(fragment).items():
            if required.get(name, value) != value:
                raise BadInput(
                    f"{fragment}: {option_text(name, value)} contradicts {option_text(name, required[name])}, which "
                    "guests of the bench require; remove that line"
                )
    return required | _union(fragments)


def _union(fragments: Iterable[Path]) -> dict[str, str]:
    return {name: value for fragment in fragments for name, value in read_options(fragment).items()}


def option_text(name: str, value: str) -> str:
    """The line of an option in a configuration."""
    return f"# CONFIG_{name} is not set" if value == _OFF else f"CONFIG_{name}={value}"


def fragment_text(options: Mapping[str, str]) -> str:
    """A fragment with these options, in the order of their names."""
    return "".join(f"{option_text(name, value)}\n" for name, value in sorted(options.items()))


def dropped_options(options: Mapping[str, str], configuration: Mapping[str, str]) -> list[str]:
    """The lines of the options that have another value in a configuration, or none."""
    return [
        option_text(name, value) for name, value in sorted(options.items()) if configuration.get(name, _OFF) != value
    ]
