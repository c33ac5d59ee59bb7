# SPDX-License-Identifier: GPL-2.0-or-later
"""Reader of plans in TOML.  docs/plans.md describes every key."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fastenough.board import AS_BOOTED, Wires, open_board, require_configuration, valid_configuration_name
from fastenough.board.configuration import ConfigurationChange
from fastenough.campaign.acts import instrument_request
from fastenough.campaign.expand import combinations
from fastenough.campaign.load_file import read_load_table
from fastenough.campaign.plan import GPIO_PROBES, WARM_UP_S, Entry, Instrument, Plan
from fastenough.campaign.run_keys import KEYS
from fastenough.campaign.toml import Table, parse_toml, read_toml
from fastenough.implementations import DEFAULT, IMPLEMENTATIONS, Value
from fastenough.loads import LOADS, Load
from fastenough.model import RETURN_TIME_NS, BadInput, NotApplicable, Requirement
from fastenough.settings import SETTINGS
from fastenough.units import parse_duration_ns

MOST_RUNS = 100_000
"""Upper limit for the runs of a plan; more would fill the memory."""

_EXAMPLE = "campaigns/ for examples"
_MOST_CHARS = {"title": 120, "question": 1000}
"""Upper limits for the lengths of texts."""

PLAN_KEYS = (
    "name",
    "title",
    "question",
    "board",
    "boards",
    "configurations",
    "implementations",
    "loads",
    "duration",
    "warm-up",
    "repeat",
    "phases",
    "instrument",
    "self-test",
    "calibration",
    "monitor",
    "settings",
    "configuration",
    "pins",
    "load",
    "run",
)
RUN_KEYS = (
    *("probe", "parameters", "implementations", "loads", "duration", "warm-up", "repeat", "phases", "requirement"),
    *KEYS,
)
REQUIREMENT_KEYS = ("limit", "miss-rate", "confidence", "longest-burst", "return-time")
CONFIGURATION_KEYS = ("name", "select", "kernel")
PIN_KEYS = ("chip", "in", "out")

_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}\Z")
_NO_PARAMETERS = {"duration": "remove it, and write duration next to probe"} | dict.fromkeys(
    ("record", "run-id", "json"), "remove it"
)


def read_plan(path: Path) -> Plan:
    """Return the plan in a TOML file; raise BadInput with file, line, key and the fix."""
    return _plan(read_toml(path, _EXAMPLE), path.parent)


def parse_plan(raw: bytes, name: str) -> Plan:
    """Return the same from a stored text; files are relative to the current folder.  ``name``: place of the text."""
    return _plan(parse_toml(raw, name, _EXAMPLE), Path())


def _plan(table: Table, folder: Path) -> Plan:
    _reject_former_tables(table)
    name = _name(table, "name", '"my-plan"')
    title, question = (_one_line(table, key) for key in _MOST_CHARS)
    boards = _boards(table)
    instrument = _instrument(table, folder, boards)
    configurations = _configurations(table)
    changes = _changes(table, configurations)
    wires = _wires(table.table("pins", "[pins]"))
    settings = _settings(table.table("settings", "[settings]"))
    loads = _loads(table, folder)
    _check_boards(table, boards, configurations, instrument)
    defaults = _defaults(table, (*LOADS, *loads))
    monitor = table.take("monitor", bool, "true", False)
    runs = table.tables("run")
    table.finish(PLAN_KEYS)
    entries = tuple(_entry(run, defaults, (*LOADS, *loads)) for run in runs)
    if not entries:
        raise table.fault('the plan has no runs; add a [[run]] table with probe = "timer"', "run")
    plan = Plan(
        name,
        entries,
        settings,
        loads,
        boards,
        configurations,
        instrument,
        wires,
        monitor,
        changes,
        title,
        question,
        table.source_text,
        table.fault,
    )
    _check_size(table, plan)
    _check_wires(table, plan)
    for entry in entries:
        _check_instrument(plan, entry)
    return plan


def _reject_former_tables(table: Table) -> None:
    """Raise BadInput for a table of a former version, which had one for each probe of the instrument."""
    for probe in GPIO_PROBES:
        if probe in table:
            raise table.fault(
                f'[{probe}] is no longer supported: write [[run]], below it probe = "{probe}", and its '
                "times in parameters = {...} (see docs/plans.md)",
                probe,
            )


def _name(table: Table, key: str, what: str) -> str:
    name = table.text(key, what)
    if not _NAME.match(name):
        raise table.fault(f"{key} {name!r} is invalid; use at most 64 lower-case letters, digits and dashes", key)
    return name


def _one_line(table: Table, key: str) -> str:
    """Return a title or question on one line; empty if the key is missing."""
    text = " ".join(table.text(key, '"text"', "").split())
    if len(text) > _MOST_CHARS[key]:
        raise table.fault(f"{key} has {len(text)} characters; shorten it to at most {_MOST_CHARS[key]}", key)
    return text


def _boards(table: Table) -> tuple[str, ...]:
    if "board" not in table:
        return table.texts("boards", ())
    if "boards" in table:
        raise table.fault("board and boards are mutually exclusive; list all boards in boards", "board")
    return (table.text("board", '"local"'),)


def _instrument(table: Table, folder: Path, boards: tuple[str, ...]) -> Instrument | None:
    """Return the instrument; relative file names start at the plan's folder.  A real gauge requires its self-test."""
    port = table.text("instrument", '"simulated", or the port of a gauge', "")
    files = {key: table.text(key, '"gauge.json"') for key in ("self-test", "calibration") if key in table}
    if not port:
        if files:
            raise table.fault(f"{next(iter(files))} requires a gauge; add instrument = with the gauge's port", *files)
        return None
    instrument = Instrument(
        port, *(str(folder / files[key]) if key in files else "" for key in ("self-test", "calibration"))
    )
    if any(instrument.simulated != (name.partition(":")[0] == "virtual") for name in boards):
        raise table.fault(
            'board = "virtual" and instrument = "simulated" require each other; for a real board give '
            'the port of a real gauge, such as instrument = "/dev/ttyACM0"',
            "instrument",
        )
    if instrument.simulated and files:
        key = next(iter(files))
        raise table.fault(
            f"{key} = {files[key]!r} is not supported with the simulated gauge, which makes its own; remove it", key
        )
    if not instrument.simulated and not instrument.self_test:
        raise table.fault(
            "self-test is missing: the gauge's own offset must be known: wire its output to its input, "
            'run fastenough gauge selftest --json >gauge.json, and write self-test = "gauge.json"'
        )
    return instrument


