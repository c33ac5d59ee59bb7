# SPDX-License-Identifier: GPL-2.0-or-later
"""Records a case from a board.

``PYTHONPATH=. python tests/cases/facts/record.py BOARD "what it is" > tests/cases/facts/NAME.json``

What is long and alike is thinned out (packages, kernel options, tasks), what names a person or a place is replaced.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from fastenough.board import AS_BOOTED, open_board
from fastenough.facts import collect, gather
from fastenough.facts.kernel import _OF_INTEREST
from fastenough.facts.software import _OF_INTEREST as PACKAGES
from fastenough.facts.software import parse_status
from fastenough.facts.tasks import parse_task
from fastenough.link import FakeLink, Link


def _kept(path: str, text: str) -> str | None:
    """What of a file goes into the case, None for nothing."""
    if path.endswith(("/status",)) and "Package:" in text:
        blocks = [block for block in text.split("\n\n") if any(map(parse_status(block).__contains__, PACKAGES))]
        wanted = re.compile(r"^(Package|Status|Version|Architecture): .*$", re.MULTILINE)
        return "\n\n".join("\n".join(match[0] for match in wanted.finditer(block)) for block in blocks) + "\n"
    if "config" in path.rpartition("/")[2]:
        lines = [line for line in text.splitlines() if _OF_INTEREST.match(line.partition("=")[0])]
        return "\n".join(lines) + "\n"
    if re.fullmatch(r"/proc/\d+/task/\d+/stat", path):
        task = parse_task(text)
        return text if task.real_time or task.comm.startswith(("irq/", "ksoftirqd/", "ktimers/")) else None
    return text


def record(link: Link, board: str) -> dict[str, Any]:
    """The case: what the board answered, and the profile that gives."""
    inputs = gather(link)
    files = {path: kept for path, text in inputs.files.items() if (kept := _kept(path, text)) is not None}
    files |= {
        path: text
        for path, text in {
            "/proc/sys/kernel/hostname": "board\n",
            "/proc/sys/kernel/random/boot_id": "00000000-0000-0000-0000-000000000000\n",
            "/etc/machine-id": f"{'0' * 31}1\n",
        }.items()
        if path in files
    }
    return {
        "board": board,
        "source": "recorded whole",
        "files": files,
        "commands": dict(inputs.outputs),
        "expected": collect(FakeLink(files, inputs.outputs)),
    }


if __name__ == "__main__":
    with open_board(sys.argv[1]).boot(AS_BOOTED) as found:
        json.dump(record(found.link, sys.argv[2]), sys.stdout, indent=1, sort_keys=True)
    print()
