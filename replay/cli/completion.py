"""What a shell offers where a session is to be named: the ids in the store that the line so far is about."""

from __future__ import annotations

import typer

OFFERED = 100
"""How many ids are offered at most."""


def complete_session(context: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin so, the one used last before all others as `@`; none when the store cannot be read."""
    import asyncio
    import contextlib
    import io
    import os

    from replay.cli.program import URL_VARIABLE

    given = context.params.get("store") or context.find_root().params.get("store")
    url = str(given) if given else os.environ.get(URL_VARIABLE) or None
    # Whatever happens here would be printed in the midst of the line that a person types.
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        return asyncio.run(_ids(url, incomplete))
    return []


async def _ids(url: str | None, incomplete: str) -> list[str]:
    from projections.overview import session_ids
    from replay.cli.lastused import LastUsed
    from replay.cli.location import location_of
    from sessions.store import open_store

    location = location_of(url)
    if not location.path.is_file():
        return []
    last = ["@"] if "@".startswith(incomplete) and LastUsed(location.path).read() is not None else []
    async with open_store(location.url, create_tables=False) as store:
        ids = await store.log.read(session_ids)
    # What a shell would take apart, or a terminal for a command, has to be typed.
    fit = (one for one in ids if one.startswith(incomplete) and one.isprintable() and " " not in one)
    return last + sorted(fit)[:OFFERED]
