# SPDX-License-Identifier: GPL-2.0-or-later
"""How our one file comes to a board: a talk with the shell there, over the stream that the agent then has.

The shell says what the board is; it gets the file for it, puts it where it can be started, and becomes the agent.
A directory of a random name, made for us alone, holds the file until the agent removes both.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from fastenough.model import FastenoughError, NotApplicable

_OPENING_S = 40.0
_BYTES_PER_S = 20_000
"""How slow the copying may be."""
_NOISE_MOST = 1 << 18
"""What login scripts may say before the shell gets to ours."""
_WORDS_MOST = 200

_SCRIPT = (
    'umask 077; k=KEY; say() { echo "$k $*"; }; gone() { rm -f "$f"; rmdir "$d"; } 2>/dev/null; '
    'say board "$(uname -m)"; read -r n || exit 1; '
    'for p in /tmp /var/tmp /dev/shm "$XDG_RUNTIME_DIR" /run "$HOME"; do d=$p/NAME; f=$d/fastenough-probe; '
    '[ -d "$p" ] && mkdir "$d" 2>/dev/null || continue; trap gone 0; trap "exit 1" 1 2 13 15; say copy; '
    'head -c "$n" | { cat >"$f" || cat >/dev/null; } 2>/dev/null; chmod 700 "$f"; r="no room"; '
    'if [ "$(wc -c <"$f")" -eq "$n" ]; then r=$("$f" agent check 2>&1); case $r in fastenough-agent*) say ready; '
    'trap - 0 1 2 13 15; exec "$f" agent stdio "$d";; esac; fi; gone; say refused "$p: $r"; done; say nowhere'
)
"""On one line and without single quotes or exclamation marks: a login shell of any kind passes it on as one word."""


class Opening:
    """``command`` is what the board's shell is given; then ``done`` has the talk."""

    def __init__(self, file_for: Callable[[str], bytes]) -> None:
        self._file_for = file_for
        self._key = f"fastenough-key-{secrets.token_hex(8)}"
        name = f"fastenough-{secrets.token_hex(6)}"
        self.command = f"exec sh -c '{_SCRIPT.replace('KEY', self._key).replace('NAME', name)}'"

    def done(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether the agent is there now; False when the transport ended before, or said nothing in time.

        Raises NotApplicable where there is no file for the board, or no place for the file.
        """
        assert process.stdin is not None
        refused: list[str] = []
        content = b""
        with _limited(process, _OPENING_S), suppress(BrokenPipeError):
            for word, rest in self._said(process):
                if word == "board":
                    content = self._file_for(rest)
                    process.stdin.write(f"{len(content)}\n".encode())
                elif word == "copy":
                    with _limited(process, len(content) / _BYTES_PER_S):
                        _write_whole(process, content)
                elif word == "refused":
                    refused.append(rest)
                elif word == "nowhere":
                    raise NotApplicable("the board has no place from which our file can be started: "
                                        f"{'; '.join(refused) or 'no directory can be made'}")
                elif word == "ready":
                    return True
        return False

    def _said(self, process: subprocess.Popen[bytes]) -> Iterator[tuple[str, str]]:
        """The lines that are the script's, each as its first word and the rest, without control characters."""
        assert process.stdout is not None
        pending, noise = b"", 0
        while noise < _NOISE_MOST and (chunk := os.read(process.stdout.fileno(), 1)):
            pending += chunk
            noise += 1
            if chunk != b"\n":
                continue
            line = "".join(c if c.isprintable() else " " for c in pending.decode(errors="replace").rstrip("\n"))
            pending = b""
            key, _, said = line.partition(" ")
            if key == self._key:
                word, _, rest = said.partition(" ")
                yield word, rest[:_WORDS_MOST]


@contextmanager
def _limited(process: subprocess.Popen[bytes], limit_s: float) -> Iterator[None]:
    """Whoever reads from the process or writes to it is not kept longer than that: it is killed then."""
    timer = threading.Timer(limit_s, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _write_whole(process: subprocess.Popen[bytes], content: bytes) -> None:
    assert process.stdin is not None
    left = memoryview(content)
    while left:
        written = process.stdin.write(left)
        if not written:
            raise FastenoughError("the board takes nothing of the file that it needs")
        left = left[written:]
