# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the tests of one tier on two cores.

``python -m tests.tiers quick`` runs the unit tests that answer within a minute, ``check`` each feature at least once
with its real parts, and ``slow`` all the rest.  The markers of pyproject.toml decide: a test has the tier of its folder
unless it is marked with another one.

The unit tests of a tier run first, in two halves at the same time.  Of the others, those that judge what was measured
run one at a time.  Two lots run beside them at a lower priority: tests marked ``machines`` and tests marked
``untimed``.  Their output is printed when they have ended.  The status is 0 only if all tests passed.

Other users of a machine may take its CPUs for any length of time.  Up to four failed tests are therefore run again
alone; each has to pass twice in a row and is named at the end.  More failures count as they are.

An ordinary user's run ends with the tests that need root: through sudo if it asks for no password, otherwise one line
says how many were skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.privileges import list_of, sudo_prefix

ROOT = Path(__file__).resolve().parents[1]
TIERS = {"quick": "quick", "check": "(quick or check) and not matrix", "slow": "slow and not matrix"}
"""Which tests run, as an expression of pytest's option -m."""
TIMED = "timed"
LOTS = {TIMED: "not machines and not untimed", "machines": "machines", "untimed": "untimed and not machines"}
"""Of the tests of a tier that are no unit tests, those of each lot."""
_NICE = "10"
_MOST_DISTURBED = 4
_TIMES_ALONE = 2
_TESTS_FAILED, _NO_TESTS = 1, 5
_PYTEST = [sys.executable, "-m", "pytest"]
_WITHOUT_MEMORY = ["-p", "no:cacheprovider"]
"""A test that runs as root leaves no file of root's in the user's checkout."""


