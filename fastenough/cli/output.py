# SPDX-License-Identifier: GPL-2.0-or-later
"""Printing: JSON for programs, text and tables for people; foreign text never controls the terminal.

Recordings, plans and host names come from anywhere.  ``clean`` makes their control characters visible; ``tame`` puts it
between the program and its standard streams, so that no command can forget it."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shutil
import sys
import textwrap
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from fastenough import words
from fastenough.files import Untrusted, refusal_text, replace_whole, replacing
from fastenough.model import BadInput

if TYPE_CHECKING:
    from rich.console import Console


JSON_VERSION = 2
"""Version of the JSON documents (docs/json.md): increased when a key is renamed, removed or changes its meaning."""
MOST_TEXT_WIDTH = 120
"""Columns of text on a wider terminal."""
_FILE_TEXT_WIDTH = 80
"""Columns of text in a file or pipe, unless COLUMNS is set."""
_FILE_WIDTH = 200
"""Columns of a table of figures in a file or pipe, unless COLUMNS is set: no cell is folded."""
_MOST_DRAWN = 200
"""A longer table is plain lines on a terminal too: drawing one of 10,000 rows takes a quarter of a minute."""
_FOLDED = 12
"""Words in a column at least so wide can be read when they are folded; a figure on two lines cannot."""
_HELD = "\u00a0"
"""A blank at which no line is folded."""
_GAP = 2
"""Blanks between two columns."""
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0, DEL and C1, what reorders or breaks lines, and what is no character at all."""
_PLAIN = {
    "µ": "u",
    "μ": "u",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
    "×": "x",
    "…": "...",
    "·": "-",
    "⁻": "-",
    "’": "'",
    "“": '"',
    "”": '"',
}
"""How our own characters are written where the terminal's encoding lacks them."""
_ERRORS = "fastenough-plain"


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def clean(text: object) -> str:
    """Foreign text on one line: control characters are shown as ``\\x1b`` and the like, and do nothing."""
    line = str(text)
    return line if line.isprintable() else _CONTROLS.sub(_visible, line)


def clean_lines(text: object) -> str:
    """The same for text that may have several lines."""
    return "\n".join(map(clean, str(text).split("\n")))


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end


class _Tamed(io.TextIOWrapper):
    """A standard stream that writes no control character but the end of a line, and never fails to encode.

    ``spelled``: writes the program's name in a hint as the user calls it.
    """

    spelled: Callable[[str], str]

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError("text is written here, not bytes")
        super().write(self.spelled(clean_lines(text)))
        return len(text)


class _Raw(io.TextIOBase):
    """The same stream for rich, which drives the terminal itself and is given clean text only."""

    def __init__(self, stream: _Tamed) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def write(self, text: str, /) -> int:
        return io.TextIOWrapper.write(self._stream, self._stream.spelled(text))

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


def _safe_stream(stream: TextIO | None, descriptor: int, spelled: Callable[[str], str]) -> TextIO:
    """``stream`` is None if the caller has closed the descriptor; its output is then discarded."""
    if stream is None:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
        stream = os.fdopen(descriptor, "w")
    if isinstance(stream, _Tamed) or not isinstance(stream, io.TextIOWrapper):
        return stream
    encoding, lines = stream.encoding, stream.line_buffering
    tamed = _Tamed(stream.detach(), encoding, _ERRORS, line_buffering=lines)
    tamed.spelled = spelled
    return tamed


def tame(spelled: Callable[[str], str] = str) -> None:
    """From here on whatever is printed is clean, and can be encoded, whatever the locale; ``spelled``: see `_Tamed`."""
    codecs.register_error(_ERRORS, _plainly)
    sys.stdout, sys.stderr = _safe_stream(sys.stdout, 1, spelled), _safe_stream(sys.stderr, 2, spelled)


def console(stream: TextIO, file_width: int = _FILE_WIDTH) -> Console:
    """rich on a standard stream; only clean text may be given to it."""
    from rich.console import Console  # noqa: PLC0415 - takes 0.1 s, and most of what is printed does without

    width = None if stream.isatty() else _file_width(file_width)
    raw: Any = _Raw(stream) if isinstance(stream, _Tamed) else stream
    return Console(file=raw, highlight=False, markup=False, emoji=False, width=width)


def _file_width(otherwise: int) -> int:
    """Columns of what is printed into a file or pipe."""
    return shutil.get_terminal_size((otherwise, 25)).columns


