# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads that the user defines, in a plan or in a file.  docs/plans.md describes every key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fastenough.campaign.toml import Table, read_toml
from fastenough.loads import LOADS, Expectation, Load, find_load
from fastenough.model import BadInput

LOAD_KEYS = (
    "name",
    "source",
    "commands",
    "tools",
    "counter",
    "cpu-share",
    "switches-per-s",
    "bytes-read-per-s",
    "bytes-written-per-s",
    "counter-per-s",
    "processes",
    "processes-per-cpu",
    "disk-mb",
    "memory-mb",
    "file",
)
FILE_KEYS = tuple(key for key in LOAD_KEYS if key != "file")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}\Z")
SUFFIX = ".toml"
_MOST, _MOST_PER_S = 1_000_000, 1e15


def read_load_table(table: Table, folder: Path) -> Load:
    """Return the load of a plan's table ``[[load]]``, or of the file that it names; raise BadInput."""
    if "file" not in table:
        return _load(table, LOAD_KEYS)
    file = table.text("file", f'"my-load{SUFFIX}"')
    table.finish(("file",))
    path = folder / file
    if not path.exists():
        raise table.fault(f"file = {file!r}: no such file: {path}", "file")
    return read_load(path)


def read_load(path: Path) -> Load:
    """Return the load in a file; raise BadInput with file, line, key and the fix."""
    return _load(read_toml(path, "docs/loads.md for an example"), FILE_KEYS)


def named_loads(arguments: Sequence[str]) -> dict[str, Load]:
    """Return the loads that the words of a command line name, in order: predefined loads, and files."""
    loads: dict[str, Load] = {}
    for argument in arguments:
        load = read_load(Path(argument)) if argument.endswith(SUFFIX) else find_load(argument)
        if load.name in loads:
            raise BadInput(f"{argument}: load {load.name} is defined twice; rename one of them")
        loads[load.name] = load
    return loads


def _load(table: Table, keys: tuple[str, ...]) -> Load:
    name = table.text("name", '"my-load"')
    if not _NAME.match(name) or name in LOADS:
        raise table.fault(
            f"name {name!r} is invalid; use at most 64 lower-case letters, digits and dashes, and "
            f"none of {', '.join(LOADS)}",
            "name",
        )
    source = table.text("source", '"where it comes from"', "written by the user")
    commands = table.take("commands", list, '[["command", "argument"]]')
    if not commands or not all(
        isinstance(line, list) and line and all(_is_argument(argument) for argument in line) for line in commands
    ):
        raise table.fault('commands must be a list of lists of words, such as [["dd", "if=/dev/zero"]]', "commands")
    counter = table.take("counter", list, '["cat", "/sys/class/net/lo/statistics/tx_bytes"]', [])
    if not all(_is_argument(argument) for argument in counter):
        raise table.fault('counter must be a command as a list of words, such as ["cat", "{scratch}/done"]', "counter")
    tools = table.texts("tools", (commands[0][0],))
    expects = _expectation(table, bool(counter))
    disk_bytes, memory_bytes = (_count(table, key) << 20 for key in ("disk-mb", "memory-mb"))
    table.finish(keys)
    return Load(name, source, tools, tuple(map(tuple, commands)), expects, disk_bytes, memory_bytes, tuple(counter))


def _is_argument(value: object) -> bool:
    """Return whether the system accepts it as an argument of a command."""
    return isinstance(value, str) and "\0" not in value


def _expectation(table: Table, counts: bool) -> Expectation:
    """Return the minimum activity that proves that the load ran."""
    share = table.take("cpu-share", (int, float), "0.05", 0.001)
    if not 0 <= share <= 1:
        raise table.fault(
            f"cpu-share = {share} is out of range; write the load's minimum share of all CPUs' time, from 0 to 1",
            "cpu-share",
        )
    counter_rate = _rate(table, "counter-per-s")
    if counts != bool(counter_rate):
        raise table.fault(
            "counter and counter-per-s require each other: the command that prints the amount of work done, and "
            "the amount's minimum increase per second",
            "counter" if counts else "counter-per-s",
        )
    return Expectation(
        float(share),
        _rate(table, "switches-per-s"),
        _rate(table, "bytes-read-per-s"),
        _rate(table, "bytes-written-per-s"),
        counter_rate,
        _count(table, "processes"),
        _count(table, "processes-per-cpu"),
    )


def _count(table: Table, key: str) -> int:
    count = table.number(key, "16", 0, 0)
    if count > _MOST:
        raise table.fault(f"{key} = {count} is too large; write at most {_MOST}", key)
    return count


def _rate(table: Table, key: str) -> float:
    rate = table.take(key, (int, float), "100", 0)
    if not 0 <= rate <= _MOST_PER_S:
        raise table.fault(f"{key} = {rate} is out of range; write the load's minimum rate per second, 0 or more", key)
    return float(rate)
