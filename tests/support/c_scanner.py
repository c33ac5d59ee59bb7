# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions of a C source with their lengths, by counting braces where comments, strings and macros are blanked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_APART = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.MULTILINE)
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_FUNCTION = {"__attribute__", "_Static_assert", "_Alignas", "__declspec"}


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    """Of its first word, counted from 1."""
    lines: int
    """From there to its closing brace, both included."""
    static: bool = False


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())


def without_comments_and_strings(text: str) -> str:
    """The same lines; what is no code is spaces."""
    return _APART.sub(_blank, text)


def _name(signature: str) -> str | None:
    """Of the function whose body begins behind this; None where it is a struct, an initialiser or the like."""
    if not signature.rstrip().endswith(")"):
        return None
    outside, depth = [], 0
    for character in signature:
        depth += character == "("
        outside.append(character if depth == 0 or (depth == 1 and character == "(") else " ")
        depth -= character == ")"
    names = [name for name in _CALLED.findall("".join(outside)) if name not in _NO_FUNCTION]
    return names[-1] if names and "=" not in "".join(outside) else None


def functions(text: str) -> Iterator[Function]:
    """The functions defined in a source; raises ValueError where its braces do not match."""
    code = _DIRECTIVE.sub(_blank, without_comments_and_strings(text))
    begun, depth, name = 0, 0, None
    for at, character in enumerate(code):
        if character == "{":
            if depth == 0:
                name = _name(code[begun:at])
            depth += 1
        elif character == "}":
            depth -= 1
            if depth < 0:
                raise ValueError(f"line {code.count(chr(10), 0, at) + 1}: a brace closes that was not opened")
            if depth == 0 and name:
                first = begun + len(code[begun:at]) - len(code[begun:at].lstrip())
                line = code.count("\n", 0, first) + 1
                static = "static" in code[first : code.index("{", first)].split()
                yield Function(name, line, code.count("\n", 0, at) + 2 - line, static)
        if depth == 0 and character in ";}":
            begun = at + 1
    if depth:
        raise ValueError("a brace is not closed")


def included(text: str) -> list[str]:
    """The files that a source includes by a name in quotes."""
    return _INCLUDED.findall(text)


def called(text: str) -> set[str]:
    """The names in a source that stand before a parenthesis: the functions that it calls, defines or declares."""
    return set(_CALLED.findall(without_comments_and_strings(text)))
