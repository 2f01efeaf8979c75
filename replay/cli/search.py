"""`search`: the messages that hold some words, across sessions."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli.completion import complete_session
from replay.cli.options import Run

if TYPE_CHECKING:
    from rich.text import Text

    from eventstore.ports import Order
    from projections.search import SearchResult
    from replay.cli.output import Output
    from sessions.store import Store

OPEN, CLOSE = "\x02", "\x03"
"""What stands around the words that were found until they are given a style."""


async def search(
    run: Run,
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="Words, all of them meant; '\"some words\"' is a phrase.")
    ],
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="SESSION",
            help="Only in this session: an id, or its beginning, or @.",
            autocompletion=complete_session,
        ),
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Only messages of this role, as user.")
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--number", metavar="N", min=1, help="Show so many at most.", show_default=True)
    ] = 20,
    newest: Annotated[bool, typer.Option("--newest", help="The newest first, however well they match.")] = False,
) -> None:
    """Find messages by their words, the best match first."""
    from replay.cli.failures import USAGE, Failure
    from replay.cli.opening import find_session, reading

    if not " ".join(query).strip():
        raise Failure("a QUERY needs a word at least", f"`{run.hint('search', '--help')}` says more", exit_code=USAGE)
    async with reading(run) as store:
        session_id = None if session is None else await find_session(run, store, session)
        found = await find(
            store,
            " ".join(query),
            session_id=session_id,
            role=role,
            limit=number,
            order="newest" if newest else "relevance",
            marked=run.out.for_people,
        )
        await print_results(store, run.out, found)
    if not found and run.out.for_people:
        run.out.notice("nothing found")


async def find(
    store: Store,
    query: str,
    *,
    session_id: str | None = None,
    role: str | None = None,
    limit: int = 20,
    order: Order = "relevance",
    marked: bool,
) -> list[SearchResult]:
    """The best or newest matches; in `marked` ones' snippets the words that were found stand between two characters."""
    from eventstore.rows import find_stream
    from projections.search import search as search_index

    stream_no = None
    if session_id is not None:
        stream_no, _ = await store.log.read(partial(find_stream, stream_id=session_id))
    asked = limit
    while True:
        hits = await store.log.read(
            partial(
                search_index,
                text=query,
                stream_no=stream_no,
                limit=asked,
                order=order,
                highlight=(OPEN, CLOSE) if marked else ("", ""),
            )
        )
        found = [hit for hit in hits if role in (None, hit.role)]
        if len(found) >= limit or len(hits) < asked:
            return found[:limit]
        # The index knows no roles: look further down.
        asked *= 4


async def print_results(store: Store, out: Output, results: list[SearchResult]) -> None:
    """Print search results, with the words that were found standing out."""
    from projections.overview import session_ids
    from replay.cli.output import Column
    from replay.cli.text import ShortIds, age, one_line

    short = ShortIds(await store.log.read(session_ids) if out.for_people else [])
    now = dt.datetime.now(dt.UTC)
    columns = [
        Column(title="SESSION", cell=lambda hit: short(hit.session_id), style="yellow"),
        Column(title="ROLE", cell=lambda hit: one_line(hit.role)),
        Column(title="AGE", cell=lambda hit: age(hit.created_at, now)),
        Column(title="SNIPPET", cell=lambda hit: _marked(hit.snippet), free=True, wraps=True),
    ]
    with out.listing(columns) as add:
        for hit in results:
            record = {
                "session_id": hit.session_id,
                "id": hit.id,
                "role": hit.role,
                "created_at": hit.created_at,
                "snippet": hit.snippet,
            }
            add(hit if out.for_people else record)


def _marked(snippet: str) -> Text:
    from rich.text import Text

    from replay.cli.text import label

    text = Text()
    for number, piece in enumerate(" ".join(snippet.split()).split(OPEN)):
        found, _, after = piece.partition(CLOSE) if number else ("", "", piece)
        text.append(label(found), style="bold red").append(label(after))
    return text