def _configurations(table: Table) -> tuple[str, ...]:
    try:
        return tuple(map(valid_configuration_name, table.texts("configurations", (AS_BOOTED,))))
    except BadInput as error:
        raise table.fault(str(error), "configurations") from error


def _check_boards(
    table: Table, boards: tuple[str, ...], configurations: tuple[str, ...], instrument: Instrument | None
) -> None:
    key = "board" if len(boards) == 1 else "boards"
    for name in boards:
        try:
            board = open_board(name)
            board.configurations()
        except NotApplicable:
            continue
        except BadInput as error:
            raise table.fault(f"{key}: {error}", key) from error
        for configuration in configurations:
            try:
                require_configuration(board, configuration)
            except BadInput as error:
                raise table.fault(f"configurations: {error}", "configurations") from error
    if instrument and instrument.simulated and (not boards or AS_BOOTED in configurations):
        raise table.fault(
            'the simulated gauge needs a board that the plan boots: write board = "virtual" and '
            'configurations = ["stock", "rt"]',
            "instrument",
        )


def _changes(table: Table, configurations: tuple[str, ...]) -> dict[str, ConfigurationChange]:
    changes: dict[str, ConfigurationChange] = {}
    for own in table.tables("configuration", []):
        name, change = _change(own, configurations)
        if name in changes:
            raise own.fault(f"configuration {name} has two tables; remove one of them", "name")
        changes[name] = change
    return changes


def _change(table: Table, configurations: tuple[str, ...]) -> tuple[str, ConfigurationChange]:
    """Return a configuration that the plan lists, and how a board is changed to it."""
    name = table.text("name", '"rt"')
    if name not in configurations:
        listed = ", ".join(configurations)
        raise table.fault(f"name {name!r} is not a configuration of the plan; use one of {listed}", "name")
    select = table.take("select", list, '["grub-reboot", "1"]', [])
    if not all(isinstance(argument, str) and argument for argument in select):
        raise table.fault('select must be a command as a list of words, such as ["grub-reboot", "1"]', "select")
    change = ConfigurationChange(tuple(select), table.text("kernel", '"*-rt*"', ""))
    table.finish(CONFIGURATION_KEYS)
    return name, change


def _loads(table: Table, folder: Path) -> dict[str, Load]:
    """Return the loads that the plan defines, by name."""
    loads: dict[str, Load] = {}
    for own in table.tables("load", []):
        load = read_load_table(own, folder)
        if load.name in loads:
            raise own.fault(f"load {load.name} is defined twice; rename one of them", "name")
        loads[load.name] = load
    return loads


def _wires(table: Table) -> Wires | None:
    if not any(key in table for key in PIN_KEYS):
        table.finish(PIN_KEYS)
        return None
    wires = Wires(table.text("chip", '"gpiochip0"'), table.number("in", "17", 0), table.number("out", "27", 0))
    table.finish(PIN_KEYS)
    if wires.input == wires.output:
        raise table.fault(f"in and out must be different lines; both are {wires.input}", "in")
    return wires


def _settings(table: Table) -> dict[str, Value]:
    settings: dict[str, Value] = table.rest()
    for name, value in settings.items():
        if name not in SETTINGS:
            raise table.fault(f"unknown setting {name!r}; use one of {', '.join(SETTINGS)}", name)
        if not isinstance(value, str | int | float):
            raise table.fault(f"{name} = {value} is invalid; write a text in quotes, a number, true or false", name)
    return settings


