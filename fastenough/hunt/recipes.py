# SPDX-License-Identifier: GPL-2.0-or-later
"""A recipe as a load: its commands, and a load file for plans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from fastenough.hunt.space import Part, Recipe, Space
from fastenough.hunt.stressors import FIRST, LAST, PHASE, PHASES, PLACE, WORKERS
from fastenough.loads import Expectation, Load

SOURCE_PREFIX = "found by fastenough hunt"
"""Prefix of the source of such a load."""
_CPU_SHARE = 0.001
# The shell of Debian takes no "--" before the number of a process group.
IN_PHASES = """
on=$1 off=$2; shift 2
setsid "$@" & load=$!
while kill -0 $load 2>/dev/null; do
	sleep $on; kill -STOP -$load; sleep $off; kill -CONT -$load
done
wait $load
"""
IN_TURNS = """
turns=$1; shift
while :; do
	turn=$(($(date +%s) % turns + 1)); eval "command=\\${$turn}"
	[ -z "$command" ] || eval "setsid $command &"
	sleep 0.$(printf %09d $((1999999999 - 1$(date +%N)))); sleep 0.01
	[ -z "$command" ] || { kill -KILL -$! 2>/dev/null; wait; }
done
"""
"""A turn is one second of the wall clock: all commands change at once, and the times of a recording identify it."""


def turn_of(wall_ns: int, turns: int) -> int:
    """Index of the turn at a wall-clock time."""
    return wall_ns // 1_000_000_000 % turns


def _arguments(space: Space, part: Part, cpus: int) -> list[str]:
    options = [
        argument
        for parameter in space.stressors[part.stressor].parameters
        if parameter.name not in (WORKERS, PLACE, PHASE)
        for argument in (f"--{parameter.name}", space.value(part, parameter.name))
    ]
    place = {FIRST: ["--taskset", "0"], LAST: ["--taskset", str(cpus - 1)]}.get(space.value(part, PLACE), [])
    return [
        "stress-ng",
        f"--{part.stressor}",
        space.value(part, WORKERS),
        *options,
        *place,
        *space.options,
        "--temp-path",
        "{scratch}",
        "--timeout",
        "{limit_s}s",
        "--quiet",
    ]


def _command(space: Space, part: Part, cpus: int) -> tuple[str, ...]:
    """The command of one part."""
    arguments = _arguments(space, part, cpus)
    on_ms, off_ms = PHASES[space.value(part, PHASE)]
    if not off_ms:
        return tuple(arguments)
    return ("sh", "-c", IN_PHASES, "sh", f"{on_ms / 1000:g}", f"{off_ms / 1000:g}", *arguments)


def _turning(space: Space, turns: Sequence[Recipe], place: int, cpus: int) -> tuple[str, ...]:
    """The command that runs the stressor at one place of each turn's recipe; empty in turns with fewer stressors.

    It runs throughout its turn: a second is too short for phases of half a second.
    """
    commands = [" ".join(_arguments(space, turn[place], cpus)) if place < len(turn) else "" for turn in turns]
    return ("sh", "-c", IN_TURNS, "sh", str(len(turns)), *commands)


def name_of(turns: Sequence[Recipe]) -> str:
    """Load name, derived from a hash of the recipes."""
    text = json.dumps([[(part.stressor, part.levels) for part in recipe] for recipe in turns])
    return f"hunt-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def load_of(space: Space, turns: Sequence[Recipe], cpus: int) -> Load:
    """The load that runs one recipe, or several in turns."""
    if len(turns) == 1:
        commands = tuple(_command(space, part, cpus) for part in turns[0])
    else:
        commands = tuple(_turning(space, turns, place, cpus) for place in range(max(map(len, turns))))
    memory = max(sum(map(space.memory_of, recipe)) for recipe in turns)
    return Load(
        name_of(turns),
        f"{SOURCE_PREFIX}: {', then '.join(description_of(space, recipe) for recipe in turns)}",
        ("stress-ng",),
        commands,
        Expectation(cpu_share=_CPU_SHARE),
        memory_bytes=-(-memory // cpus),
        start_s=1.0,
    )


def description_of(space: Space, recipe: Recipe) -> str:
    """Stressors and the parameters that differ from the plainest level."""
    return " + ".join(_part_description(space, part) for part in recipe)


def _part_description(space: Space, part: Part) -> str:
    parameters = [
        f"{parameter.name} {parameter.values[level]}"
        for parameter, level in zip(space.stressors[part.stressor].parameters, part.levels, strict=True)
        if level
    ]
    return f"{part.stressor} ({', '.join(parameters)})" if parameters else part.stressor


def as_file(load: Load) -> str:
    """The load as the text of a load file, for plans and ``--load``."""
    lines = [
        f"name = {_text(load.name)}",
        f"source = {_text(load.source)}",
        "commands = [",
        *(f"    [{', '.join(map(_text, command))}]," for command in load.commands),
        "]",
        f"tools = [{', '.join(map(_text, load.tools))}]",
        f"cpu-share = {load.expects.cpu_share:g}",
        f"memory-mb = {-(-load.memory_bytes // (1 << 20))}",
    ]
    return "\n".join([*lines, ""])


def _text(text: str) -> str:
    """A basic string of TOML: the escapes of JSON, but no surrogate pairs."""
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007f")
