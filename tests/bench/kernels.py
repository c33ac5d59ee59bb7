# SPDX-License-Identifier: GPL-2.0-or-later
"""What fragments of a kernel's configuration cost or save on a deterministic board, in instructions without load.

``python -m tests.bench.kernels [SOURCE]`` [linux-source-6.12]: builds each variant, boots it twice and prints its
figures, which must be equal.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from fastenough.analysis.instructions import PathComparison, compare_instructions
from fastenough.recording import Recording, read_recording
from fastenough.virtual.custom_kernels import register_kernel
from fastenough.virtual.deterministic import DeterministicGuest
from fastenough.virtual.kernel_build import build_kernel, require_packages
from fastenough.virtual.kernel_config import all_options
from fastenough.virtual.kernel_source import find_source
from fastenough.virtual.kernels import Kernel
from tests.bench.deterministic import TIMER

_BOOT_S = 600.0
_ARCH = "arm64"
VARIANTS: Mapping[str, tuple[bool, tuple[str, ...]]] = {
    "smallest": (False, ()),
    "preempt": (False, ("CONFIG_PREEMPT=y",)),
    "dynamic": (False, ("CONFIG_PREEMPT_DYNAMIC=y",)),
    "hz-1000": (False, ("CONFIG_HZ_1000=y",)),
    "expert": (False, ("CONFIG_EXPERT=y",)),
    "rt": (True, ()),
    "no-hz": (False, ("CONFIG_NO_HZ_IDLE=y",)),
    "no-hz-full": (False, ("CONFIG_NO_HZ_FULL=y",)),
    "enea": (
        False,
        (
            "CONFIG_PREEMPT=y",
            "CONFIG_HZ_1000=y",
            "CONFIG_JUMP_LABEL=y",
            "CONFIG_EXPERT=y",
            "CONFIG_RCU_EXPERT=y",
            "CONFIG_RCU_BOOST=y",
            "CONFIG_RCU_NOCB_CPU=y",
        ),
    ),
    "cgroups": (False, ("CONFIG_CGROUPS=y", "CONFIG_CGROUP_SCHED=y", "CONFIG_FAIR_GROUP_SCHED=y")),
    "debug": (False, ("CONFIG_DEBUG_KERNEL=y", "CONFIG_DEBUG_SPINLOCK=y", "CONFIG_DEBUG_MUTEXES=y")),
    "debug-preempt": (False, ("CONFIG_PREEMPT=y", "CONFIG_DEBUG_KERNEL=y", "CONFIG_DEBUG_PREEMPT=y")),
    "lockdep": (False, ("CONFIG_DEBUG_KERNEL=y", "CONFIG_PROVE_LOCKING=y")),
}
"""By name: with PREEMPT_RT or without, and the lines of a fragment.  ``expert``: what ``rt`` and ``enea`` are to be
compared with, since EXPERT removes what is otherwise always built in.  ``enea``: the options of the fragment that Enea
added to a kernel for low latency, as far as this kernel and architecture have them."""


def built(name: str, source: str, folder: Path) -> Kernel:
    """The kernel of a variant, registered under its name behind ``bench-``."""
    rt, lines = VARIANTS[name]
    fragment = folder / f"{name}.config"
    fragment.write_text("".join(f"{line}\n" for line in lines))
    kernel = build_kernel(find_source(source), _ARCH, all_options(_ARCH, rt, [fragment]))
    return register_kernel(f"bench-{name}", kernel.files)


def measured(kernel: Kernel, path: Path) -> Recording:
    """The recording of one boot."""
    (done,) = DeterministicGuest(kernel).boot([TIMER]).results(_BOOT_S).commands
    path.write_bytes(done.stdout)
    return read_recording(path)


def main() -> None:
    source = sys.argv[1] if len(sys.argv) > 1 else "linux-source-6.12"
    require_packages(_ARCH)
    print("| variant | options | build, s | image, MB | minimum | median | mean | maximum |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, (rt, lines) in VARIANTS.items():
            begin_s = time.monotonic()
            kernel = built(name, source, folder)
            build_s = time.monotonic() - begin_s
            runs = [measured(kernel, folder / f"{name}-{number}.jsonl") for number in range(2)]
            (path,) = compare_instructions(runs[:1], runs[1:])
            assert isinstance(path, PathComparison)
            assert all(figure.difference == 0 for figure in path.figures) and path.moved == 0
            options = " ".join(("PREEMPT_RT",) * rt + tuple(line.removeprefix("CONFIG_") for line in lines))
            figures = " | ".join(f"{figure.first:,.0f}" for figure in path.figures)
            print(
                f"| {name} | {options} | {build_s:.0f} | {kernel.image.stat().st_size / 1e6:.1f} | {figures} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