@dataclass
class Lot:
    """Tests that run one after another.

    ``wanted``: arguments of pytest that select them.  ``memory``: the directory of pytest's cache.  ``prefix``: words
    before the command, which run it as another user.  ``nice``: how much it gives way where it runs beside others.
    """

    wanted: list[str]
    memory: Path
    prefix: Sequence[str] = ()
    nice: str = _NICE
    status: int = 0

    @property
    def command(self) -> list[str]:
        return [*self.prefix, *_PYTEST, "-o", f"cache_dir={self.memory}", *self.wanted]

    def failed(self) -> list[str]:
        return list(json.loads((self.memory / "v/cache/lastfailed").read_text())) if self.status else []

    def skipped_for_root(self) -> list[str]:
        listed = list_of(self.memory)
        return list(json.loads(listed.read_text())) if listed.is_file() else []

    def run(self, root: Path) -> None:
        self.status = subprocess.call(self.command, cwd=root, stdin=subprocess.DEVNULL)

    @contextmanager
    def beside(self, root: Path) -> Iterator[None]:
        """Run it at a lower priority while the block runs; print its output when both have ended."""
        with tempfile.TemporaryFile() as output:
            with subprocess.Popen(
                ["nice", "-n", self.nice, *self.command],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as process:
                yield
            self.status = process.returncode
            output.seek(0)
            print(output.read().decode(errors="replace"), flush=True)


def _run(timed: Lot | None, others: Iterable[Lot], root: Path) -> list[Lot]:
    """Run ``timed`` in the foreground and the others beside it."""
    with ExitStack() as stack:
        beside = [lot for lot in others if lot.wanted]
        for lot in beside:
            stack.enter_context(lot.beside(root))
        if timed is not None:
            timed.run(root)
    return [*([] if timed is None else [timed]), *beside]


def _run_units(tier: str, root: Path, memory: Path) -> list[Lot]:
    """Run the files of the unit tests in two halves at the same time."""
    halves = [
        Lot(["-q", "-m", TIERS[tier], *half] if half else [], memory / f"half-{number}", nice="0")
        for number, half in enumerate(_halves(sorted(root.glob("tests/unit/*/test_*.py")), root))
    ]
    return _run(halves[0] if halves[0].wanted else None, halves[1:], root)


def _halves(files: Sequence[Path], root: Path) -> tuple[list[str], list[str]]:
    """The files in two parts with about as many bytes: the longest files take the longest."""
    parts: tuple[list[str], list[str]] = ([], [])
    sizes = [0, 0]
    for path in sorted(files, key=lambda path: -path.stat().st_size):
        part = sizes.index(min(sizes))
        parts[part].append(str(path.relative_to(root)))
        sizes[part] += path.stat().st_size
    return parts


def _run_parts(tier: str, root: Path, memory: Path) -> list[Lot]:
    """Run the tests with real processes and guests in their three lots.

    The timed lot takes its guests last: by then the others have made the kernels, probes and snapshots that they need.
    """
    parts = [part for part in ("tests/guest", "tests/process") if (root / part).is_dir()]
    lots = {
        name: Lot(["-m", f"{TIERS[tier]} and {which}", *(parts[::-1] if name == TIMED else parts)], memory / name)
        for name, which in LOTS.items()
    }
    return _run(lots.pop(TIMED), lots.values(), root)


def _run_tier(tier: str, root: Path, memory: Path) -> list[Lot]:
    units = _run_units(tier, root, memory)
    return units if tier == "quick" else units + _run_parts(tier, root, memory)


def _run_as_root(lots: Sequence[Lot], root: Path, memory: Path) -> list[Lot]:
    """Run through sudo what the lots skipped for want of root; print how many tests those are."""
    skipped = sum(len(lot.skipped_for_root()) for lot in lots)
    if not skipped:
        return []
    prefix = sudo_prefix()
    if not prefix:
        print(f"skipped: {skipped} tests need root, and sudo is missing or asks for a password", flush=True)
        return []
    print(f"{skipped} tests need root: they run through sudo now", flush=True)
    prefix.append(f"HYPOTHESIS_STORAGE_DIRECTORY={memory / 'hypothesis'}")
    again = [Lot(lot.skipped_for_root(), memory / "root" / lot.memory.name, prefix) for lot in lots]
    timed = next((lot for lot in again if lot.memory.name == TIMED and lot.wanted), None)
    try:
        return _run(timed, [lot for lot in again if lot.memory.name != TIMED], root)
    finally:
        owner = f"{os.getuid()}:{os.getgid()}"
        subprocess.call([*prefix, "chown", "-R", owner, str(memory)], stdin=subprocess.DEVNULL)


def _pass_alone(failed: Sequence[tuple[Sequence[str], list[str]]], root: Path) -> bool:
    """Return whether few tests failed and all of them pass with nothing beside them; print their names.

    ``failed``: for each prefix of a command, the tests that failed with it.
    """
    names = [name for _, tests in failed for name in tests]
    passed = len(names) <= _MOST_DISTURBED and all(
        subprocess.call([*prefix, *_PYTEST, *_WITHOUT_MEMORY, *tests], cwd=root, stdin=subprocess.DEVNULL) == 0
        for _ in range(_TIMES_ALONE)
        for prefix, tests in failed
    )
    print(f"failed once, passed alone {_TIMES_ALONE} times:" if passed else "failed:", *names, sep="\n  ")
    return passed


def _status(lots: Sequence[Lot]) -> int:
    """The worst status; a lot without tests counts only if no lot has any."""
    return max((lot.status for lot in lots if lot.status != _NO_TESTS), default=_NO_TESTS)


def main(tier: str, root: Path = ROOT) -> int:
    with tempfile.TemporaryDirectory(prefix="fastenough-tests-") as memory:
        lots = _run_tier(tier, root, Path(memory))
        lots += _run_as_root(lots, root, Path(memory))
        status = _status(lots)
        failed = (
            [(lot.prefix, lot.failed()) for lot in lots if lot.status == _TESTS_FAILED]
            if status == _TESTS_FAILED
            else []
        )
    return 0 if failed and _pass_alone(failed, root) else status


if __name__ == "__main__":
    if sys.argv[1:] not in ([name] for name in TIERS):
        sys.exit(f"usage: python -m tests.tiers {'|'.join(TIERS)}")
    sys.exit(main(sys.argv[1]))
