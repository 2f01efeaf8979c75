"""New messages are indexed many at a time, and nobody who searches sees anything of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select

from eventstore.ports import Deferred, Tx
from eventstore.statements import Row, Statement
from eventstore.writer import MOST_BEHIND
from projections import SearchIndex
from projections.search import search
from projections.search_index import INDEX, PAGE_CHARACTERS, checkpoints
from projections.tree_tables import messages
from replay import rebuild, verify
from sessions import Session, Store, open_store

_CHECKPOINT = Statement(select(checkpoints.c.row_id))
_ROWS = Statement(select(messages.c.row_id))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a file that is not there yet."""
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """Open a store on a file."""
    async with open_store(url) as opened:
        yield opened


def words(number: int, text: str = "lantern") -> dict[str, object]:
    """Return a message with an id and a word of its own beside the text."""
    return {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": f"{text} word{number}"}]}


def session(store: Store, name: str = "s") -> Session:
    """Return a session of a store."""
    return Session.create(store).for_session(name)


async def found(store: Store, text: str, name: str = "s") -> set[str]:
    """Return the ids of the messages that a search finds."""
    return {hit.id for hit in await session(store, name).search(text, limit=1_000)}


async def behind(store: Store) -> int:
    """Return how many messages are not in the index."""

    def count(tx: Tx) -> int:
        rows = tx.fetch(_CHECKPOINT)
        reached = rows[0][0] if rows else 0
        return sum(row_id > reached for (row_id,) in tx.fetch(_ROWS))

    return await store.log.read(count)


async def indexed(store: Store) -> set[int]:
    """Return the rows that the index itself holds."""

    def rows(tx: Tx) -> list[Row]:
        return list(tx.dialect.text_index(INDEX).terms(tx))

    return {row_id for _, row_id, _, _ in await store.log.read(rows)}


async def test_message_is_found_at_once(store: Store, url: str) -> None:
    """What was appended is found by the very next search, each time, by this store and by another one on the file."""
    async with open_store(url) as other:
        for number in range(5):
            await session(store).append_message(words(number))
            assert await found(store, f"word{number}") == {f"m{number}"}
            assert await found(other, "lantern") == {f"m{n}" for n in range(number + 1)}


async def test_lag_is_bounded(store: Store) -> None:
    """However many messages come one by one, no more than a bounded number of them are ever behind."""
    most = 0
    for number in range(2 * MOST_BEHIND + 10):
        await session(store).append_message(words(number))
        most = max(most, await behind(store)) if number % 50 == 0 or number > 2 * MOST_BEHIND else most
    assert 0 < most < MOST_BEHIND
    assert len(await indexed(store)) >= 2 * MOST_BEHIND - 1


async def test_much_text_is_indexed_at_once(store: Store) -> None:
    """A message with much text does not wait for others: what is behind is bounded in its size as well."""
    await session(store).append_message(words(1, "lantern " * (PAGE_CHARACTERS // 8)))
    assert await behind(store) == 0


async def test_bulk_is_indexed_with_its_own_commit(store: Store) -> None:
    """Messages that come together in great number are indexed by the commit that appends them."""
    await session(store).append_messages([words(number) for number in range(MOST_BEHIND)])
    assert await behind(store) == 0


async def test_search_with_nothing_behind_writes_nothing(store: Store) -> None:
    """A search only reads when the index is whole."""
    await session(store).append_message(words(1))
    await found(store, "lantern")
    before = await store.log.database.data_version()
    assert await found(store, "lantern") == {"m1"}
    assert await store.log.database.data_version() == before


async def test_closing_leaves_nothing_behind(url: str) -> None:
    """A store that is closed leaves an index that is whole."""
    async with open_store(url) as store:
        for number in range(3):
            await session(store).append_message(words(number))
        assert await behind(store) == 3
    async with open_store(url) as again:
        assert await behind(again) == 0
        assert (await verify(again)).ok


async def test_closing_without_appends_writes_nothing(url: str, tmp_path: Path) -> None:
    """A store that was only read is closed without a write."""
    async with open_store(url) as store:
        await session(store).append_message(words(1))
    before = (tmp_path / "chats.db").read_bytes()
    async with open_store(url) as again:
        assert await found(again, "lantern") == {"m1"}
    assert (tmp_path / "chats.db").read_bytes() == before


async def test_changes_of_what_is_behind_are_found_right(store: Store) -> None:
    """Messages that are edited and deleted before they are indexed are found as they are, and not as they were."""
    chat = session(store)
    for number in range(6):
        await chat.append_message(words(number))
    await chat.update_message(words(1, "candle"))
    await chat.delete_messages(["m2"])
    assert await behind(store) == 5
    assert await found(store, "lantern") == {"m0", "m3", "m4", "m5"}
    assert await found(store, "candle") == {"m1"}
    await chat.update_message(words(1, "torch"))
    await chat.delete_messages(["m0"])
    assert await found(store, "candle") == set()
    assert await found(store, "torch") == {"m1"}
    assert (await verify(store)).ok


async def test_cleared_session_is_gone_from_the_index(store: Store) -> None:
    """Clearing a session takes out what was indexed and what was behind, and what comes after is found."""
    chat = session(store)
    await chat.append_message(words(1))
    await found(store, "lantern")
    await chat.append_message(words(2))
    await chat.clear_messages()
    assert await found(store, "lantern") == set()
    await chat.append_message(words(3))
    assert await found(store, "lantern") == {"m3"}
    assert (await verify(store)).ok


async def test_rebuild_indexes_everything(store: Store) -> None:
    """After a rebuild of the index nothing is behind, and a rebuild of the tree alone loses no hit."""
    for number in range(4):
        await session(store).append_message(words(number))
    await rebuild(store, ["message_tree"])
    assert await found(store, "lantern") == {"m0", "m1", "m2", "m3"}
    await session(store).append_message(words(4))
    await rebuild(store, ["search_index"])
    assert await behind(store) == 0
    assert await found(store, "lantern") == {"m0", "m1", "m2", "m3", "m4"}


async def test_verify_compares_what_a_search_would_see(store: Store) -> None:
    """A store whose index lags verifies, and a token that is missing from the index is found beside the lag."""
    for number in range(3):
        await session(store).append_message(words(number))
    await found(store, "lantern")
    await session(store).append_message(words(3))
    assert (await verify(store)).ok
    assert await behind(store) == 1

    def lose(tx: Tx) -> None:
        tx.dialect.text_index(INDEX).remove(tx, [(1, ["lantern"], 1)])

    await store.log.database.write(lose)
    assert not (await verify(store)).ok


async def test_searches_among_appends_see_all_before_them(store: Store) -> None:
    """Searches while many append come to an end, and miss nothing that was committed when they began."""
    done: set[str] = set()

    async def append(name: int) -> None:
        for number in range(20):
            await session(store, f"s{name}").append_message(words(100 * name + number))
            done.add(f"m{100 * name + number}")

    async def look() -> None:
        for _ in range(20):
            before = set(done)
            hits = await store.log.read(hits_everywhere)
            assert before <= hits

    await asyncio.gather(*(append(name) for name in range(16)), look(), look())


def hits_everywhere(tx: Tx) -> set[str]:
    """Return the ids of all messages that hold the word."""
    return {hit.id for hit in search(tx, "lantern", stream_no=None, limit=1_000, order="newest")}


async def test_index_in_memory_lags_alike() -> None:
    """A store in memory indexes many at a time too, and finds everything."""
    async with open_store("sqlite://") as store:
        for number in range(3):
            await session(store).append_message(words(number))
        assert await behind(store) == 3
        assert await found(store, "lantern") == {"m0", "m1", "m2"}
        assert await behind(store) == 0


def test_index_is_one_that_may_lag() -> None:
    """The log knows by its methods that the index may lag."""
    assert isinstance(SearchIndex(), Deferred)
