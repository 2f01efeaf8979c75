"""Progress of work that takes longer than a second, shown on a terminal and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from replay.cli.text import one_line

if TYPE_CHECKING:
    from replay.cli.output import Output

SECONDS: Final = 1.0
WHAT: Final = 30
"""The characters that are shown of what is at hand."""


class Report(Protocol):
    """Takes how much is done, how much there is (None: nobody knows), and what is at hand; from any thread."""

    def __call__(self, done: int, total: int | None = None, what: str = "") -> None:
        """Note how far the work is."""


@contextlib.asynccontextmanager
async def progress(out: Output, title: str, unit: str | None = None) -> AsyncIterator[Report]:
    """Show the progress of the work in this context once it has taken a second; without a unit its time alone."""
    if not out.notices.is_terminal:
        yield _ignore
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        *([] if unit is None else [TextColumn(f"{{task.completed:,.0f}} {unit}")]),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", style="dim", markup=False),
        console=out.notices,
        transient=True,
    )
    task = bar.add_task(title, total=None, rate="", what="")

    def report(done: int, total: int | None = None, what: str = "") -> None:
        elapsed = bar.tasks[0].elapsed or 0.0
        rate = f"{done / elapsed:,.0f}/s" if elapsed >= SECONDS else ""
        bar.update(task, completed=done, total=total, rate=rate, what=one_line(what)[:WHAT])

    async def start() -> None:
        await asyncio.sleep(SECONDS)
        bar.start()

    starting = asyncio.create_task(start())
    try:
        yield report
    finally:
        starting.cancel()
        bar.stop()


class _StoppedError(Exception):
    """Nobody waits for the work any more."""


@contextlib.contextmanager
def stopping(tell: Report) -> Iterator[Report]:
    """Progress of work in a thread, which an interruption does not reach by itself: its next report stops it."""
    stopped = False

    def report(done: int, total: int | None = None, what: str = "") -> None:
        if stopped:
            raise _StoppedError
        tell(done, total, what)

    try:
        yield report
    except asyncio.CancelledError:
        stopped = True
        raise


def _ignore(done: int, total: int | None = None, what: str = "") -> None:
    """Takes progress that nobody sees."""
