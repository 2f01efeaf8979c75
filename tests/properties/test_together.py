from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eventstore import EventStoreError
from replay import rebuild, verify
from sessions import AUTO, Message, Store, StoredSession, open_store
from tests.eventstore.support import NOON
from tests.replay.dumps import dumps
from tests.sessions.talk import collect, said

names = st.sampled_from([f"m{number}" for number in range(9)])
words = st.sampled_from(["fox", "running", "fox running", ""])
commands = st.lists(
    st.tuples(
        st.sampled_from(["append"] * 4 + ["below", "update", "update", "upsert", "delete", "delete", "select"]
                        + ["compact", "compact", "clear"]),
        st.sampled_from(["s", "s", "t"]),
        names,
        names,
        words,
    ),
    min_size=3,
    max_size=40,
)  # fmt: skip
Command = tuple[str, str, str, str, str]


async def run(store: Store, command: Command) -> str:
    """Run a command, and return what came of it."""
    verb, session_id, name, other, text = command
    session = StoredSession(store, session_id)
    call: Any
    match verb:
        case "append" | "below":
            call = session.append_message(said(name, text), AUTO if verb == "append" else other)
        case "update":
            call = session.update_message(said(name, text))
        case "upsert":
            call = session.upsert_message(said(name, text))
        case "delete":
            call = session.delete_messages([name, other])
        case "select":
            call = session.select_leaf(name)
        case "compact":
            call = session.add_compaction(text or "S", name, other)
        case _:
            call = session.clear_messages() if name == "m0" else session.version()
    try:
        result = await call
    except EventStoreError as error:
        return type(error).__name__
    if verb == "clear":
        return verb
    return str(result) if isinstance(result, Message | int | None) else str(getattr(result, "inserted", ""))


async def state(store: Store) -> list[Any]:
    """Return what can be read of the sessions, without the ids that the store made up."""
    found: list[Any] = []
    for name in ("s", "t"):
        session = StoredSession(store, name)
        tree = [(node.message.id, node.parent_id, node.message.text) for node in await collect(session.tree())]
        stats = await session.get_history_row_stats()
        texts = [message.text for message in await session.get_history()]
        stale = [
            (one.summary, one.from_message_id, one.to_message_id, one.stale) for one in await session.get_compactions()
        ]
        types = [(envelope.version, envelope.position, envelope.type) for envelope in await collect(session.events())]
        hits = [hit.id for hit in await session.search_messages("fox", order="newest")]
        found += [tree, stats, texts, stale, types, hits, await session.token_estimate()]
    return found


@settings(max_examples=60)
@given(story=commands)
def test_changes_made_at_once_are_those_made_one_by_one(story: list[Command]) -> None:
    """Any changes that are written as one group come to what they come to one after the other, refusals included."""

    async def tell(*, together: bool) -> tuple[list[str], list[Any]]:
        async with open_store("sqlite://", clock=lambda: NOON) as store:
            if together:
                outcomes = list(await asyncio.gather(*(run(store, command) for command in story)))
            else:
                outcomes = [await run(store, command) for command in story]
            before = await dumps(store)
            await rebuild(store)
            assert await dumps(store) == before
            assert (await verify(store)).problems == []
            return outcomes, await state(store)

    assert asyncio.run(tell(together=True)) == asyncio.run(tell(together=False))