def _defaults(table: Table, loads: tuple[str, ...]) -> Entry:
    """Return the defaults of every [[run]]."""
    return Entry(
        "",
        table.texts("loads", ("none",), loads),
        table.duration_ns("duration", 30 * 10**9) / 1e9,
        {},
        table.number("repeat", "1", 1, 1),
        table.texts("implementations", (DEFAULT,), IMPLEMENTATIONS),
        table.duration_ns("warm-up", round(WARM_UP_S * 1e9)) / 1e9,
        phases=table.number("phases", "30", 1, 1),
    )


def _entry(table: Table, default: Entry, loads: tuple[str, ...]) -> Entry:
    probe = table.text("probe", '"timer"')
    if not _NAME.match(probe):
        raise table.fault(f"probe {probe!r} is not a valid probe name; see fastenough list-probes", "probe")
    entry = Entry(
        probe,
        table.texts("loads", default.loads, loads),
        table.duration_ns("duration", round(default.duration_s * 1e9)) / 1e9,
        _parameters(table),
        table.number("repeat", "1", 1, default.repeat),
        table.texts("implementations", default.implementations, IMPLEMENTATIONS),
        table.duration_ns("warm-up", round(default.warm_up_s * 1e9)) / 1e9,
        read_requirement(table),
        _parameters_of(table),
        table.number("phases", "30", 1, default.phases),
        table.fault,
    )
    table.finish(RUN_KEYS)
    return entry


def read_requirement(whole: Table) -> Requirement | None:
    """Return the requirement of an entry or a board; None if its table has none."""
    if "requirement" not in whole:
        return None
    table = whole.table("requirement", "requirement")
    limit = table.text("limit", '"100us"')
    shares = table.share("miss-rate", Requirement.miss_rate), table.share("confidence", Requirement.confidence)
    burst = table.number("longest-burst", "20", 1) if "longest-burst" in table else None
    return_time_ns = table.duration_ns("return-time", RETURN_TIME_NS)
    table.finish(REQUIREMENT_KEYS)
    try:
        return Requirement(parse_duration_ns(limit), *shares, burst, return_time_ns)
    except (BadInput, ValueError) as error:
        raise whole.fault(f"requirement: {error}", "requirement") from error


def _parameters(table: Table) -> dict[str, tuple[Value, ...]]:
    parameters: dict[str, tuple[Value, ...]] = {}
    for name, value in table.take("parameters", dict, "a table", {}).items():
        values = value if isinstance(value, list) else [value]
        if not _NAME.match(name) or not values or not all(isinstance(item, str | int | float) for item in values):
            raise table.fault(
                f"parameters: {name} must be a probe option without its dashes, set to a text, a number, "
                "true, false, or a list of these",
                "parameters",
                name,
            )
        if name in _NO_PARAMETERS:
            raise table.fault(f"parameters: {name} is set by the bench; {_NO_PARAMETERS[name]}", "parameters", name)
        parameters[name] = _distinct(values)
    for key in KEYS.values():
        set_by_key = key.parameters(table) if key.name in table else {}
        for name, value in set_by_key.items():
            if name in parameters:
                raise table.fault(
                    f"{key.name} and the parameter {name} have the same meaning; remove one of them", key.name
                )
            parameters[name] = (value,)
    return parameters


def _parameters_of(table: Table) -> dict[str, Value]:
    """The values of keys that act during the runs."""
    values = {name: key.value(table) for name, key in KEYS.items() if name in table}
    return {name: value for name, value in values.items() if value is not None}


def _distinct(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the values without duplicates, such as 1000us after 1ms: these are one run."""
    first: dict[object, Value] = {}
    for value in values:
        meaning: object = str(value)
        with suppress(ValueError):
            meaning = ("ns", parse_duration_ns(str(value)))
        first.setdefault((isinstance(value, bool), meaning), value)
    return tuple(first.values())


def _check_size(table: Table, plan: Plan) -> None:
    runs = sum(
        math.prod((entry.repeat, entry.phases, len(entry.loads), len(entry.implementations)))
        * math.prod(map(len, entry.parameters.values()))
        for entry in plan.entries
    )
    runs *= max(1, len(plan.boards)) * len(plan.configurations)
    if runs > MOST_RUNS:
        raise table.fault(
            f"the plan expands to {runs:,} runs, more than the maximum of {MOST_RUNS:,}; "
            "lower repeat, or list fewer values",
            "run",
        )


def _check_wires(table: Table, plan: Plan) -> None:
    """Raise BadInput for pins that no run of the plan uses."""
    if plan.wires is not None and not any(entry.probe in GPIO_PROBES for entry in plan.entries):
        raise table.fault(
            f"[pins] is not used: no run has the probe {' or '.join(GPIO_PROBES)}; remove [pins], or add such a run",
            "pins",
        )


def _check_instrument(plan: Plan, entry: Entry) -> None:
    """Raise BadInput if the instrument cannot measure an entry."""
    if plan.instrument is None:
        return
    for parameters in combinations(entry):
        try:
            instrument_request(entry.probe, parameters)
        except BadInput as error:
            raise entry.fault(str(error), "parameters") from error
