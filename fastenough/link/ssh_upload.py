# SPDX-License-Identifier: GPL-2.0-or-later
"""Upload of the agent: a dialogue with the board's shell, over the stream that the agent then uses.

The shell reports the machine type, receives the file for it, puts it where it can be started, and becomes the agent.
A directory with a random name, accessible to the user only, holds the file until the agent removes both.  If the same
file is installed on the board, by its hash, that one is copied there and nothing is sent.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from fastenough.model import NotApplicable
from fastenough.words import output_lines

_OPENING_S = 40.0
"""Time limit for each answer of the board."""
_TALK_S = 300.0
"""Time limit for the whole dialogue."""
_BYTES_PER_S = 20_000
"""Minimum rate of the upload."""
_COPIES_MOST = 6
"""Number of directories that the script tries."""
_NOISE_MOST = 1 << 18
"""Upper limit for the output [bytes] of login scripts."""

_SCRIPT = (
    'export LC_ALL=C; umask 077; k=KEY; say() { echo "$k $*"; }; gone() { rm -f "$f"; rmdir "$d"; } 2>/dev/null; '
    'say board "$(uname -m)"; read -r n h || exit 1; '
    'i=$(command -v fastenough-probe) && s=$(sha256sum "$i" 2>/dev/null) && [ "${s%% *}" = "$h" ] || i=; '
    'for p in /tmp /var/tmp /dev/shm "$XDG_RUNTIME_DIR" /run "$HOME"; do d=$p/NAME; f=$d/fastenough-probe; '
    '[ -d "$p" ] && mkdir "$d" 2>/dev/null || continue; trap gone 0; trap "exit 1" 1 2 13 15; '
    'if [ "$i" ]; then cat "$i" >"$f"; else say copy; head -c "$n" | { cat >"$f" || cat >/dev/null; }; fi 2>/dev/null; '
    'chmod 700 "$f"; r="no room"; '
    'if [ "$(wc -c <"$f")" -eq "$n" ]; then r=$("$f" agent check 2>&1); case $r in fastenough-agent*) say ready; '
    'trap - 0 1 2 13 15; exec "$f" agent stdio "$d";; esac; fi; gone; say refused "$p: $r"; done; say nowhere'
)
"""One line without single quotes and exclamation marks, which any login shell passes on as one word."""


class AgentUpload:
    """Upload by a command for the board's shell.

    ``command``: the shell's command; ``done()`` then runs the dialogue; ``late``: what exceeded its time limit.
    """

    def __init__(self, file_for: Callable[[str], bytes]) -> None:
        self._file_for = file_for
        self._noise = 0
        self.late = ""
        self._key = f"fastenough-key-{secrets.token_hex(8)}"
        name = f"fastenough-{secrets.token_hex(6)}"
        self.command = f"exec sh -c '{_SCRIPT.replace('KEY', self._key).replace('NAME', name)}'"

    def done(self, process: subprocess.Popen[bytes]) -> bool:
        """Run the dialogue; return whether the agent runs, False if the transport ended or was too slow (``late``).

        Raises NotApplicable if there is no probe for the board, or no directory for the probe.
        """
        refused: list[str] = []
        content, copies = b"", 0
        with suppress(BrokenPipeError), self._time_limit(process, _TALK_S):
            while (line := self._next(process)) is not None:
                keyword, rest = line
                if keyword == "board" and not content:
                    content = self._file_for(rest)
                    self._write(process, f"{len(content)} {hashlib.sha256(content).hexdigest()}\n".encode())
                elif keyword == "copy" and copies < _COPIES_MOST:
                    self._write(process, content)
                    copies += 1
                elif keyword == "refused":
                    refused.append(rest)
                elif keyword == "nowhere":
                    raise NotApplicable(
                        "the board has no directory from which the probe can be started: "
                        f"{'; '.join(refused) or 'no directory could be created'}"
                    )
                elif keyword == "ready":
                    return True
        return False

    def _next(self, process: subprocess.Popen[bytes]) -> tuple[str, str] | None:
        """Return the script's next line as first word and rest, without control characters; None at the end."""
        assert process.stdout is not None
        pending = b""
        with self._time_limit(process, _OPENING_S):
            while self._noise < _NOISE_MOST and (byte := os.read(process.stdout.fileno(), 1)):
                self._noise += 1
                pending += byte
                if byte != b"\n":
                    continue
                lines, pending = output_lines(pending), b""
                parts = next((line.split(" ", 2) for line in lines if line.startswith(f"{self._key} ")), None)
                if parts is not None:
                    return parts[1], " ".join(parts[2:])
        return None

    def _write(self, process: subprocess.Popen[bytes], content: bytes) -> None:
        assert process.stdin is not None
        left = memoryview(content)
        with self._time_limit(process, _OPENING_S + len(content) / _BYTES_PER_S):
            while left:
                left = left[process.stdin.write(left) or 0 :]

    @contextmanager
    def _time_limit(self, process: subprocess.Popen[bytes], limit_s: float) -> Iterator[None]:
        """Context that kills the process after a time limit, which ends blocked reads and writes."""

        def end() -> None:
            self.late = f"it has not answered within {limit_s:g} s"
            process.kill()

        timer = threading.Timer(limit_s, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
