"""What a command prints: tables for people, JSON for programs, notices beside both on stderr."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from replay.cli.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Format = Literal["json", "ndjson", "table"]

GAP = 2
NARROWEST = 12
"""The fewest characters that the column of free width is given, however narrow the terminal."""
BATCH = 500
"""How many rows of a long table are laid out at a time, so that it can be read while it is made."""
PATCH_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table: its title, and what stands in it for a record.

    `free` is the one column that takes the width left over; its texts are cut, or wrapped with `wraps`. On a narrow
    terminal columns are left out: `spare` ones first, and of those and the others the last first. `least` is the width
    that it has at the least, for a table that grows.
    """

    title: str
    cell: Callable[[Any], str | Text]
    right: bool = False
    least: int = 0
    free: bool = False
    spare: bool = False
    wraps: bool = False
    style: str = ""


class Output:
    """Where a command's data and notices go; `format` None means what suits stdout, a terminal or a pipe."""

    def __init__(self, *, format: Format | None = None, color: bool | None = None) -> None:  # noqa: A002 - the option's name
        self._color = color
        self._colored = not os.environ.get("NO_COLOR") if color is None else color
        self._consoles: dict[str, Console] = {}
        self.chosen = format
        self.format: Format = format or ("table" if sys.stdout.isatty() else "ndjson")
        # A terminal that cannot show a character is no reason to fail; what programs read is UTF-8 whatever the locale.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")

    @property
    def for_people(self) -> bool:
        """Whether a person is to read the data."""
        return self.format == "table"

    @property
    def console(self) -> Console:
        """The console on stdout."""
        return self._console("stdout")

    @property
    def notices(self) -> Console:
        """The console on stderr."""
        return self._console("stderr")

    def notice(self, text: str) -> None:
        """Tell a person something that is no data."""
        self.notices.print(visible(text), soft_wrap=True)

    def print(self, text: str | Text = "") -> None:
        """Print a line for people; one that is too long is left for the terminal to wrap."""
        self.console.print(text, soft_wrap=True)

    def write(self, text: str) -> None:
        """Write text as it is, but for what a terminal would take as a command."""
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)

    def patch(self, lines: Iterable[str]) -> None:
        """Print the lines of a diff for people, each in the style of what it begins with."""
        from rich.text import Text

        for line in lines:
            self.print(Text(visible(line), style=PATCH_STYLES.get(line[:1], "")))

    def flush(self) -> None:
        """Let what was printed be seen at once."""
        sys.stdout.flush()

    def value(self, record: object) -> None:
        """Print one record as JSON, over several lines with --json."""
        encoded = msgspec.json.encode(record)
        self._write_json(msgspec.json.format(encoded, indent=2) if self.format == "json" else encoded)

    @contextlib.contextmanager
    def listing(self, columns: Sequence[Column], *, batch: int | None = None) -> Iterator[Callable[[object], None]]:
        """A list, printed by calling what this gives with one record after the other.

        A table is laid out at the end, or whenever `batch` more records are there; without records it has no head.
        """
        with self._table(columns, batch=batch) if self.for_people else self.records() as add:
            yield add

    @contextlib.contextmanager
    def records(self) -> Iterator[Callable[[object], None]]:
        """A list as JSON, printed likewise: an array with --json, else an object per line."""
        if self.format != "json":
            yield lambda record: self._write_json(msgspec.json.encode(record))
            return
        before = "["

        def add(record: object) -> None:
            nonlocal before
            sys.stdout.write(before + "\n  ")
            self._write_json(msgspec.json.encode(record), end="")
            before = ","

        yield add
        sys.stdout.write("[]\n" if before == "[" else "\n]\n")

    @contextlib.contextmanager
    def _table(self, columns: Sequence[Column], *, batch: int | None) -> Iterator[Callable[[object], None]]:
        rows: list[list[Text]] = []
        widths = [max(len(column.title), column.least) for column in columns]
        head = True

        def lay_out() -> None:
            nonlocal head
            # A column that has become wide stays so, and what follows stands below it.
            widths[:] = [max(width, *(row[at].cell_len for row in rows)) for at, width in enumerate(widths)]
            self._print_rows(columns, rows, widths, head=head)
            rows.clear()
            head = False

        def add(record: object) -> None:
            rows.append([_cell(column, record) for column in columns])
            if batch is not None and len(rows) >= batch:
                lay_out()

        yield add
        if rows:
            lay_out()

    def _print_rows(
        self, columns: Sequence[Column], rows: Sequence[Sequence[Text]], widths: Sequence[int], *, head: bool
    ) -> None:
        from rich.table import Table
        from rich.text import Text

        shown = fitting(columns, widths, self.console.width)
        table = Table(
            box=None,
            show_header=head,
            pad_edge=False,
            padding=(0, GAP, 0, 0),
            header_style="bold",
            width=sum(shown.values()) + GAP * (len(shown) - 1),
        )
        for at, width in shown.items():
            column = columns[at]
            table.add_column(
                column.title,
                width=width,
                no_wrap=not column.wraps,
                overflow="fold" if column.wraps else "ellipsis",
                justify="right" if column.right else "left",
                style=column.style,
            )
        for row in rows:
            table.add_row(*(row[at] for at in shown))
        for line in self.console.render_lines(table, pad=False):
            text = Text.assemble(*((piece.text, piece.style or "") for piece in line))
            text.rstrip()
            self.print(text)

    def _write_json(self, encoded: bytes, end: str = "\n") -> None:
        sys.stdout.write(encoded.decode() + end)

    def _console(self, name: Literal["stdout", "stderr"]) -> Console:
        if name not in self._consoles:
            from rich.console import Console

            class OwnConsole(Console):
                """A console that leaves a closed pipe to `quiet`, instead of failing by itself."""

                def on_broken_pipe(self) -> None:
                    raise BrokenPipeError

            self._consoles[name] = OwnConsole(
                file=getattr(sys, name),
                force_terminal=self._color or None,
                no_color=False,
                # Without a colour system there are no escapes at all, be it bold or dim.
                color_system="auto" if self._colored else None,
                width=_width(),
                highlight=False,
                markup=False,
                emoji=False,
            )
        return self._consoles[name]


def _cell(column: Column, record: object) -> Text:
    from rich.text import Text

    cell = column.cell(record)
    return Text(cell) if isinstance(cell, str) else cell


def _width() -> int | None:
    """The width where COLUMNS gives none that can be used; else None, and the console finds it."""
    given = os.environ.get("COLUMNS", "")
    return shutil.get_terminal_size().columns if given.isdigit() and not int(given) else None


def fitting(columns: Sequence[Column], widths: Sequence[int], room: int) -> dict[int, int]:
    """The columns that are shown in so much room, by their numbers, with the width of each.

    The first column and the free one always are, unless there is no room for anything beside the first.
    """
    least = {at: min(width, NARROWEST) if columns[at].free else width for at, width in enumerate(widths)}
    dispensable = sorted((column.spare, at) for at, column in enumerate(columns) if at and not column.free)
    while sum(least.values()) + GAP * (len(least) - 1) > room and dispensable:
        del least[dispensable.pop()[1]]
    left = room - sum(width for at, width in least.items() if not columns[at].free) - GAP * (len(least) - 1)
    shown = {at: min(widths[at], left) if columns[at].free else width for at, width in least.items()}
    shown = {at: width for at, width in shown.items() if width > 0}
    return shown if len(shown) > 1 else {at: min(width, room) for at, width in shown.items()}
