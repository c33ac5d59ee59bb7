# SPDX-License-Identifier: GPL-2.0-or-later
"""Scan a Python source once for all checks of the house: parsing it is slow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.c_scanner import Function


@dataclass
class ScannedModule:
    """``imports``: each module with the names that are taken from it; ``keyed``: lines on which a key of a recording's
    head or end is taken by its name."""

    functions: list[Function] = field(default_factory=list)
    imports: list[tuple[str, list[str]]] = field(default_factory=list)
    keyed: list[int] = field(default_factory=list)

    def imported(self) -> Iterator[str]:
        """Yield the full name of each module and of each name that is imported."""
        for module, names in self.imports:
            yield module
            yield from (f"{module}.{name}" for name in names)


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Signature and docstring do not make a function hard to follow."""
    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1


def _holder(node: ast.Subscript | ast.Call) -> ast.expr | None:
    """Of ``a["key"]`` and ``a.get(...)``, a."""
    if isinstance(node, ast.Subscript):
        return node.value if isinstance(getattr(node.slice, "value", None), str) else None
    return node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "get" else None


def scanned(text: str) -> ScannedModule:
    module = ScannedModule()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions.append(Function(node.name, node.lineno, _body_lines(node)))
        elif isinstance(node, ast.Import):
            module.imports += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            module.imports.append((node.module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Subscript | ast.Call):
            holder = _holder(node)
            if isinstance(holder, ast.Attribute) and holder.attr in ("head", "end"):
                module.keyed.append(holder.lineno)
    return module


@cache
def scanned_file(path: Path) -> ScannedModule:
    return scanned(path.read_text())
