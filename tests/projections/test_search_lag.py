"""New messages are indexed many at a time, and nobody who searches sees anything of it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from eventstore.crossing import RawTx
from eventstore.errors import EventStoreError
from eventstore.ports import Deferred, Tx
from eventstore.statements import Row, Statement
from projections import SearchIndex
from projections.search import search
from projections.search_index import INDEX, MOST_BEHIND, MOST_BYTES_BEHIND, checkpoints
from projections.tree_tables import messages
from replay import rebuild, verify
from sessions import Session, SessionManager, Store, open_store
from tests.eventstore.support import write_lock
from tests.sessions.watching import settled

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


async def catch_up(store: Store) -> None:
    """Have the index take in what is behind."""
    await store.log.database.write(SearchIndex().catch_up)


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
        if number % 50 == 0 or number > 2 * MOST_BEHIND:
            await settled(store)
            most = max(most, await behind(store))
    assert 0 < most < MOST_BEHIND
    assert len(await indexed(store)) == 2 * MOST_BEHIND


@pytest.mark.parametrize("way", ["append", "update"])
async def test_much_text_is_indexed_at_once(store: Store, way: str) -> None:
    """Much text does not wait for other messages: what is behind is bounded in its size as well."""
    much = words(1, "lantern " * (MOST_BYTES_BEHIND // 8))
    if way == "update":
        await session(store).append_message(words(1))
        await session(store).update_message(much)
    else:
        await session(store).append_message(much)
    await settled(store)
    assert await behind(store) == 0


async def test_bulk_is_indexed_at_once(store: Store) -> None:
    """Messages that come together in great number are indexed right behind the commit that appends them."""
    await session(store).append_messages([words(number) for number in range(MOST_BEHIND)])
    await settled(store)
    assert await behind(store) == 0


async def test_search_writes_nothing(store: Store) -> None:
    """A search only reads, whatever is behind."""
    await session(store).append_message(words(1))
    before = await store.log.database.data_version()
    assert await found(store, "lantern") == {"m1"}
    assert await store.log.database.data_version() == before
    assert await behind(store) == 1


async def test_search_waits_for_no_lock(store: Store, url: str, tmp_path: Path) -> None:
    """While another process holds the write lock a search finds what it has just committed."""
    async with open_store(url) as other:
        await session(other).append_message(words(1))
        with write_lock(tmp_path / "chats.db"):
            assert await asyncio.wait_for(found(store, "lantern"), 5) == {"m1"}


async def test_file_that_cannot_be_written_is_searched(url: str, tmp_path: Path) -> None:
    """What a killed process left behind is found in a file that may only be read."""
    async with open_store(url) as store:
        await session(store).append_message(words(1))
        assert await behind(store) == 1
    path = tmp_path / "chats.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        reading = RawTx(connection, store.log.database.dialect, store.engine.dialect)
        hits = search(reading, "lantern", stream_no=None, limit=9, order="relevance")
    assert [hit.id for hit in hits] == ["m1"]


async def test_closing_waits_for_no_lock(url: str, tmp_path: Path) -> None:
    """A store with messages behind is closed at once, whoever holds the write lock, and finds them the next time."""
    store = await open_store(url)
    await session(store).append_message(words(1))
    with write_lock(tmp_path / "chats.db"):
        await asyncio.wait_for(store.close(), 5)
    async with open_store(url) as again:
        assert await found(again, "lantern") == {"m1"}
        assert (await verify(again)).ok


async def test_changes_of_what_is_behind_are_found_right(store: Store) -> None:
    """Messages that are edited and deleted before or after they are indexed are found as they are, not as they were."""
    chat = session(store)
    for number in range(6):
        await chat.append_message(words(number))
    await chat.update_message(words(1, "candle"))
    await chat.delete_messages(["m2"])
    for _ in range(2):
        assert await found(store, "lantern") == {"m0", "m3", "m4", "m5"}
        assert await found(store, "candle") == {"m1"}
        await catch_up(store)
    await chat.update_message(words(1, "torch"))
    await chat.delete_messages(["m0"])
    assert await found(store, "candle") == set()
    assert await found(store, "torch") == {"m1"}
    assert (await verify(store)).ok


async def test_cleared_session_is_gone_from_the_index(store: Store) -> None:
    """Clearing a session takes out what was indexed and what was behind, and what comes after is found."""
    chat = session(store)
    await chat.append_message(words(1))
    await catch_up(store)
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
    await catch_up(store)
    await session(store).append_message(words(3))
    assert (await verify(store)).ok
    assert await behind(store) == 1

    def lose(tx: Tx) -> None:
        tx.dialect.text_index(INDEX).remove(tx, [(1, ["lantern"], 1)])

    await store.log.database.write(lose)
    assert not (await verify(store)).ok


async def test_searches_among_changes_see_all_before_them(store: Store) -> None:
    """Searches while many append and delete never fail, and miss nothing that was there when they began."""
    done: set[str] = set()

    async def change(name: int) -> None:
        chat = session(store, f"s{name}")
        for number in range(20):
            await chat.append_message(words(100 * name + number))
            await chat.append_message(words(0) | {"id": f"tip{number}"})
            done.add(f"m{100 * name + number}")
            await chat.delete_messages([f"tip{number}"])

    async def look() -> None:
        for _ in range(20):
            before = set(done)
            assert before <= await store.log.read(hits_everywhere)

    await asyncio.gather(*(change(name) for name in range(8)), look(), look())


def hits_everywhere(tx: Tx) -> set[str]:
    """Return the ids of all messages that hold the word."""
    return {hit.id for hit in search(tx, "lantern", stream_no=None, limit=1_000, order="newest")}


QUERIES = ["red", "red blue", '"red blue"', "green", "blue green red", '"blue blue" red']


@pytest.mark.parametrize("seed", range(10))
async def test_ranks_are_those_of_the_index(seed: int) -> None:
    """What is behind is ranked as the index ranks it once it is in it, in one session and in all."""
    chance = random.Random(seed)
    async with open_store("sqlite://") as store:
        for number in range(chance.randrange(3, 60)):
            text = " ".join(chance.choices(["red", "blue", "green", "grey", "pink"], k=chance.randrange(30)))
            message = {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": text}]}
            await session(store, chance.choice("st")).append_message(message)

        async def ranked() -> list[list[str]]:
            hits = [await session(store, name).search(query, limit=50) for query in QUERIES for name in "st"]
            hits += [await SessionManager(store).search(query, limit=50) for query in QUERIES]
            return [[hit.id for hit in found] for found in hits]

        before = await ranked()
        assert await behind(store) > 0
        await catch_up(store)
        assert await ranked() == before


async def test_both_parts_are_one_list(store: Store) -> None:
    """Hits in the index and behind it come as one list, newest or best first, as long as was asked for."""
    chat = session(store)
    texts = ["red", "red red", "blue", "red blue", "red red red"]
    for number, text in enumerate(texts):
        await chat.append_message({"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": text}]})
        if number == 2:
            await catch_up(store)
    assert [hit.id for hit in await chat.search("red", order="newest")] == ["m4", "m3", "m1", "m0"]
    assert [hit.id for hit in await chat.search("red", order="newest", limit=3)] == ["m4", "m3", "m1"]
    assert {hit.id for hit in await chat.search("red")} == {"m0", "m1", "m3", "m4"}
    assert [hit.id for hit in await chat.search("red", limit=2)] == [
        hit.id for hit in (await chat.search("red", limit=4))[:2]
    ]


async def test_index_that_cannot_catch_up_fails_no_append(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """When the index is broken messages are appended all the same, and it is logged now and then, without content."""
    await session(store).append_message(words(0))
    await store.log.database.write(tx_drop_index)
    for _ in range(5):
        await session(store).append_messages([words(0) | {"id": f"x{n}"} for n in ids_for(MOST_BEHIND)])
        await settled(store)
    assert await session(store).get_path_length() == 5 * MOST_BEHIND + 1
    told = [record for record in caplog.records if "catch up" in record.getMessage()]
    assert 1 <= len(told) <= 5
    assert "lantern" not in caplog.text
    with pytest.raises(EventStoreError):
        await found(store, "lantern")
    await store.close()


async def test_row_that_cannot_be_read_harms_no_other(store: Store) -> None:
    """A message whose row is damaged is not found; all others are, before and after the index catches up."""
    for number in range(3):
        await session(store, f"s{number}").append_message(words(number))
    damage = Statement(update(messages).where(messages.c.id == "m1").values(content="{"))
    await store.log.database.write(lambda tx: tx.execute(damage))
    for _ in range(2):
        assert await store.log.read(hits_everywhere) == {"m0", "m2"}
        await catch_up(store)
    assert not (await verify(store)).ok


_numbers = itertools.count()


def ids_for(size: int) -> list[int]:
    """Return numbers that were not used before."""
    return [next(_numbers) for _ in range(size)]


def tx_drop_index(tx: Tx) -> None:
    """Lose the text index."""
    tx.dialect.text_index(INDEX).drop(tx)


async def test_index_in_memory_lags_alike() -> None:
    """A store in memory indexes many at a time too, and finds everything."""
    async with open_store("sqlite://") as store:
        for number in range(3):
            await session(store).append_message(words(number))
        assert await behind(store) == 3
        assert await found(store, "lantern") == {"m0", "m1", "m2"}


def test_index_is_one_that_may_lag() -> None:
    """The log knows by its methods that the index may lag."""
    assert isinstance(SearchIndex(), Deferred)
