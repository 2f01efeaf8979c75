"""`show`: the transcript of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli.options import Run, SessionArgument

if TYPE_CHECKING:
    from projections.overview import Overview


async def show(
    run: Run,
    session: SessionArgument,
    *,
    raw: Annotated[bool, typer.Option("--raw", help="Print the messages as they are stored, as JSON.")] = False,
) -> None:
    """Print the current branch of a session, as Markdown."""
    from replay.cli.opening import find_session, reading
    from replay.cli.overview import overview_of
    from sessions.session import Session

    async with reading(run) as store:
        session_id = await find_session(run, store, session)
        messages = Session.create(store).for_session(session_id).history()
        if raw or run.out.chosen in {"json", "ndjson"}:
            with run.out.records() as add:
                async for message in messages:
                    add(message.to_dict())
            return
        from replay.cli.markdown import to_markdown

        run.out.write(_head(await overview_of(store, session_id)))
        async for message in messages:
            run.out.write(f"\n{to_markdown(message)}")


def _head(session: Overview) -> str:
    from replay.cli.text import counted, label, one_line

    branches = f", {counted(session.branches, 'branch', 'branches')}" if session.branches > 1 else ""
    return f"# {one_line(session.name)}\n\n`{label(session.id)}` · {counted(session.messages, 'message')}{branches}\n"
