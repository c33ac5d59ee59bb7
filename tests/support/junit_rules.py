# SPDX-License-Identifier: GPL-2.0-or-later
"""What CI servers require of a JUnit XML file: the essential rules of the schema that Jenkins checks such files by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

_RESULTS = ("failure", "error", "skipped")
_HOLDS = {
    "testsuites": ("testsuite",),
    "testsuite": ("testsuite", "testcase", "properties", "system-out", "system-err"),
    "testcase": (*_RESULTS, "system-out", "system-err"),
} | dict.fromkeys((*_RESULTS, "system-out", "system-err"), ())
"""By element: which others it may hold."""
_NEEDS = {"testsuite": {"name", "tests", "failures", "errors", "time", "hostname"}, "testcase": {"name"}}
_MAY_HAVE = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
    "testcase": {"name", "time", "classname", "group"},
} | {result: {"type", "message"} for result in _RESULTS}
_TIME = re.compile(r"\d+(\.\d*)?")


def faults(content: bytes) -> list[str]:
    """What a CI server would not take; nothing where it takes all of it."""
    root = ElementTree.fromstring(content)
    wrong_root = [] if root.tag in ("testsuites", "testsuite") else [f"the root is {root.tag}"]
    return [*wrong_root, *(fault for element in root.iter() for fault in _of_element(element))]


def _of_element(element: ElementTree.Element) -> Iterator[str]:
    name, has = element.tag, set(element.keys())
    yield from (f"{name} holds {child.tag}" for child in element if child.tag not in _HOLDS.get(name, ()))
    yield from (f"{name} lacks {lacking}" for lacking in _NEEDS.get(name, set()) - has)
    yield from (f"{name} has {more}" for more in has - _MAY_HAVE.get(name, set()))
    if "time" in has and not _TIME.fullmatch(str(element.get("time"))):
        yield f"{name} takes {element.get('time')}"
    if name == "testcase" and sum(element.find(result) is not None for result in _RESULTS) > 1:
        yield f"{element.get('name')} has two results"
    if name == "testsuite":
        yield from _miscounted(element)


def _miscounted(suite: ElementTree.Element) -> Iterator[str]:
    there = {
        "tests": len(suite.findall(".//testcase")),
        "failures": len(suite.findall(".//failure")),
        "errors": len(suite.findall(".//error")),
        "skipped": len(suite.findall(".//skipped")),
    }
    yield from (
        f"{name} is {suite.get(name)}, and there are {count}"
        for name, count in there.items()
        if suite.get(name, "0") != str(count)
    )
