# SPDX-License-Identifier: GPL-2.0-or-later
"""How far changes without any effect move the figures of a deterministic board, without load and under load.

Each change is a kernel argument without meaning (``x=a``, ``x=aa``, ...).  ``python -m tests.bench.deterministic
[CHANGES] [LOADED]``: so many changes without load [50], and under load, each in 30 phases [6].
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from fastenough.analysis.gate import Budget
from fastenough.analysis.instructions import (
    FIGURES,
    LEAST_PHASES,
    PathComparison,
    compare_instructions,
    difference_of_means,
)
from fastenough.campaign.expand import phases_ns
from fastenough.recording import Recording, read_recording
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import Background, Beginning, Command, DeterministicGuest
from fastenough.virtual.probe import PROBE

TIMER = Command((PROBE, "timer", "--interval=1ms", "--duration=100ms", "--record=-"))
READERS = Background(
    (("sh", "-c", "while :; do cat /proc/stat /proc/self/maps >/dev/null; done"),), ("/var/tmp/readers",), 0.02
)
BUDGETS = (
    Budget("minimum", 16),
    Budget("median", 16),
    Budget("mean", more_share=0.01),
    Budget("maximum", more_share=0.05),
)
_BOOT_S = 600.0


def arguments(changes: int) -> list[str]:
    """Kernel arguments without meaning, each of another length."""
    return [f"x={'a' * length}" for length in range(1, changes + 1)]


def measured(argument: str, background: Background | None = None, phase_ns: int = 0) -> bytes:
    """The recording of one boot."""
    guest = DeterministicGuest(find_kernel("stock"), argument)
    (done,) = guest.boot([TIMER], background, Beginning(phase_ns=phase_ns)).results(_BOOT_S).commands
    return done.stdout


def paths(recordings: Sequence[bytes]) -> Iterator[PathComparison]:
    """Each run without load beside the first one."""
    with tempfile.TemporaryDirectory() as folder:
        runs: list[Recording] = []
        for number, recording in enumerate(recordings):
            path = Path(folder, f"{number}.jsonl")
            path.write_bytes(recording)
            runs.append(read_recording(path))
        for run in runs[1:]:
            for comparison in compare_instructions(runs[:1], [run]):
                assert isinstance(comparison, PathComparison)
                yield comparison


def print_paths(compared: Sequence[PathComparison]) -> None:
    """Print by how much each figure moved, and how many changes exceed a budget."""
    print(
        f"| figure, {len(compared)} changes without load | greatest difference | budget | exceeded |\n|---|---|---|---|"
    )
    for name, budget in zip(FIGURES, BUDGETS, strict=True):
        figures = [path.figure(name) for path in compared]
        greatest = max((abs(figure.difference) for figure in figures), default=0.0)
        share = max((abs(figure.share or 0) for figure in figures), default=0.0)
        exceeded = sum(not budget.is_kept(replace(figure, difference=abs(figure.difference))) for figure in figures)
        print(f"| {name} | {greatest:.1f} instructions ({100 * share:.2f} %) | {budget.text} | {exceeded} |")
    print(f"values in another bucket: at most {max((path.moved or 0 for path in compared), default=0)} of 100")


def maximum_of(recording: bytes) -> int:
    """The greatest latency of a recording, in instructions."""
    end = json.loads(io.BytesIO(recording).readlines()[-1])
    return max(int(series["max"]) for series in end["series"])


def print_maxima(maxima: Sequence[Sequence[int]]) -> None:
    """Print how far the maxima under load move, and how many pairs of changes seem to differ."""
    means = [sum(each) / len(each) for each in maxima]
    differences = [difference_of_means(*pair, 0.95) for pair in combinations(maxima, 2)]
    excluded = sum(not lower <= 0 <= upper for _, lower, upper, _ in differences)
    widest = max(upper - lower for _, lower, upper, _ in differences)
    firsts = [each[0] for each in maxima]
    print(f"{len(maxima)} changes under load, {len(maxima[0])} phases each, in instructions:")
    print(f"maximum of the first phase: {min(firsts):,} to {max(firsts):,}")
    print(f"maximum of any phase: {min(map(min, maxima)):,} to {max(map(max, maxima)):,}")
    print(f"mean maximum of a phase: {min(means):,.0f} to {max(means):,.0f}")
    print(f"pairs whose 95 % interval excludes zero: {excluded} of {len(differences)}; widest interval {widest:,.0f}")


def main() -> None:
    changes, loaded = (int(word) for word in (*sys.argv[1:3], *("50", "6")[len(sys.argv) - 1 :]))
    print_paths(list(paths([measured(argument) for argument in arguments(changes + 1)])))
    if loaded:
        print_maxima(
            [
                [maximum_of(measured(argument, READERS, phase_ns)) for phase_ns in phases_ns(LEAST_PHASES)]
                for argument in arguments(loaded)
            ]
        )


if __name__ == "__main__":
    main()
