# SPDX-License-Identifier: GPL-2.0-or-later
"""What a contributor is told to run exists, and the files that hosting platforms read are valid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fastenough import __version__

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
SCHEMAS = {
    ".github/workflows/check.yml": "vendor.github-workflows",
    ".github/ISSUE_TEMPLATE/defect.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/request.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/wrong-number.yml": "vendor.github-issue-forms",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
}


def _is_valid(path: Path, schema: str) -> bool:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())
def test_platform_files_are_valid(name: str, schema: str) -> None:
    assert _is_valid(ROOT / name, schema)


def test_an_invalid_workflow_is_noticed(tmp_path: Path) -> None:
    workflow = tmp_path / "check.yml"
    workflow.write_text((ROOT / ".github/workflows/check.yml").read_text().replace("runs-on:", "run-on:"))
    assert not _is_valid(workflow, SCHEMAS[".github/workflows/check.yml"])


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", ".github/workflows/check.yml", ".gitlab-ci.yml", "README.md"])
def test_make_targets_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    named = set(re.findall(r"(?:`|run: |- |^)make ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named
    assert named <= TARGETS


def test_the_changelog_has_this_version() -> None:
    assert re.search(rf"^## {re.escape(__version__)} ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
