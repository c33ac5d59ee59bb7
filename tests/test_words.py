# SPDX-License-Identifier: GPL-2.0-or-later
"""The standard terms are used everywhere, in names, messages and documents; the words they replace are not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from tools import ROOT

TERMS = {
    "fix": r"mend(s|ed|ing)?",
    "corrected (for coordinated omission)": r"owed",
    "event": r"notices?",
    "dropped": r"shed(s|ding)?",
    "requested": r"wish(es|ed)?|hoped",
    "requested, in effect": r"""["'](asked|granted)["']|granted than (was )?(asked|requested)|granted, not what""",
    "merged samples": r"pool(s|ed|ing)?",
    "back end": r"backends?",
}
"""The term to what is not written any more."""

ALLOWED = {
    "corrected (for coordinated omission)": {
        r"": ("fastenough/recording/upgrade.py", "docs/format.md", "tests/pass_checker.py",
              "tests/mutant_trial.py"),  # what version 1 of the format called it
    },
    "dropped": {
        r"edges_shed": ("fastenough/analysis/agreement.py", "tests/test_experiment_report.py"),  # in version 1
    },
    "requested, in effect": {
        r"": ("fastenough/recording/upgrade.py", "docs/format.md", "tests/test_format_recording.py",
              "tests/pass_checker.py", "tests/mutant_trial.py"),  # in version 1
    },
    "merged samples": {
        r"ThreadPool|pool\.submit|sqlalchemy\.pool|memory_pool": ("",),  # of threads, connections, memory
    },
    "back end": {
        r"get_backend|build-backend": ("",),  # names of others
    },
}
"""Where a word may stand all the same: on lines with these words, in files whose path begins so."""

NOT_OURS = ("format/golden/", "format/recording-1.schema.json", "tests/test_words.py")
TEXTS = {".py", ".c", ".h", ".md", ".toml", ".j2", ".json", ".build", ".css", ".sh"}


def pattern(term: str) -> re.Pattern[str]:
    """The word, also as a part of a name: ``wakeup_owed``, ``notice_add``; not as a part of another word."""
    return re.compile(rf"(?<![A-Za-z])(?:{TERMS[term]})(?![a-z])", re.IGNORECASE)


def texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True,
                            check=True).stdout.splitlines()
    for name in listed:
        path = ROOT / name
        if path.suffix in TEXTS and path.is_file() and not name.startswith(NOT_OURS):
            yield name, path.read_text(errors="replace")


def allowed(term: str, name: str, line: str) -> bool:
    return any(re.search(words, line) and name.startswith(files) for words, files in ALLOWED.get(term, {}).items())


def found(term: str) -> Iterator[str]:
    for name, text in texts():
        for match in pattern(term).finditer(text):
            begin = text.rfind("\n", 0, match.start()) + 1
            line = text[begin:text.find("\n", match.end())]
            if not allowed(term, name, line):
                yield f"{name}:{text.count(chr(10), 0, begin) + 1}: {line.strip()}"


@pytest.mark.parametrize("term", TERMS)
def test_the_standard_terms_are_used(term: str) -> None:
    lines = list(found(term))
    assert not lines, f"write {term}:\n" + "\n".join(lines)


def test_a_word_is_found_in_a_name_and_not_in_another_word() -> None:
    owed, shed = pattern("corrected (for coordinated omission)"), pattern("dropped")
    assert owed.search("wakeup_owed") and owed.search("_OWED") and shed.search('"edges_shed"')
    assert not owed.search("allowed, followed") and not shed.search("finished")
