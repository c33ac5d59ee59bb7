# SPDX-License-Identifier: GPL-2.0-or-later
"""The shape of the house: short functions and modules, no circle of imports, no room that knows another's keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.c_scanner import Function, called, functions, included
from tests.support.python_scanner import scanned, scanned_file
from tests.support.tools import ROOT

FOLDERS = ("fastenough", "target", "gauge", "format")
LONGEST_FUNCTION = 45
LONGEST_MODULE = 700


def sources(*endings: str) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path.is_file() and "__pycache__" not in path.parts:
                yield path


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions_of(path: Path) -> Iterator[Function]:
    yield from scanned_file(path).functions if path.suffix == ".py" else functions(path.read_text())


def test_no_function_is_long() -> None:
    paths = list(sources(".py", ".c", ".h"))
    found = [(path, function) for path in paths for function in functions_of(path)]
    assert len(paths) > 250 and len(found) > 1500
    long = [
        f"{name_of(path)}:{function.line} {function.name}: {function.lines} lines"
        for path, function in found
        if function.lines > LONGEST_FUNCTION
    ]
    assert not long, "\n".join(long)


def test_no_module_is_long() -> None:
    long = {
        name_of(path): lines
        for path in sources(".py", ".c", ".h")
        if (lines := path.read_text().count("\n")) > LONGEST_MODULE
    }
    assert not long


SCANNED = r"""
/* int commented(void) { */
#define MACRO(x) do { \
	x; \
} while (0)
struct pair { int a, b; } __attribute__((packed));
static const struct pair PAIRS[] = { { 1, 2 }, { '{', '\'' } };
enum { A, B };
static int __attribute__((noinline)) first(int a, int (*call)(int))
{
	const char *text = "} \" {"; // }
	return call(a) + text[0];
}
ISR(TIMER(COMPARE)) { }

int
third(void)
{
	if (A) { MACRO(B); }
	return (int){ 3 };
}
"""


def test_the_scanner_of_c_sees_what_a_function_is() -> None:
    assert list(functions(SCANNED)) == [Function("first", 9, 5, True), Function("ISR", 14, 1), Function("third", 16, 6)]
    for wrong in ("int f(void) {", "int f(void) { } }"):
        with pytest.raises(ValueError, match="brace"):
            list(functions(wrong))


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / "fastenough").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of ours that it names; those above a named one are no step of their own."""
    found = set()
    for module, names in scanned_file(path).imports:
        below = {f"{module}.{one}" for one in names}
        found |= {one if one in known else module for one in below or {module}}
    return (found & known.keys()) - {name}


def circle(steps: dict[str, set[str]]) -> list[str]:
    """One circle, as the names on it, or none; steps that lead nowhere further are taken away until none is left."""
    left = {name: set(to) for name, to in steps.items()}
    while ends := {name for name, to in left.items() if not to & left.keys()}:
        left = {name: to for name, to in left.items() if name not in ends}
    if not left:
        return []
    at = min(left)
    way: list[str] = []
    while at not in way:
        way.append(at)
        at = min(left[at] & left.keys())
    return way[way.index(at) :]


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = modules()
    assert len(known) > 100
    found = circle({name: imported(name, path, known) for name, path in known.items()})
    assert not found, " -> ".join(found)
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]


def c_includes(texts: dict[str, str]) -> dict[str, set[str]]:
    """By unit (the path of X.c and X.h without the ending), the units whose headers it includes.

    A header is looked for in the same folder, then in all others: include paths differ from program to program.
    """
    steps: dict[str, set[str]] = {name.rpartition(".")[0]: set() for name in texts}
    for name, text in texts.items():
        folder, unit = name.rpartition("/")[0], name.rpartition(".")[0]
        for header in included(text):
            beside = f"{folder}/{header}"
            paths = [beside] if beside in texts else [path for path in texts if path.endswith(f"/{header}")]
            steps[unit] |= {path.rpartition(".")[0] for path in paths} - {unit}
    return steps


def c_calls(texts: dict[str, str]) -> dict[str, set[str]]:
    """By unit, the units of the same folder whose functions it calls.

    Not those of other folders: each machine implements the functions of gauge/core/machine.h, which the core calls.
    """
    steps: dict[str, set[str]] = {name.rpartition(".")[0]: set() for name in texts}
    defining: dict[tuple[str, str], set[str]] = {}
    defined = {name: list(functions(text)) for name, text in texts.items() if name.endswith(".c")}
    for name, inside in defined.items():
        for function in inside:
            if not function.static:
                defining.setdefault((name.rpartition("/")[0], function.name), set()).add(name.rpartition(".")[0])
    for name, inside in defined.items():
        for called_name in called(texts[name]) - {function.name for function in inside}:
            steps[name.rpartition(".")[0]] |= defining.get((name.rpartition("/")[0], called_name), set())
    return steps


def c_texts(*folders: str) -> dict[str, str]:
    texts = {name_of(path): path.read_text() for path in sources(".c", ".h")}
    return {name: text for name, text in texts.items() if name.startswith(folders)}


def test_no_headers_include_each_other_in_a_circle() -> None:
    headers = {name: text for name, text in c_texts("gauge/", "target/", "format/").items() if name.endswith(".h")}
    assert len(headers) > 70
    found = circle(c_includes(headers))
    assert not found, " -> ".join(found)


def test_no_c_files_of_the_gauge_depend_on_each_other_in_a_circle() -> None:
    texts = c_texts("gauge/", "format/")
    includes, calls = c_includes(texts), c_calls(texts)
    assert sum(map(len, calls.values())) > 20
    found = circle({unit: includes[unit] | calls[unit] for unit in includes})
    assert not found, " -> ".join(found)


def test_a_circle_of_c_files_is_found_by_include_and_by_call() -> None:
    by_include = {"a/x.h": '#include "y.h"\n', "a/y.c": '#include "y.h"\n#include "x.h"\n', "a/y.h": ""}
    assert circle(c_includes(by_include)) == ["a/x", "a/y"]
    first, second = "void f(void)\n{\n\tg();\n}\n", "void g(void)\n{\n\tf();\n}\n"
    assert circle(c_calls({"a/x.c": first, "a/y.c": second})) == ["a/x", "a/y"]
    assert not circle(c_calls({"a/x.c": first, "b/y.c": second}))
    assert not circle(c_calls({"a/x.c": first, "a/y.c": f"{second}static void f(void)\n{{\n}}\n"}))


def test_only_the_room_of_recordings_knows_the_keys_of_a_head() -> None:
    found = {
        name_of(path): lines
        for path in sources(".py")
        if "fastenough/recording/" not in path.as_posix()
        if (lines := scanned_file(path).keyed)
    }
    assert not found
    assert scanned('a.head["x"]\nb.end.get("y")\nc.head.name\nd["end"]').keyed == [1, 2]
