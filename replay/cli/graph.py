"""`graph`: the branches of a session, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from replay.cli.options import Run, SessionArgument

if TYPE_CHECKING:
    from rich.text import Text

    from eventstore.ports import Tx
    from projections.compactions import Compaction
    from projections.overview import Place
    from replay.cli.drawing import Line, Tree
    from replay.cli.output import Output
    from replay.cli.text import ShortIds
    from sessions.store import Store

ROLE_STYLES: Final = {"user": "cyan", "assistant": "green", "system": "magenta", "tool": "blue"}
HERE: Final = "  ← current leaf"
BATCH: Final = 500
"""For how many lines at a time the messages are read."""
ROLE_WIDTH: Final = len("assistant")
NARROWEST: Final = 12
"""The fewest characters of a message that are left to it, before the terminal is too narrow for more beside it."""


async def graph(
    run: Run,
    session: SessionArgument,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Show every message, also of long stretches without a branch.")
    ] = False,
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
    stream_no, tree = await _read_tree(store, session_id, session.leaf_id)
    numbers = f"{counted(session.messages, 'message')}, {counted(session.branches, 'branch', 'branches')}"
    out.print(f"{one_line(session.name)} ({numbers})")
    short = ShortIds([place.id for place in tree.places])
    lines = list(tree.draw(full=full))
    for start in range(0, len(lines), BATCH):
        batch = lines[start : start + BATCH]
        shown = [tree.places[line.index] for line in batch if line is not None and line.index is not None]
        words = await store.log.read(partial(_words, stream_no=stream_no, places=shown))
        for line in batch:
            out.print("" if line is None else _row(line, tree, short, words, out.console.width))


async def _list(store: Store, out: Output, session_id: str) -> None:
    from replay.cli.overview import overview_of

    session = await overview_of(store, session_id)
    _, tree = await _read_tree(store, session_id, session.leaf_id)
    depths: dict[str | None, int] = {None: 0}
    with out.records() as add:
        for at, place in enumerate(tree.places):
            depths[place.id] = depths[place.parent_id] + 1
            compaction = tree.compaction_of(at)
            add(
                {
                    "id": place.id,
                    "parent_id": place.parent_id,
                    "role": place.role,
                    "depth": depths[place.id],
                    "leaf": tree.is_leaf(at),
                    "current": at == tree.current,
                    "on_path": tree.on_path(at),
                    "compaction": None if compaction is None else compaction.id,
                }
            )


async def _read_tree(store: Store, session_id: str, leaf_id: str | None) -> tuple[int, Tree]:
    from eventstore.rows import find_stream
    from projections.compactions import list_compactions
    from projections.overview import page_of_places
    from replay.cli.drawing import Tree

    stream_no, _ = await store.log.read(partial(find_stream, stream_id=session_id))
    places, after = await store.log.read(partial(page_of_places, stream_no=stream_no, after_version=0))
    while after:
        page, after = await store.log.read(partial(page_of_places, stream_no=stream_no, after_version=after))
        places += page
    compactions = await store.log.read(partial(list_compactions, stream_no=stream_no))
    return stream_no, Tree(places, leaf_id, compactions)


def _words(tx: Tx, stream_no: int, places: Sequence[Place]) -> dict[str, str]:
    """The first words of messages by their ids."""
    import msgspec

    from projections.stored import find_message
    from replay.cli.text import first_words

    found = ((place.id, find_message(tx, stream_no, place.id)) for place in places)
    return {name: first_words(msgspec.json.decode(stored.content)) for name, stored in found if stored is not None}


def _row(line: Line, tree: Tree, short: ShortIds, words: dict[str, str], width: int) -> Text:
    from rich.text import Text

    from replay.cli.text import one_line

    row = Text().append(line.lead, style="dim")
    if line.compaction is not None:
        return _compaction_row(row, line.glyph, line.compaction, short, width)
    if line.index is None:
        return row.append(f"{line.glyph} {line.hidden:,} messages", style="dim")
    place = tree.places[line.index]
    here = HERE if line.index == tree.current else ""
    row.append(line.glyph, style="bold" if tree.on_path(line.index) else "")
    row.append(f" {short(place.id)}", style="yellow")
    row.append(f"  {one_line(place.role):{ROLE_WIDTH}}", style=ROLE_STYLES.get(place.role, ""))
    if width - row.cell_len - len(here) - 2 < NARROWEST:
        # The glyph says it too.
        here = ""
    said = Text(words.get(place.id, ""), style="" if tree.compaction_of(line.index) is None else "dim")
    said.truncate(max(width - row.cell_len - len(here) - 2, 0), overflow="ellipsis")
    row.append("  ").append_text(said).append(here, style="bold")
    row.truncate(width, overflow="ellipsis")
    return row


def _compaction_row(row: Text, glyph: str, compaction: Compaction, short: ShortIds, width: int) -> Text:
    from replay.cli.text import one_line

    stale = ", stale" if compaction.stale else ""
    row.append(f"{glyph} {short(compaction.from_message_id)} to {short(compaction.to_message_id)}", style="yellow")
    row.append(f" compacted{stale}", style="bold").append(f": {one_line(compaction.summary)}")
    row.truncate(width, overflow="ellipsis")
    return row
