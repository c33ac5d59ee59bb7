# SPDX-License-Identifier: GPL-2.0-or-later
"""The published schemas, compiled: one check per version and record type."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import fastjsonschema

VERSIONS = (1, 2)
"""Those that can be read; the last is the one that is written."""


@cache
def line_validators(version: int) -> dict[str, Any]:
    """One check per record type of one version; each raises JsonSchemaValueException."""
    name = f"recording-{version}.schema.json"
    packaged = resources.files("fastenough.recording") / name
    beside = Path(__file__).resolve().parents[2] / "format" / name
    schema = json.loads(packaged.read_text() if packaged.is_file() else beside.read_text())
    types = [choice["$ref"].rpartition("/")[2] for choice in schema["oneOf"]]
    return {name: fastjsonschema.compile({"$defs": schema["$defs"], "$ref": f"#/$defs/{name}"}) for name in types}
