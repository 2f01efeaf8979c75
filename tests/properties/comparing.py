"""Comparing what can be read of a session with what the model says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any

import pytest

from eventstore import MessageNotFoundError
from eventstore.rows import find_stream
from projections.overview import find_overview, page_of_places
from projections.tokens import estimate_message_tokens
from sessions import Message, Store, StoredSession
from tests.properties.model import Conversation, Summary
from tests.sessions.talk import collect, ids

BUDGETS = [(0, 0), (0, 2), (150, 0), (200, 1), (330, 1), (10_000, 1)]


def shown(talk: Conversation, items: Iterable[str | Summary]) -> list[dict[str, Any]]:
    """Return messages and summaries as they are handed out, a summary without its time."""
    return [
        {"id": item.message_id, "role": "assistant", "parts": [{"type": "text", "text": item.text}]}
        if isinstance(item, Summary)
        else talk.contents[item]
        for item in items
    ]


def given(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return messages that were handed out as `shown` gives them."""
    dicts = [message.to_dict() for message in messages]
    for message in dicts:
        if message["id"].startswith("compaction_"):
            del message["createdAt"]
    return dicts


async def compare(store: Store, name: str, talk: Conversation, *, thoroughly: bool) -> None:
    """Compare a session with its model: from the latest leaf, or thoroughly, from every message of it."""
    session = StoredSession(store, name)
    assert await session.version() == talk.version
    latest = await session.get_latest_leaf()
    assert (latest and latest.id) == talk.tip
    nodes = await collect(session.tree())
    assert [(node.message.id, node.parent_id) for node in nodes] == [(id, talk.parent(id)) for id in talk.contents]
    assert [node.message.to_dict() for node in nodes] == list(talk.contents.values())
    await _compare_overview(session, talk)
    await _compare_compactions(session, talk)
    await _compare_path(session, talk, None)
    if not thoroughly:
        return
    assert len(await collect(session.events())) == talk.version
    for message in talk.contents:
        await _compare_path(session, talk, message)
        assert ids(await session.get_branches(message)) == talk.children(message)
        found = await session.get_message(message)
        assert found is not None
        assert found.to_dict() == talk.contents[message]
    for message in talk.parents.keys() - talk.contents.keys():
        assert await session.get_message(message) is None
        assert await session.get_branches(message) == []
        with pytest.raises(MessageNotFoundError):
            await session.get_history(message)


async def _compare_overview(session: StoredSession, talk: Conversation) -> None:
    overview = await session.store.log.read(lambda tx: find_overview(tx, session.session_id))
    assert (overview is None) == (talk.version == 0)
    if overview is not None:
        assert (overview.messages, overview.branches) == (len(talk.contents), len(talk.leaves()))
        assert (overview.events, overview.leaf_id) == (talk.version, talk.tip)
        assert overview.tokens == await session.token_estimate()
    stream_no, _ = await session.store.log.read(lambda tx: find_stream(tx, session.session_id))
    places, _ = await session.store.log.read(lambda tx: page_of_places(tx, stream_no, 0))
    assert [(place.id, place.parent_id, place.role) for place in places] == [
        (name, talk.parent(name), message["role"]) for name, message in talk.contents.items()
    ]


async def _compare_compactions(session: StoredSession, talk: Conversation) -> None:
    found = {compaction.id: compaction for compaction in await session.get_compactions()}
    known = [summary for summary in talk.summaries if talk.left_of(summary)]
    assert [name for name in found if name in {summary.id for summary in known}] == [summary.id for summary in known]
    for summary in known:
        compaction = found[summary.id]
        assert (compaction.summary, compaction.stale) == (summary.text, summary.stale)


async def _compare_path(session: StoredSession, talk: Conversation, leaf: str | None) -> None:
    path = talk.path(talk.tip if leaf is None else leaf)
    view = shown(talk, talk.view(path))
    history = await session.get_history(leaf)
    assert given(history) == view
    times = {f"compaction_{one.id}": one.created_at for one in await session.get_compactions()}
    for message in history:
        assert message.id not in times or message.created_at == times[message.id]
    assert await session.get_path_length(leaf) == len(path)
    assert await session.token_estimate(leaf) == estimate_message_tokens(view)
    assert given(await collect(session.history(leaf))) == view
    assert given(await collect(session.history(leaf, newest_first=True))) == view[::-1]
    assert ids(await collect(session.history(leaf, overlays=False))) == path
    assert ids(await collect(session.history(leaf, newest_first=True, overlays=False))) == path[::-1]
    for limit in {0, 1, 2, len(view), len(view) + 1}:
        assert given(await session.get_history(leaf, limit=limit)) == (view[-limit:] if limit else [])
    for size in (1, 2, 500):
        batches = await collect(session.history_batches(leaf, batch_size=size))
        assert given(message for batch in batches for message in batch) == view
        assert all(0 < len(batch) <= size for batch in batches)
    stats = await session.get_history_row_stats(leaf)
    assert [(row.id, row.role, row.bytes) for row in stats] == [
        (name, talk.contents[name]["role"], talk.size(name)) for name in path
    ]
    assert [row.tokens for row in stats] == [estimate_message_tokens([talk.contents[name]]) for name in path]
    for budget, least in BUDGETS:
        await _compare_recent(session.get_recent_history(budget, least, leaf_id=leaf), talk, path, budget, least)


async def _compare_recent(call: Awaitable[Any], talk: Conversation, path: list[str], budget: int, least: int) -> None:
    recent = await call
    rows = talk.window(path, budget, least)
    assert given(recent.messages) == shown(talk, talk.view(path, rows))
    assert recent.truncated == (len(rows) < len(path))
    assert recent.total_content_bytes == sum(map(talk.size, path))
