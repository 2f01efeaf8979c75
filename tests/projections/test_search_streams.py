"""Searching one stream among others: the same hits in the same order, whatever part of the store it is."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from eventstore.ports import Order, Tx
from eventstore.rows import find_stream
from projections.search import search
from sessions import Session, Store, open_store

WORDS = ["fox", "dog", "cat", "owl"]
LIMITS = [1, 3, 20, 1_000]
ORDERS: list[Order] = ["relevance", "newest"]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Open a store in memory."""
    async with open_store("sqlite://") as opened:
        yield opened


async def fill(store: Store, session: str, texts: list[str]) -> None:
    """Append messages with these texts."""
    parts = [[{"type": "text", "text": text}] for text in texts]
    given = [{"id": f"{session}{number}", "role": "user", "parts": part} for number, part in enumerate(parts)]
    await Session.create(store).for_session(session).append_messages(given)


async def found(store: Store, text: str, session: str | None, limit: int, order: Order) -> list[str]:
    """Return the ids of the hits in one session or in all."""

    def query(tx: Tx) -> list[str]:
        number = None if session is None else find_stream(tx, session)[0]
        return [hit.id for hit in search(tx, text, stream_no=number, limit=limit, order=order)]

    return await store.log.read(query)


@pytest.mark.parametrize("sizes", [{"a": 40}, {"a": 40, "b": 2}, {"a": 20, "b": 25}, {"a": 4, "b": 80, "c": 9}])
@pytest.mark.parametrize("order", ORDERS)
async def test_hits_of_a_stream_are_those_of_all_without_the_others(
    store: Store, sizes: dict[str, int], order: Order
) -> None:
    """A search in one session finds what a search in all finds of it, in that order, up to any limit."""
    chance = random.Random(7)
    for session, size in sizes.items():
        await fill(store, session, [" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(size)])
    for word in [*WORDS, "fox dog"]:
        everywhere = await found(store, word, None, 1_000, order)
        for session in sizes:
            own = [message_id for message_id in everywhere if message_id.startswith(session)]
            for limit in LIMITS:
                assert await found(store, word, session, limit, order) == own[:limit]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("others", [60, 600])
async def test_better_hits_elsewhere_hide_none(store: Store, order: Order, others: int) -> None:
    """A session's hits are found even when those of another session are all better, newer and more."""
    await fill(store, "a", ["fox among many other words of a long text"] * 60)
    await fill(store, "b", ["fox"] * others)
    assert await found(store, "fox", "a", 5, order) == ["a59", "a58", "a57", "a56", "a55"]


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ([{"type": "text", "text": "fox", "more": {"n": -1234567890123456789}}, {"type": "text", "text": ""}], "fox\n"),
        ([{"type": "text", "text": "fox"}, {"type": "text"}, {"type": "text", "text": 5}], "fox"),
        ([{"type": "text", "text": None}, {"type": "text", "text": ["fox"]}, {"type": "text", "text": "fox"}], "fox"),
        (
            [{"type": "text", "text": -(10**30)}, {"type": "file", "text": "dog"}, {"type": "text", "text": "fox"}],
            "fox",
        ),
    ],
)
async def test_content_of_a_hit_is_the_text_of_its_text_parts(
    store: Store, parts: list[dict[str, Any]], content: str
) -> None:
    """A hit's content is the text of its message, whatever else its parts hold."""
    session = Session.create(store).for_session("a")
    message = await session.append_message({"id": "m", "role": "user", "parts": parts, "extra": [10**18]})
    (hit,) = await session.search("fox")
    assert hit.content == message.message.text == content
