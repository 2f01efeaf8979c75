from __future__ import annotations

import asyncio

import pytest

from sessions import Session, Store
from tests.sessions.talk import ids, said


@pytest.mark.parametrize("store", ["file"], indirect=True)
async def test_repeats_and_news_in_one_group(store: Store) -> None:
    """Repeats of stored messages among new ones are found in a group that was decided in a hurry, and only they."""
    session = Session.create(store).for_session("s")
    first = [await session.append_message(said(f"m{number}")) for number in range(3)]
    given = [said("m0"), said("n0"), said("m2"), said("n1"), said("n0")]
    results = await asyncio.gather(*(session.append_message(message) for message in given))
    assert [result.inserted for result in results] == [False, True, False, True, False]
    assert [results[0].position, results[2].position] == [first[0].position, first[2].position]
    assert ids(await session.get_history()) == ["m0", "m1", "m2", "n0", "n1"]
    assert await session.version() == 5
