from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from functools import partial

import pytest

from projections import overview
from projections.overview import PAGE_PLACES, Overview, find_overview, list_overviews, match_ids, page_of_places
from sessions import SessionManager, Store, open_store
from tests.cli.running import said


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Yield a store in memory with three sessions."""
    async with open_store("sqlite://") as store:
        await fill(SessionManager(store))
        yield store


async def fill(manager: SessionManager) -> None:
    """Make a session without messages, one without branches, and one that was never created, with two."""
    await manager.create("First", id="a%", model="m", source="s")
    await manager.create("Second", id="ab", parent_session_id="a%")
    await manager.get_session("ab").append_messages(said("one", "two"))
    await manager.get_session("abc").append_messages(said("one", "two", "three"))
    await manager.get_session("abc").append_message(said("other")[0] | {"id": "other"}, "m1")


async def test_overviews(store: Store) -> None:
    """Every session is listed with its numbers, the one written last first, never created ones under their ids."""
    listed = await store.log.read(lambda tx: list(list_overviews(tx)))
    assert [(one.id, one.name, one.messages, one.branches, one.events, one.leaf_id) for one in listed] == [
        ("abc", "abc", 4, 2, 4, "other"),
        ("ab", "Second", 2, 1, 3, "m2"),
        ("a%", "First", 0, 0, 1, None),
    ]
    assert [(one.source, one.parent_session_id) for one in listed] == [(None, None), (None, "a%"), ("s", None)]
    assert all(one.created_at <= one.updated_at <= dt.datetime.now(dt.UTC) for one in listed)


async def test_tokens_are_those_of_the_current_path(store: Store) -> None:
    """The tokens of a session are the estimates along the path to its current leaf."""
    await SessionManager(store).get_session("abc").select_leaf("m3")
    whole = await store.log.read(lambda tx: find_overview(tx, "abc"))
    await SessionManager(store).get_session("abc").select_leaf("m1")
    part = await store.log.read(lambda tx: find_overview(tx, "abc"))
    assert isinstance(whole, Overview)
    assert isinstance(part, Overview)
    # A word of few letters is two tokens, and a message four more.
    assert (whole.tokens, part.tokens) == (3 * (2 + 4), 2 + 4)
    assert await store.log.read(lambda tx: find_overview(tx, "nobody")) is None


@pytest.mark.parametrize(
    ("beginning", "limit", "expected"),
    [
        ("a", 9, ["a%", "ab", "abc"]),
        ("a", 2, ["a%", "ab"]),
        ("ab", 9, ["ab"]),
        ("abc", 9, ["abc"]),
        ("a%", 9, ["a%"]),
        ("A", 9, []),
        ("_b", 9, []),
        ("abcd", 9, []),
        ("", 9, ["a%", "ab", "abc"]),
    ],
)
async def test_match(store: Store, beginning: str, limit: int, expected: list[str]) -> None:
    """A beginning matches the id that it is, else the ids that begin with it, character by character."""
    assert await store.log.read(lambda tx: match_ids(tx, beginning, limit=limit)) == expected


@pytest.mark.parametrize("page", [1, 2, 3, 4, 5, PAGE_PLACES])
async def test_places_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """The places of a session come in the order of the log, each once, whatever the size of a page."""
    monkeypatch.setattr(overview, "PAGE_PLACES", page)
    places, after = await store.log.read(partial(page_of_places, stream_no=3, after_version=0))
    while after:
        found, after = await store.log.read(partial(page_of_places, stream_no=3, after_version=after))
        places += found
    assert [(place.id, place.parent_id, place.role) for place in places] == [
        ("m1", None, "user"),
        ("m2", "m1", "assistant"),
        ("m3", "m2", "user"),
        ("other", "m1", "user"),
    ]
