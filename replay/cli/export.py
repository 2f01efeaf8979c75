"""`export`: a session as text for elsewhere."""

from __future__ import annotations

import contextlib
import enum
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Final

import typer

from replay.cli.options import Run, SessionArgument

STDOUT: Final = "-"


class ExportFormat(enum.StrEnum):
    """What a session can be exported as."""

    MD = "md"
    HTML = "html"
    JSON = "json"
    NDJSON = "ndjson"
    AI_SDK = "ai-sdk"
    OPENAI = "openai"


async def export(
    run: Run,
    session: SessionArgument,
    *,
    format: Annotated[  # noqa: A002 - the name of the option
        ExportFormat, typer.Option("--format", help="What to write: for people, for programs, for a model.")
    ] = ExportFormat.MD,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="LEAF", help="Only the branch up to this message."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file, once all is there.")
    ] = None,
) -> None:
    """Print a session in a format for elsewhere.

    It is the whole tree where the format can hold one, else the current branch.
    """
    from replay.cli.naming import find_message
    from replay.cli.opening import find_session, reading
    from sessions.exporters import export_session

    async with reading(run) as store:
        session_id = await find_session(run, store, session)
        leaf_id = None if branch is None else await find_message(run, store, session_id, branch)
        pieces = export_session(store, session_id, format=format.value, leaf_id=leaf_id)
        if output is None or output == STDOUT:
            await _write(run, pieces, run.out.write, shown=sys.stdout.isatty())
            return
        with written_whole(Path(output)) as write:
            await _write(run, pieces, write, shown=False)


async def _write(run: Run, pieces: AsyncGenerator[str, None], write: Callable[[str], object], *, shown: bool) -> None:
    from replay.cli.progress import progress

    async with aclosing(pieces):
        if shown:
            # A bar would stand in the midst of what is printed.
            async for piece in pieces:
                write(piece)
            return
        async with progress(run.out, "exporting", "characters") as tell:
            done = 0
            async for piece in pieces:
                write(piece)
                done += len(piece)
                tell(done)


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Callable[[str], object]]:
    """A function that writes text to a file, which gets its name when all is written, and is not left behind else."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        # A device or a pipe must not be replaced; a folder is refused by the system.
        with target.open("w", encoding="utf-8", newline="") as file:
            yield file.write
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            opened = part.open("x", encoding="utf-8", newline="")
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(path)) from error
        with opened as file:
            yield file.write
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
