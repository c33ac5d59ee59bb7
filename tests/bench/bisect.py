# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisection of a history of small patches over one kernel source, of which one makes the wake-up path longer.

``python -m tests.bench.bisect [SOURCE]`` [linux-source-6.12]: finds it by ``--longer-by``, and then by ``--limit`` with
the same runs.  The first kernel takes as long as any; each further one is compiled as far as its patches require.  The
repository and the kernels stay in the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastenough.virtual.kernel_source import find_source
from fastenough.virtual.packages import cache_dir

WAKE_UP = "kernel/time/hrtimer.c"
_WOKEN = "\tt->task = NULL;\n"
"""A line of ``hrtimer_wakeup()``, which runs in each expiry of a sleeping task's timer."""
_BEGIN_S = 1767225600
"""Date of the first commit."""
_INCLUDE = "#include"
_ERROR = '#error "does not compile"\n'


@dataclass(frozen=True)
class Patch:
    """A change of one file: the first ``old`` is replaced by ``new``."""

    subject: str
    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        assert self.old in text, f"{self.file} lacks {self.old!r}"
        return text.replace(self.old, self.new, 1)


def _function(number: int, file: str) -> Patch:
    """A function that is never called."""
    text = f"int bench_{number}(int value);\nint bench_{number}(int value)\n{{\n\treturn value * {number};\n}}\n"
    return Patch(f"{file}: Add function {number}", file, _INCLUDE, text + _INCLUDE)


def _turns(number: int) -> str:
    return f"\tfor (int turn = 0; turn < {number}; turn++)\n\t\tbarrier();\n{_WOKEN}"


_LIMIT = ("--limit", "2.7us")
CULPRIT = "hrtimer: Count before each wake-up"
PATCHES = (
    *(_function(number, "kernel/sys.c") for number in range(1, 5)),
    Patch("hrtimer: Count a little", WAKE_UP, _WOKEN, _turns(2)),
    *(_function(number, "kernel/signal.c") for number in range(5, 7)),
    Patch("exit: Do not compile", "kernel/exit.c", _INCLUDE, _ERROR + _INCLUDE),
    Patch("exit: Compile", "kernel/exit.c", _ERROR, ""),
    Patch(CULPRIT, WAKE_UP, _WOKEN, _turns(100)),
    *(_function(number, "kernel/panic.c") for number in range(7, 12)),
)
"""From the oldest to the newest."""


def make_history(tree: Path, repository: Path) -> None:
    """A bare repository whose branch ``main`` is the source and then each patch; nothing is written to ``tree``."""
    _git(repository, "init", "--quiet", "--bare", "--initial-branch=main", ".")
    _git(repository, f"--work-tree={tree}", "-c", "core.compression=1", "add", "--all", "--force", str(tree))
    base = _git(repository, "commit-tree", "-m", f"Source {tree.name}", _git(repository, "write-tree"))
    _git(repository, "update-ref", "refs/heads/main", base)
    _git(repository, "fast-import", "--quiet", text="".join(_stream(tree)))


def _stream(tree: Path) -> Iterator[str]:
    """The commits of the patches, as input of git fast-import."""
    texts = {patch.file: (tree / patch.file).read_text() for patch in PATCHES}
    yield "reset refs/heads/main\nfrom refs/heads/main^0\n\n"
    for number, patch in enumerate(PATCHES):
        texts[patch.file] = patch.applied(texts[patch.file])
        yield f"commit refs/heads/main\ncommitter Bench <bench@example.org> {_BEGIN_S + number} +0000\n"
        yield f"{_data(patch.subject)}M 100644 inline {patch.file}\n{_data(texts[patch.file])}"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _git(repository: Path, *arguments: str, text: str = "") -> str:
    repository.mkdir(parents=True, exist_ok=True)
    identity = {"NAME": "bench", "EMAIL": "bench@example.org", "DATE": f"{_BEGIN_S} +0000"}
    variables = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in identity.items()}
    done = subprocess.run(
        ["git", *([] if "init" in arguments else [f"--git-dir={repository}"]), *arguments],
        cwd=repository,
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | variables,
    )
    return done.stdout.strip()


def searched(repository: Path, store: Path, *criterion: str) -> Any:
    """The result of a search over the whole history, with the time that it took printed."""
    begin_s = time.monotonic()
    first = f"main~{len(PATCHES)}"
    words = ("bisect", str(repository), "--good", first, "--bad", "main", *criterion, "--store", str(store), "--json")
    done = subprocess.run(
        [sys.executable, "-m", "fastenough", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
    )
    found = json.loads(done.stdout)
    print(f"\n{' '.join(criterion)}: {found['conclusion']}; {time.monotonic() - begin_s:.0f} s\n")
    print("| commit | result | minimum | median | maximum | subject |")
    print("|---|---|---|---|---|---|")
    for result in found["results"]:
        figures = {figure["name"]: figure["second"] for path in result["paths"] for figure in path["figures"]}
        row = [f"{figures[name]:,.0f}" if figures else "" for name in ("minimum", "median", "maximum")]
        print(f"| {result['commit'][:12]} | {result['rating']} | {' | '.join(row)} | {result['subject']} |", flush=True)
    return found


def main() -> None:
    source = find_source(sys.argv[1] if len(sys.argv) > 1 else "linux-source-6.12")
    repository = cache_dir() / "bench" / f"{source.tree.name}.git"
    if not repository.is_dir():
        make_history(source.tree, repository)
    with tempfile.TemporaryDirectory() as folder:
        risen, limited = (searched(repository, Path(folder), *words) for words in (("--longer-by", "3%"), _LIMIT))
    assert CULPRIT in risen["conclusion"] and CULPRIT in limited["conclusion"]
    assert _runs(limited) <= _runs(risen), "nothing is measured again"


def _runs(found: Any) -> set[str]:
    return {run for result in found["results"] for run in result["runs"]}


if __name__ == "__main__":
    main()