def print_json(document: Any) -> None:
    """Print one JSON document; dataclasses become objects.  An object gets the version of its format."""
    if is_dataclass(document) and not isinstance(document, type):
        document = asdict(document)
    if isinstance(document, dict):
        document = {"version": JSON_VERSION} | document
    print(json.dumps(document, indent=2, default=_plain))


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new file, there when the block ends without an exception; raises BadInput if it exists or cannot be written."""
    if path.is_symlink() or path.exists():
        raise BadInput(f"{path} exists; name a new file")
    try:
        with replacing(path, new=True) as target:
            yield target
    except FileExistsError as error:
        raise BadInput(f"{path} exists; name a new file") from error
    except Untrusted as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{error.filename or path}: {error.strerror}; name a new file in a writable folder") from error


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, in the place of a former one; raises BadInput if it cannot be written."""
    try:
        replace_whole(path, content)
    except (OSError, Untrusted) as error:
        reason = refusal_text(error, "name a file in a writable folder")
        raise BadInput(f"{path}: cannot be written: {reason}") from error


def write_raw(content: bytes) -> None:
    """What another program reads, as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _plain(thing: Any) -> Any:
    return asdict(thing) if is_dataclass(thing) and not isinstance(thing, type) else str(thing)


def _widest(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)] or [0] * len(columns)


def _fits(columns: Sequence[str], widest: Sequence[int], texts: int, width: int) -> bool:
    """Whether every heading and figure stays on one line, and words keep room to be folded in."""
    needed = [
        max(len(column), min(size, _FOLDED) if position < texts else size)
        for position, (column, size) in enumerate(zip(columns, widest, strict=True))
    ]
    return sum(needed) + _GAP * (len(columns) - 1) <= width


def table_width(file_width: int = _FILE_WIDTH) -> int:
    """Columns that a table on standard output may take."""
    return console(sys.stdout).width if sys.stdout.isatty() else _file_width(file_width)


def text_width() -> int:
    """Columns of folded text: those of the terminal, at most 120; 80 in a file or pipe."""
    return min(table_width(_FILE_TEXT_WIDTH), MOST_TEXT_WIDTH)


def leave_out(
    columns: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str], width: int
) -> tuple[list[str], list[list[str]]]:
    """The table without as many of its ``spare`` columns, taken in order, as make it wider than ``width``."""
    sizes = {name: max([len(name), *(len(row[position]) for row in rows)]) for position, name in enumerate(columns)}
    left = list(columns)
    for name in spare:
        if sum(sizes[column] for column in left) + _GAP * (len(left) - 1) <= width:
            break
        left.remove(name)
    places = [list(columns).index(name) for name in left]
    return left, [[row[position] for position in places] for row in rows]


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    texts: int = 1,
    *,
    file_width: int = _FILE_WIDTH,
    spare: Sequence[str] = (),
) -> None:
    """A table; the first ``texts`` columns are words (left-aligned), the rest figures (right-aligned).

    Where that is too wide, it does without ``spare`` columns; where even that does not leave its figures room, each row
    is a block of lines, with the columns' names before the cells.
    """
    names = [clean(column) for column in columns]
    cells = [[cell if cell.isprintable() else clean_lines(cell) for cell in row] for row in rows]
    sys.stdout.flush()
    plainly = not sys.stdout.isatty() or len(cells) > _MOST_DRAWN
    width = _file_width(sys.maxsize) if plainly and sys.stdout.isatty() else table_width(file_width)
    fewer, shorter = leave_out(names, cells, spare, width)
    words_left = sum(name in fewer for name in names[:texts])
    if _fits(fewer, _widest(fewer, shorter), words_left, width):
        names, cells, texts = fewer, shorter, words_left
    widest = _widest(names, cells)
    if plainly:
        sizes = [max(len(name), size) for name, size in zip(names, widest, strict=True)]
        if sum(sizes) + _GAP * (len(sizes) - 1) <= width and "\n" not in "".join(chain.from_iterable(cells)):
            _print_aligned(title, [names, *cells], sizes, texts)
            return
    _print_with_rich(title, names, cells, texts=texts, widest=widest, printer=console(sys.stdout, file_width))


def _print_aligned(title: str, rows: Iterable[Sequence[str]], sizes: Sequence[int], texts: int) -> None:
    """Lines of plain text: nothing is folded or cut, and thousands of them take no time."""
    if title:
        print(clean_lines(title))
    line = "  ".join(f"%{'-' if position < texts else ''}{size}s" for position, size in enumerate(sizes))
    print("\n".join((line % tuple(row)).rstrip() for row in rows))


def _print_with_rich(
    title: str,
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    texts: int,
    widest: Sequence[int],
    printer: Console,
) -> None:
    from rich.table import Table  # noqa: PLC0415 - see console
    from rich.text import Text  # noqa: PLC0415

    if not _fits(columns, widest, texts, printer.width):
        blocks = ["\n".join(f"{column}: {cell}" for column, cell in zip(columns, row, strict=True)) for row in cells]
        printer.print(Text("\n\n".join([*([clean_lines(title)] if title else []), *blocks])), overflow="fold")
        return
    if title:
        printer.print(Text(clean_lines(title)))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if position < texts else "right", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    printer.print(table)


def say(text: str, indent: str = "") -> None:
    """Foreign text on a line of its own, which a terminal gets folded between words, units with their numbers."""
    if not sys.stdout.isatty():
        print(f"{indent}{clean(text)}")
        return
    held = re.sub(words.WITH_UNIT, lambda quantity: quantity[0].replace(" ", _HELD), clean(text))
    print(
        textwrap.fill(
            held, text_width(), initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
        ).replace(_HELD, " ")
    )


def say_list(title: str, lines: Sequence[str]) -> None:
    """Foreign texts under a title, one by one; nothing without any."""
    if lines:
        print(f"{title}:")
    for line in lines:
        say(f"- {line}", "  ")


def print_marked(mark: str, style: str, text: str) -> None:
    """Clean text behind a mark that has a colour where the terminal has some."""
    if not sys.stdout.isatty():
        print(f"{mark}{text}")
        return
    from rich.text import Text  # noqa: PLC0415 - see console

    console(sys.stdout).print(Text(mark, style=style).append(text, style="not bold default"), soft_wrap=True)


def wall_text(wall_ns: int | None) -> str:
    """A wall-clock instant in UTC, to the second."""
    return "–" if wall_ns is None else f"{datetime.fromtimestamp(wall_ns / 1e9, UTC):%Y-%m-%d %H:%M:%SZ}"


micros = words.nearest_microseconds
"""For columns that name the unit."""


def readable(value_ns: float | None) -> str:
    """A time in the unit that people would say it in, three digits, rounded up; a dash where there is none."""
    if value_ns is None:
        return "–"
    return words.duration(words.round_up(value_ns, 3) if value_ns > 1 else value_ns)


_MOST_WAITING = 4 << 20
"""Characters that may wait for the reader: about 10,000 lines."""
_PATIENCE_S = 10.0
"""Time for the reader to take the rest at the end."""


class DroppingStream(io.TextIOBase):
    """Accepts text at once and writes it from a thread of its own.

    If too much text waits, more text is dropped; ``notice`` returns the text that replaces so many lines.  The next
    call raises what the writing raised (BrokenPipeError: the reader has gone).
    """

    def __init__(self, stream: TextIO, notice: Callable[[int], str]) -> None:
        self._stream = stream
        self._notice = notice
        self._changed = threading.Condition()
        self._texts: deque[str] = deque()
        self._waiting = 0
        self._dropped = 0
        self._fault: OSError | None = None
        stream.flush()
        self._descriptor = stream.fileno()
        threading.Thread(target=self._write_all, name="output", daemon=True).start()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str, /) -> int:
        with self._changed:
            if self._fault is not None:
                raise self._fault
            if self._waiting >= _MOST_WAITING:
                self._dropped += text.count("\n")
                return len(text)
            self._texts.append(self._notice(self._dropped) + text if self._dropped else text)
            self._dropped = 0
            self._waiting += len(self._texts[-1])
            self._changed.notify_all()
        return len(text)

    def _write_all(self) -> None:
        """Write to the descriptor: the lock of the stream would be held while the reader is stopped."""
        encoding, errors = self._stream.encoding, self._stream.errors or "strict"
        while self._fault is None:
            with self._changed:
                self._changed.wait_for(lambda: self._texts)
                text = self._texts[0]
            fault = _write_descriptor(self._descriptor, text.encode(encoding, errors))
            with self._changed:
                self._fault = fault
                self._waiting -= len(self._texts.popleft())
                self._changed.notify_all()

    def drain(self) -> int:
        """Wait for the reader, for a limited time; returns the number of lines that it did not take."""
        with self._changed:
            self._changed.wait_for(lambda: self._fault is not None or not self._texts, _PATIENCE_S)
            if self._fault is not None:
                raise self._fault
            return self._dropped + sum(text.count("\n") for text in self._texts)


def _write_descriptor(descriptor: int, content: bytes) -> OSError | None:
    """Write all of the content, without a time limit; returns the error, if any."""
    left = memoryview(content)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        return error
    return None


@contextmanager
def never_waiting(stream: TextIO, notice: Callable[[int], str]) -> Iterator[TextIO]:
    """A replacement of the stream that never waits; at the end the number of dropped lines goes to standard error.

    A stream without a file descriptor never waits, and is used as it is.
    """
    try:
        stream.fileno()
    except OSError:
        yield stream
        return
    stream_of_lines = DroppingStream(stream, notice)
    try:
        yield stream_of_lines  # type: ignore[misc]
    finally:
        dropped = stream_of_lines.drain()
        if dropped:
            print(
                f"fastenough: {dropped} lines dropped: standard output was not read in time; the recording is complete",
                file=sys.stderr,
            )
