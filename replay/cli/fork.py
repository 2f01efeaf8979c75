"""`fork`: a new session out of a session's path to a message."""

from __future__ import annotations

from typing import Annotated

import typer

from replay.cli.options import Run, SessionArgument


async def fork(
    run: Run,
    session: SessionArgument,
    *,
    at: Annotated[str, typer.Option("--at", metavar="MESSAGE", help="The last message that the new session has.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The new session's name.  [default: the same name]")
    ] = None,
) -> None:
    """Begin a new session as a copy of the path to a message.

    Nothing is changed in the session that it comes from.
    """
    from projections.overview import session_ids
    from replay.cli.lastused import LastUsed
    from replay.cli.naming import find_place
    from replay.cli.opening import find_session, locate, reading
    from replay.cli.overview import overview_of, print_overviews
    from sessions.manager import SessionManager

    async with reading(run, refill=True) as store:
        session_id = await find_session(run, store, session)
        message_id = await find_place(run, store, session_id, at)
        new_name = (await overview_of(store, session_id)).name if name is None else name
        begun = await SessionManager(store).fork(session_id, message_id, new_name)
        # What follows is most likely about the new one.
        LastUsed(locate(run).path).write(begun.id)
        found = await overview_of(store, begun.id)
        ids = await store.log.read(session_ids)
    if run.out.for_people:
        print_overviews(run.out, [found], ids)
    else:
        run.out.value(found)
