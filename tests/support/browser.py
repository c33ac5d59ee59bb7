# SPDX-License-Identifier: GPL-2.0-or-later
"""A page opened in Chromium, as wide and as dark as is wanted, and what a script finds in it."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.tools import ROOT, require

AXE = ROOT / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_FRAME = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 0 }} iframe {{ border: 0 }}</style>
<iframe id="frame" src="opened.html" width="{width}" height="{height}"></iframe><script>
addEventListener("message", said => {{ document.title = said.data }})</script>"""
_ASK = """<script>{library}</script><script>
addEventListener("load", async () => parent.postMessage(JSON.stringify(await (async () => {{ {script} }})()), "*"))
</script>"""


def _chromium(folder: Path, *options: str) -> str:
    require("chromium")
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--disable-dev-shm-usage",
        "--virtual-time-budget=20000",
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


def found_in(
    page: Path,
    folder: Path,
    script: str,
    *,
    width: int = 1280,
    height: int = 900,
    dark: bool = False,
    library: str = "",
) -> Any:
    """What ``script``, the body of an asynchronous function, returns in this page at this size; JSON holds it."""
    asking = _ASK.format(library=library, script=script)
    (folder / "opened.html").write_text(_POLICY.sub("", page.read_text()).replace("</head>", f"{asking}</head>", 1))
    (folder / "frame.html").write_text(_FRAME.format(width=width, height=height))
    scheme = [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    dom = _chromium(
        folder, *scheme, f"--window-size={width + 20},{height + 20}", "--dump-dom", f"file://{folder}/frame.html"
    )
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert title is not None, dom[:2000]
    return json.loads(html.unescape(title[1]))


def faults_of(page: Path, folder: Path, *, width: int, dark: bool) -> list[str]:
    """What axe-core finds wrong in this page."""
    if not AXE.exists():
        pytest.fail("axe-core is not there, though setup/npm has it; run: setup/install test")
    found = found_in(
        page,
        folder,
        "return (await axe.run(document, {resultTypes: ['violations']})).violations",
        width=width,
        height=2000,
        dark=dark,
        library=AXE.read_text(),
    )
    return [f"{fault['id']}: {fault['help']}: {node['html'][:200]}" for fault in found for node in fault["nodes"]]


def printed(page: Path, folder: Path) -> list[str]:
    """The text of each page on paper."""
    require("pdftotext")
    pdf = folder / "printed.pdf"
    _chromium(folder, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", f"file://{page}")
    text = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True).stdout
    return text.removesuffix("\f").split("\f")
