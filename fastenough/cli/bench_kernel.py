# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bench kernel``: kernels that the bench builds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from fastenough.cli.commands import Group
from fastenough.cli.options import json_option
from fastenough.cli.output import clean, print_json, say
from fastenough.cli.progress import Work
from fastenough.model import FastenoughError
from fastenough.virtual.custom_kernels import register_kernel, require_custom_name
from fastenough.virtual.kernel_build import build_kernel, require_packages
from fastenough.virtual.kernel_config import ARCHITECTURES, all_options
from fastenough.virtual.kernel_source import find_source, require_source
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.module import build_guest_modules

_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel_options(command: _Function) -> _Function:
    """The options of a kernel that is built: ``fragments``, ``rt`` and ``arch``."""
    options = (
        click.option(
            "--fragment",
            "fragments",
            type=click.Path(dir_okay=False, path_type=Path),
            multiple=True,
            help="File of kernel options, as lines of .config; may be repeated, and later files override earlier ones.",
        ),
        click.option("--rt", is_flag=True, help="Build with PREEMPT_RT (sources from 6.12 on)."),
        click.option(
            "--arch",
            type=click.Choice(ARCHITECTURES),
            default="arm64",
            show_default=True,
            help="Architecture of the kernel.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class KernelBuild:
    """A kernel that the bench built and registered.  ``built``: False if it was in the cache; ``options``: number of
    options of its fragments."""

    kernel: str
    release: str
    arch: str
    source: str
    options: int
    built: bool


def print_build(build: KernelBuild, as_json: bool) -> None:
    """Print the kernel and the commands that use it."""
    if as_json:
        print_json(build)
        return
    how = "built" if build.built else "taken from the cache"
    say(
        f"kernel {build.kernel} ({build.release}, {build.arch}) {how} of {build.source}; "
        f"{build.options} options in effect"
    )
    print(f"  board    virtual:{build.kernel}, deterministic:{build.kernel}")
    print(f"  bench    fastenough bench up --kernel {build.kernel}")


def _module_fault(kernel: Kernel, work: Work) -> str:
    """Build the modules of guests before the source changes; the reason why they do not build, or an empty text."""
    work.step(f"kernel {kernel.name}: compiling modules of guests")
    try:
        build_guest_modules(kernel)
    except FastenoughError as error:
        return str(error)
    return ""


@click.group("kernel", cls=Group)
def command() -> None:
    """Build kernels for the virtual bench.

    The kernels are stored by name in the cache of the bench (docs/virtual-bench.md).
    """


@command.command(
    "build", example="fastenough bench kernel build --source linux-source-6.12 --fragment no-hz.config --kernel no-hz"
)
@click.option("--source", required=True, metavar="PACKAGE|DIR", help="Debian's source package, or a source tree.")
@kernel_options
@click.option("--kernel", "name", metavar="NAME", default="own", show_default=True, help="Name to store it under.")
@json_option
def build_command(*, source: str, fragments: tuple[Path, ...], rt: bool, arch: str, name: str, as_json: bool) -> None:
    """Build a kernel variant for guests.

    Its configuration is the smallest one that has the options that guests need and those of the fragments.  If one of
    them is not in effect, nothing is compiled.  Later builds of the same options compile changed files only.
    """
    require_custom_name(name)
    options = all_options(arch, rt, fragments)
    require_source(source)
    require_packages(arch)
    with Work(f"kernel {name}: fetching {source}") as work:
        tree = find_source(source)
        built = build_kernel(tree, arch, options, lambda step: work.step(f"kernel {name}: {step}"))
        kernel = register_kernel(name, built.files)
        fault = _module_fault(kernel, work) if tree.version is None else ""
    if fault:
        print(
            f"warning: kernel {name} has no kernel tasks (x86-64: no virtual guests): {clean(fault)}", file=sys.stderr
        )
    print_build(KernelBuild(name, kernel.release, arch, tree.identity, len(options), built.built), as_json)
