"""`graph`: the branches of a session, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from eventstore.ports import Tx
    from projections.overview import Place
    from replay.cli.drawing import Line, Tree
    from replay.cli.options import Run
    from replay.cli.output import Output
    from sessions.store import Store

ROLE_STYLES: Final = {"user": "cyan", "assistant": "green", "system": "magenta", "tool": "blue"}
HERE: Final = "← current leaf"
BATCH: Final = 500
"""For how many lines at a time the messages are read."""
NARROWEST: Final = 12


async def graph(
    run: Run,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id, the beginning of one, or @.")],
    full: Annotated[bool, typer.Option("--full", help="Show every message, also of long stretches without a branch.")] = False,  # noqa: FBT002
) -> None:
    """Draw the branches of a session, from the top down."""
    from replay.cli.opening import find_session, reading

    async with reading(run) as store:
        session_id = await find_session(run, store, session)
        if run.out.for_people:
            await draw(store, run.out, session_id, full=full)
        else:
            await _list(store, run.out, session_id)


async def draw(store: Store, out: Output, session_id: str, *, full: bool = False) -> None:
    """Print the branch graph of a session."""
    from replay.cli.overview import overview_of
    from replay.cli.text import ShortIds, counted, one_line

    session = await overview_of(store, session_id)
    stream_no, tree = await _tree(store, session_id, session.leaf_id)
    branches = counted(session.branches, "branch", "branches")
    out.print(f"{one_line(session.name)} · {counted(session.messages, 'message')} · {branches}")
    short = ShortIds([place.id for place in tree.places])
    lines = list(tree.draw(full=full))
    for start in range(0, len(lines), BATCH):
        batch = lines[start : start + BATCH]
        words = await store.log.read(partial(_words, stream_no=stream_no, places=_shown(batch, tree)))
        for line in batch:
            _print_line(out, line, tree, short, words)


def _shown(lines: Sequence[Line | None], tree: Tree) -> list[Place]:
    return [tree.places[line.index] for line in lines if line is not None and line.index is not None]


async def _list(store: Store, out: Output, session_id: str) -> None:
    from replay.cli.overview import overview_of

    session = await overview_of(store, session_id)
    _, tree = await _tree(store, session_id, session.leaf_id)
    with out.records() as add:
        for at, place in enumerate(tree.places):
            add(
                {
                    "id": place.id,
                    "parent_id": place.parent_id,
                    "role": place.role,
                    "depth": place.depth,
                    "leaf": tree.is_leaf(at),
                    "current": at == tree.current,
                    "on_path": tree.on_path(at),
                }
            )


async def _tree(store: Store, session_id: str, leaf_id: str | None) -> tuple[int, Tree]:
    from eventstore.rows import find_stream
    from projections.overview import page_of_places
    from replay.cli.drawing import Tree

    stream_no, _ = await store.log.read(partial(find_stream, stream_id=session_id))
    places: list[Place] = []
    page, after = await store.log.read(partial(page_of_places, stream_no=stream_no, after_row=0))
    places += page
    while after:
        page, after = await store.log.read(partial(page_of_places, stream_no=stream_no, after_row=after))
        places += page
    return stream_no, Tree(places, leaf_id)


def _words(tx: Tx, stream_no: int, places: Sequence[Place]) -> dict[str, str]:
    import msgspec

    from projections.message_tree import find_message
    from replay.cli.text import first_words

    found = ((place.id, find_message(tx, stream_no, place.id)) for place in places)
    return {id: first_words(msgspec.json.decode(stored.content)) for id, stored in found if stored is not None}


def _print_line(out: Output, line: Line | None, tree: Tree, short: object, words: dict[str, str]) -> None:
    from rich.text import Text

    if line is None:
        out.print()
        return
    text = Text(line.lead, style="dim")
    out.print(text)
