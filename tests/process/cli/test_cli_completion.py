# SPDX-License-Identifier: GPL-2.0-or-later
"""A shell completes what there is, and is told quickly."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fastenough.cli import COMMANDS
from fastenough.loads import LOADS
from tests.support.cli_calls import command_line, environment

pytestmark = pytest.mark.untimed

_IN_BASH = """
eval "$(fastenough completion bash)"
COMP_WORDS=({words}) COMP_CWORD={at}
_fastenough_completion fastenough 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


Completed = Callable[..., list[str]]


@pytest.fixture
def completed(tmp_path: Path, probe_binary: str) -> Completed:
    """What bash offers for a line, of which the last word is begun."""
    program = tmp_path / "fastenough"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fastenough "$@"\n')
    program.chmod(0o755)

    def ask(*words: str) -> list[str]:
        quoted = " ".join(map(shlex.quote, ("fastenough", *words)))
        said = subprocess.run(
            ["bash", "--norc", "-c", _IN_BASH.format(words=quoted, at=len(words))],
            text=True,
            capture_output=True,
            check=True,
            env=environment(PATH=f"{tmp_path}:{Path(probe_binary).parent}:/usr/bin:/bin"),
        )
        assert said.stderr == ""
        return said.stdout.split()

    return ask


@pytest.mark.slow
def test_bash_completes_commands_options_and_values(completed: Completed) -> None:
    assert completed("") == list(COMMANDS)
    assert completed("comp") == ["compare", "completion"]
    assert "--load" in completed("run", "--")
    assert completed("run", "--load", "none,fu") == [f"none,{name}" for name in LOADS if name.startswith("fu")]
    assert completed("completion", "") == ["bash", "zsh", "fish"]
    assert completed("list-probes", "mutex-c") == ["mutex-contended"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_for_the_shell_that_reads_it(shell: str) -> None:
    said = command_line("completion", shell)
    assert said.returncode == 0, said.stderr
    assert f"_FASTENOUGH_COMPLETE={shell}_complete" in said.stdout
    document = json.loads(command_line("completion", shell, "--json").stdout)
    assert document == {"version": 2, "shell": shell, "script": said.stdout}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_what_each_command_is_for(shell: str, tmp_path: Path) -> None:
    more = {
        "_FASTENOUGH_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "fastenough ref",
        "COMP_CWORD": "1" if shell == "zsh" else "ref",
    }
    said = command_line(cwd=tmp_path, more=more)
    assert said.returncode == 0, said.stderr
    between = {"zsh": "\n", "fish": "\t"}[shell]
    assert f"reference{between}{COMMANDS['reference'][1]}" in said.stdout


def test_no_command_is_loaded_to_complete_their_names() -> None:
    ask = (
        "import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from fastenough.cli import main\nmain([])"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask],
        text=True,
        capture_output=True,
        check=True,
        env=environment(_FASTENOUGH_COMPLETE="bash_complete", COMP_WORDS="fastenough ", COMP_CWORD="1"),
    )
    assert not {module for module, _ in COMMANDS.values()} - {"fastenough.cli.completion"} & set(done.stderr.split())


def test_what_no_shell_asks_for_does_nothing(tmp_path: Path) -> None:
    assert command_line("list", cwd=tmp_path, more={"_FASTENOUGH_COMPLETE": "tcsh_complete"}).returncode == 1
