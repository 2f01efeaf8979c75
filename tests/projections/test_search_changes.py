from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eventstore import Event
from eventstore.events import SessionDeleted
from projections import search_index
from projections.analysis import analyse
from projections.message import message_text
from replay import rebuild
from sessions import Session, Store, StoredSession
from tests.projections.support import appended, chain, cleared, compacted, deleted, dump, opened, updated


async def found(store: Store, query: str, session: str = "s") -> list[str]:
    """Return the ids of a session's messages that hold what is searched for, oldest first."""
    hits = await Session.create(store).for_session(session).search(query)
    return sorted(hit.id for hit in hits)


async def tokens(store: Store) -> list[list[str]]:
    """Return what the index holds, message by message."""
    by_row: dict[int, dict[int, str]] = {}
    for _, row, column, place, token in await dump(store, "search_index"):
        if column == "terms":
            by_row.setdefault(row, {})[place] = token
    return [[places[place] for place in range(len(places))] for _, places in sorted(by_row.items())]


async def stored_tokens(store: Store, *sessions: str) -> list[list[str]]:
    """Return the tokens of the messages that are stored, session by session, but of those without words."""
    found: list[list[str]] = []
    for name in sessions:
        found += [analyse(message_text(node.message.to_dict())) async for node in StoredSession(store, name).tree()]
    return [words for words in found if words]


async def test_edit_takes_the_old_words_out() -> None:
    """An edited message is found by its new words and by none that it has lost."""
    async with opened() as store:
        await store.log.append("s", [appended("1", None, "red fox"), appended("2", "1", "red dog")])
        await store.log.append("s", [updated("1", "blue fox")])
        assert [await found(store, query) for query in ("red", "blue", "fox", '"red fox"')] == [["2"], ["1"], ["1"], []]
        await store.log.append("s", [updated("1", "")])
        assert await found(store, "fox") == []
        await store.log.append("s", [updated("1", "fox again")])
        assert await found(store, "fox") == ["1"]


async def test_deleted_message_is_found_no_more() -> None:
    """A deletion takes a message out of the index, and the rest stays."""
    async with opened() as store:
        await store.log.append("s", [appended("1", None, "fox"), appended("2", "1", ""), appended("3", "2", "fox dog")])
        await store.log.append("s", [updated("3", "fox cat"), deleted("1", "2")])
        assert await found(store, "fox") == ["3"]
        await store.log.append("s", [deleted("3")])
        assert await dump(store, "search_index") == []


@pytest.mark.parametrize("last", [cleared(), SessionDeleted()], ids=["clear", "deletion"])
@pytest.mark.parametrize("page", [1, 3, 1_000])
async def test_cleared_session_is_found_no_more(last: Event, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clear, or the session's deletion, takes out all of a session, page by page, and nothing of another one."""
    monkeypatch.setattr(search_index, "PAGE_ROWS", page)
    async with opened() as store:
        for name in "sto":
            await store.log.append(name, chain(*"1234567"))
        await store.log.append("s", [updated("3", "fox"), deleted("5"), updated("7", "")])
        await store.log.append("s", [last])
        assert await found(store, "a b c") == []
        assert await tokens(store) == await stored_tokens(store, "t", "o") == [["a", "b", "c"]] * 14


async def test_summary_is_not_searched() -> None:
    """A compaction changes nothing of what is found: the messages are, and its summary is not."""
    async with opened() as store:
        await store.log.append("s", [appended("1", None, "fox"), appended("2", "1", "dog")])
        before = await dump(store, "search_index")
        await store.log.append("s", [compacted("c", "1", "2", "they met a cat")])
        assert await dump(store, "search_index") == before
        assert [await found(store, query) for query in ("fox", "cat")] == [["1"], []]


GROUPS: dict[str, tuple[Sequence[Event], list[str]]] = {
    "edit of an append": ([appended("a", None, "red"), updated("a", "blue")], ["blue", "old"]),
    "two edits": ([updated("1", "red"), updated("1", "blue")], ["blue"]),
    "edit and back": ([updated("1", "red"), updated("1", "old")], ["old"]),
    "deletion of an append": ([appended("a", None, "red"), deleted("a")], ["old"]),
    "deletion of an edit": ([updated("1", "red"), deleted("1")], []),
    "clear of an append": ([appended("a", None, "red"), cleared()], []),
    "clear of an edit": ([updated("1", "red"), cleared()], []),
    "clear of a deletion": ([deleted("1"), cleared()], []),
    "same id after a clear": ([updated("1", "red"), cleared(), appended("1", None, "blue")], ["blue"]),
    "edit after a clear": ([cleared(), appended("1", None, "red"), updated("1", "blue")], ["blue"]),
    "two clears": ([cleared(), appended("1", None, "red"), cleared(), appended("1", None, "blue")], ["blue"]),
    "deletion after a clear": ([cleared(), appended("1", None, "red"), deleted("1")], []),
    "deletion of the session": ([updated("1", "red"), appended("a", None, "blue"), SessionDeleted()], []),
}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("grouped", [True, False], ids=["one group", "one by one"])
async def test_only_what_is_left_in_the_end_is_indexed(name: str, grouped: bool) -> None:  # noqa: FBT001 - a case
    """Whatever a group does to a message, alone or beside other sessions, the index has what the message has then."""
    events, expected = GROUPS[name]
    async with opened() as store:
        await asyncio.gather(*(store.log.append(one, [appended("1", None, "old")]) for one in "rs"))
        if grouped:
            beside = [store.log.append("r", [updated("1", "kept")]), store.log.append("r", chain("2", "3"))]
            await asyncio.gather(beside[0], store.log.append("s", events), beside[1])
        else:
            await store.log.append("r", [updated("1", "kept")])
            for event in events:
                await store.log.append("s", [event])
            await store.log.append("r", chain("2", "3"))
        words = [word for message in await tokens(store) for word in message]
        assert sorted(words) == sorted(["kept", *expected, *["a", "b", "c"] * 2])
        before = await dump(store, "search_index")
        await rebuild(store, ["search_index"])
        assert await dump(store, "search_index") == before
