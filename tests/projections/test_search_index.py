from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from eventstore.rows import find_stream
from eventstore.statements import Row
from projections import SearchIndex
from projections.analysis import analyse
from projections.search import search
from replay import rebuild
from sessions import SearchResult, Session, Store, open_store

TEXTS = ["The quick brown foxes", "", "…!?", "x", "北京 and 東京", "a\0b", "foxes fox FOX", "é e\u0301 E"]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Open a store in memory."""
    async with open_store("sqlite://") as opened:
        yield opened


async def fill(store: Store, session: str, texts: list[str]) -> None:
    """Append messages with these texts, all at once so that they share groups."""
    target = Session.create(store).for_session(session)
    given = [
        {"id": f"{session}{n}", "role": "user", "parts": [{"type": "text", "text": t}]} for n, t in enumerate(texts)
    ]
    await asyncio.gather(*(target.append_message(message) for message in given))


async def dump(store: Store) -> list[Row]:
    """Return every token of the index with its row and place."""
    index = next(projection for projection in store.log.projections if isinstance(projection, SearchIndex))
    return await store.log.read(lambda tx: list(index.dump(tx)))


async def found(store: Store, text: str, session: str | None = None, **options: Any) -> list[SearchResult]:
    """Return the hits of a query in one session or in all."""

    def query(tx: Any) -> list[SearchResult]:
        number = None if session is None else find_stream(tx, session)[0]
        return search(tx, text, stream_no=number, **{"limit": 20, "order": "relevance", **options})

    return await store.log.read(query)


async def test_index_holds_exactly_the_analysed_tokens(store: Store) -> None:
    """The index is the tokens of every message's text in their order, and nothing of a message without words."""
    await fill(store, "a", TEXTS)
    await fill(store, "b", TEXTS)
    by_row: dict[int, dict[int, str]] = {}
    for _, row, column, place, token in await dump(store):
        if column == "terms":
            by_row.setdefault(row, {})[place] = token
    stored = [[places[place] for place in range(len(places))] for _, places in sorted(by_row.items())]
    assert stored == [tokens for tokens in map(analyse, TEXTS * 2) if tokens]


async def test_groups_and_rebuilds_give_the_same_index(store: Store) -> None:
    """The index is the same whether messages came in groups or one by one, and after a rebuild."""
    async with open_store("sqlite://") as other:
        await fill(store, "a", TEXTS)
        for number, text in enumerate(TEXTS):
            message = {"id": f"a{number}", "role": "user", "parts": [{"type": "text", "text": text}]}
            await Session.create(other).for_session("a").append_message(message)
        assert await dump(store) == await dump(other) != []
        for _ in range(2):
            await rebuild(store, ["search_index"])
            assert await dump(store) == await dump(other)


async def test_sessions_do_not_leak_into_each_other(store: Store) -> None:
    """A search in one session finds none of the sessions before and after it, whatever their rows."""
    for session in ("a", "b", "c"):
        await fill(store, session, ["fox"] * 3)
    await fill(store, "b", ["fox"] * 4)
    assert [hit.id for hit in await found(store, "fox", "b")] == ["b3", "b2", "b1", "b0"]
    assert [hit.session_id for hit in await found(store, "fox", "a")] == ["a"] * 3
    assert len(await found(store, "fox")) == 10


async def test_equal_hits_are_newest_first(store: Store) -> None:
    """Hits that match equally well come newest first, in one session and over all."""
    await fill(store, "a", ["same", "same"])
    await fill(store, "b", ["same"])
    await (
        Session.create(store)
        .for_session("a")
        .append_message({"id": "last", "role": "user", "parts": [{"type": "text", "text": "same"}]})
    )
    for order in ("relevance", "newest"):
        assert [hit.id for hit in await found(store, "same", "a", order=order)] == ["last", "a1", "a0"]
    assert [hit.id for hit in await found(store, "same")] == ["last", "b0", "a1", "a0"]
    assert [hit.id for hit in await found(store, "same", limit=2)] == ["last", "b0"]


async def test_hit_shows_what_was_found(store: Store) -> None:
    """A hit's snippet is cut from the stored text around the words, with marks around them when they are asked for."""
    await fill(store, "a", ["The quick brown foxes"])
    (hit,) = await found(store, "fox quick")
    assert (hit.content, hit.snippet) == ("The quick brown foxes", "The quick brown foxes")
    (hit,) = await found(store, "fox quick", highlight=("[", "]"))
    assert hit.snippet == "The [quick] brown [foxes]"


async def test_stream_that_does_not_exist_has_no_hits(store: Store) -> None:
    """A search in a session without messages finds nothing."""
    await fill(store, "a", ["fox"])
    assert await found(store, "fox", "nope") == []


async def test_dump_of_one_session_is_empty(store: Store) -> None:
    """The index knows no sessions, so that its dump of one has nothing to compare."""
    await fill(store, "a", ["fox"])
    index = next(projection for projection in store.log.projections if isinstance(projection, SearchIndex))
    assert await store.log.read(lambda tx: list(index.dump(tx, 1))) == []
