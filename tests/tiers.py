# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the tests of one tier on two cores.

``python -m tests.tiers quick`` runs the unit tests that answer within a minute, ``check`` each feature at least once
with its real parts, and ``slow`` all the rest.  The markers of pyproject.toml decide: a test has the tier of its folder
unless it is marked with another one.

The unit tests of a tier run first, in two processes that share the files: each takes the longest that is left.  Of the
others, those that judge what was measured run one at a time.  Two lots run beside them at a lower priority: tests
marked ``machines``, one at a time, and tests marked ``untimed`` in two processes, in three once those with machines
have ended.  Tests that judge and those with machines wait most of their time, so that four processes keep two CPUs
busy.  The output of the two lots is printed when they have ended.  The status is 0 only if all tests passed.

Other users of a machine may take its CPUs for any length of time.  The failed tests of up to four files are therefore
run again alone; each has to pass twice in a row and is named at the end.  Failures in more files count as they are: by
files, since a fixture that fails is an error of each test of its file.

An ordinary user's run ends with the tests that need root: through sudo if it asks for no password, otherwise one line
says how many were skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.support.privileges import list_of, sudo_prefix
from tests.support.tier_files import TierFiles, largest_first

ROOT = Path(__file__).resolve().parents[1]
TIERS = {"quick": ("quick",), "check": ("quick", "check"), "slow": ("slow",)}
"""Which tests run, by their tier."""
TIMED, MACHINES, UNTIMED = "timed", "machines", "untimed"
LOTS: dict[str, tuple[Collection[str], Collection[str]]] = {
    TIMED: ((), (MACHINES, UNTIMED)),
    MACHINES: ((MACHINES,), ()),
    UNTIMED: ((UNTIMED,), (MACHINES,)),
}
"""Of the tests of a tier that are no unit tests, those of each lot: required and excluded markers."""
_NICE = "10"
_MOST_DISTURBED = 4
"""Files with a failed test."""
_TIMES_ALONE = 2
_TESTS_FAILED, _NO_TESTS = 1, 5
_PYTEST = [sys.executable, "-m", "pytest"]
_SHARED_PYTEST = [sys.executable, "-P", str(ROOT / "tests/support/shared_files.py")]
_WITHOUT_MEMORY = ["-p", "no:cacheprovider"]
"""A test that runs as root leaves no file of root's in the user's checkout."""


def _environment() -> dict[str, str]:
    """The environment of the tests, in which Python stores compiled modules.

    They start thousands of commands.  Where each of them compiles its modules again, it takes up to a third more time.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass
class Lot:
    """Tests that run one after another.

    ``wanted``: arguments of pytest that select them.  ``memory``: the directory of pytest's cache.  ``prefix``: words
    before the command, which run it as another user.  ``nice``: how much it gives way where it runs beside others.
    ``claims``: the directory by which lots share their files; None where each has files of its own.
    """

    wanted: list[str]
    memory: Path
    prefix: Sequence[str] = ()
    nice: str = _NICE
    claims: Path | None = None
    status: int = 0

    @property
    def command(self) -> list[str]:
        program = _PYTEST if self.claims is None else [*_SHARED_PYTEST, str(self.claims)]
        return [*self.prefix, *program, "-o", f"cache_dir={self.memory}", *self.wanted]

    @property
    def ran_to_its_end(self) -> bool:
        return self.status in (0, _TESTS_FAILED, _NO_TESTS)

    def failed(self) -> list[str]:
        return list(json.loads((self.memory / "v/cache/lastfailed").read_text())) if self.status else []

    def skipped_for_root(self) -> list[str]:
        listed = list_of(self.memory)
        return list(json.loads(listed.read_text())) if listed.is_file() else []

    def run(self, root: Path) -> None:
        self.status = subprocess.call(self.command, cwd=root, env=_environment(), stdin=subprocess.DEVNULL)

    def run_beside(self, root: Path) -> str:
        """Run it at a lower priority and return its output."""
        done = subprocess.run(
            ["nice", "-n", self.nice, *self.command],
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.status = done.returncode
        return done.stdout.decode(errors="replace")


def _run(timed: Lot | None, others: Iterable[Sequence[Lot]], root: Path) -> list[Lot]:
    """Run ``timed`` in the foreground and the others beside it: those of each sequence one after another."""
    beside = [[lot for lot in lots if lot.wanted] for lots in others]
    with ThreadPoolExecutor(max_workers=max(1, len(beside))) as pool:
        running = [pool.submit(_run_in_turn, lots, root) for lots in beside]
        if timed is not None:
            timed.run(root)
    for outputs in running:
        print(*outputs.result(), sep="\n", flush=True)
    return [*([] if timed is None else [timed]), *(lot for lots in beside for lot in lots)]


def _run_in_turn(lots: Sequence[Lot], root: Path) -> list[str]:
    """Run one after another, until one is interrupted; return their outputs."""
    outputs: list[str] = []
    for lot in lots:
        outputs.append(lot.run_beside(root))
        if not lot.ran_to_its_end:
            break
    return outputs


def _run_units(tier: str, root: Path, memory: Path) -> list[Lot]:
    """Run the unit tests in two processes at the same time."""
    units = TierFiles(TIERS[tier])
    files = largest_first(root, units.below(root, "tests/unit"))
    if not files:
        return []
    wanted = ["-q", "-m", units.expression, *files]
    claims = _claims(memory, "units")
    first, second = (Lot(wanted, memory / f"units-{number}", nice="0", claims=claims) for number in range(2))
    return _run(first, [[second]], root)


def _claims(memory: Path, name: str) -> Path:
    directory = memory / f"{name}-claims"
    directory.mkdir()
    return directory


def _wanted(tier: str, lot: str, root: Path) -> list[str]:
    """The arguments of pytest for a lot; none where no file can hold a test of it."""
    parts = ("tests/process", "tests/guest") if lot == TIMED else ("tests/guest", "tests/process")
    chosen = TierFiles(TIERS[tier], *LOTS[lot])
    found = [chosen.below(root, part) for part in parts]
    files = [name for names in found for name in (largest_first(root, names) if lot == UNTIMED else names)]
    return ["-m", chosen.expression, *files] if files else []


def _run_parts(tier: str, root: Path, memory: Path) -> list[Lot]:
    """Run the tests with real processes and guests in their three lots.

    The timed lot takes its guests last: by then the others have made the kernels, probes and snapshots that they need.
    """
    wanted = {name: _wanted(tier, name, root) for name in LOTS}
    claims = _claims(memory, UNTIMED)
    machines = Lot(wanted[MACHINES], memory / MACHINES)
    names = (UNTIMED, f"{UNTIMED}-second", f"{UNTIMED}-third")
    untimed, second, third = (Lot(wanted[UNTIMED], memory / name, claims=claims) for name in names)
    timed = Lot(wanted[TIMED], memory / TIMED) if wanted[TIMED] else None
    return _run(timed, [[untimed], [second], [machines, third]], root)


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
        return _run(timed, [[lot] for lot in again if lot.memory.name != TIMED], root)
    finally:
        owner = f"{os.getuid()}:{os.getgid()}"
        subprocess.call([*prefix, "chown", "-R", owner, str(memory)], stdin=subprocess.DEVNULL)


def _pass_alone(failed: Sequence[tuple[Sequence[str], list[str]]], root: Path) -> bool:
    """Return whether tests of few files failed and all of them pass with nothing beside them; print their names.

    ``failed``: for each prefix of a command, the tests that failed with it.
    """
    names = [name for _, tests in failed for name in tests]
    passed = len({name.partition("::")[0] for name in names}) <= _MOST_DISTURBED and all(
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
