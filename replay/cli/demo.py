"""`demo`: a store with a few conversations in it, and a walk through what can be done with them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from replay.cli.options import Run

if TYPE_CHECKING:
    from replay.cli.output import Output
    from sessions.store import Store

PHRASE: Final = '"tram 28"'
SUBSTRING: Final = "紅葉"
EDITED: Final = "9"
"""The position of a message that is edited later."""
CHANGES: Final = 3
"""How many events changed what was said before."""


async def demo(run: Run) -> None:
    """Make a store of a few conversations and walk through it."""
    import dataclasses

    from eventstore.dialect import file_url
    from replay.cli.demo_sessions import MAIN
    from replay.cli.lastused import LastUsed
    from replay.cli.opening import locate, writing

    # The store that a person works with, as the environment names it, is not for a demo: only one named right here is.
    if run.store is None:
        url = file_url(Path(tempfile.mkdtemp(prefix="eventstore-")) / "demo.db")
        run = dataclasses.replace(run, url=url, store=url)
    else:
        await _refuse_other_stores(run)
    location = locate(run)
    async with writing(run) as store:
        await _fill(store)
        await _walk(store, run.out, location.path)
    LastUsed(location.path).write(MAIN)
    _say_what_next(run)


async def _refuse_other_stores(run: Run) -> None:
    """Raise Failure for a store that is there already and that no demo has made."""
    from projections.directory import find_session
    from replay.cli.demo_sessions import MAIN, SOURCE
    from replay.cli.failures import Failure
    from replay.cli.opening import locate, reading
    from replay.cli.program import command_line

    location = locate(run)
    if not location.path.exists() or not location.path.stat().st_size:
        return
    async with reading(run) as store:
        found = await store.log.read(lambda tx: find_session(tx, MAIN))
    if found is None or found.source != SOURCE:
        raise Failure(
            f"{location} is a store of yours, which the demo leaves alone",
            f"`{command_line('demo', store=None)}` makes one of its own",
        )


async def _fill(store: Store) -> None:
    """Write the conversations; in a store of an earlier demo all is there already."""
    from replay.cli.demo_sessions import CONVERSATIONS, SOURCE
    from sessions.manager import SessionManager

    manager = SessionManager(store)
    for conversation in CONVERSATIONS:
        if await manager.get(conversation.id) is not None:
            continue
        await manager.create(conversation.name, id=conversation.id, source=SOURCE)
        session = manager.get_session(conversation.id)
        for turn in conversation.turns:
            await session.append_message(turn.message, turn.parent_id)
        if conversation.chosen is not None:
            await session.select_leaf(conversation.chosen)
        for turn in conversation.edited:
            await session.update_message(turn.message)
        if conversation.deleted:
            await session.delete_messages(conversation.deleted)
        if conversation.summary is not None:
            await session.add_compaction(*conversation.summary)


async def _walk(store: Store, out: Output, path: Path) -> None:
    from replay import verify
    from replay.cli.care import print_report
    from replay.cli.demo_sessions import CHANGED, MAIN
    from replay.cli.graph import draw
    from replay.cli.log import print_events
    from replay.cli.overview import list_sessions
    from replay.cli.search import find, print_results
    from replay.cli.show import print_transcript

    out.print(f"A store of conversations was made: {path}")
    _step(out, "Each conversation is a session.", "ls")
    await list_sessions(store, out)
    _step(out, "A session is a tree: an answer made again, or a question edited, is a branch.", "graph", MAIN)
    await draw(store, out, MAIN)
    _step(out, "Behind it is a log of events, which is only ever appended to.", "log", MAIN)
    await print_events(store, out, MAIN)
    _step(out, "What is edited or deleted is kept in the log.", "log", CHANGED, "-p", "-n", str(CHANGES))
    version = await store.log.stream_version(CHANGED)
    await print_events(store, out, CHANGED, first=version - CHANGES + 1, patch=True)
    _step(out, "A summary stands for the messages it covers; they can be had again.", "show", CHANGED)
    await print_transcript(store, out, CHANGED)
    _step(out, "Search finds words, and phrases in quotes, on every branch of every session.", "search", PHRASE)
    await print_results(store, out, await find(store, PHRASE, marked=True))
    _step(out, "Chinese, Japanese and Korean text is found by any part of it.", "search", SUBSTRING)
    await print_results(store, out, await find(store, SUBSTRING, marked=True))
    _step(out, "Each event is chained to the one before by a hash: what was changed shows.", "verify")
    print_report(out, await verify(store))


def _step(out: Output, says: str, *words: str) -> None:
    from rich.text import Text

    from replay.cli.program import command_line

    out.print()
    out.print(Text(says, style="bold"))
    out.print(Text(f"$ {command_line(*words, store=None)}", style="dim"))


def _say_what_next(run: Run) -> None:
    from rich.text import Text

    from replay.cli.demo_sessions import CHANGED
    from replay.cli.program import command_line

    run.out.print()
    run.out.print(Text("The store is left for you to explore. Try next:", style="bold"))
    for words in (
        ("show", "@"),
        ("graph", "@"),
        ("log", "@", "-p", "-n", "5"),
        ("event", EDITED),
        ("tail", "--all", "--from", "-3"),
        ("append", "@", "--role", "user", "--text", "Is it far?"),
        ("show", CHANGED, "--compaction", "off"),
        ("graph", CHANGED),
        ("search", "castle"),
        ("export", "@", "--format", "json"),
        ("stats",),
        ("verify",),
    ):
        run.out.print(f"  {run.hint(*words)}")
    run.out.print("And with conversations of your own, exported from ChatGPT:")
    run.out.print(f"  {command_line('import', 'auto', 'conversations.json', store=None)}")
