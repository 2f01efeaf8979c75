"""Reading a part of a history: the last so many, what fits into so many bytes, batches, from the end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eventstore import InvalidArgumentError, MessageNotFoundError
from sessions import Session, Store, StoredSession
from tests.sessions.talk import chain, collect, ids, said

NAMES = [f"m{n}" for n in range(300)]


def size(message: dict[str, Any]) -> int:
    """Return the bytes that a message is stored as."""
    return len(msgspec.json.encode(message))


async def test_limit_gives_the_last_messages_oldest_first(session: Session) -> None:
    """A limit keeps the last messages in their order, none for 0, all for None or more than there are (API-2)."""
    await session.append_messages([said(name) for name in NAMES])
    for limit, expected in (
        (3, NAMES[-3:]),
        (1, NAMES[-1:]),
        (0, []),
        (None, NAMES),
        (299, NAMES[1:]),
        (300, NAMES),
        (10**9, NAMES),
        (10**30, NAMES),
    ):
        assert ids(await session.get_history(limit=limit)) == expected
    assert ids(await session.get_history("m99", limit=3)) == ["m97", "m98", "m99"]
    assert [hit.id for hit in await session.search("hello", limit=1, order="newest")] == ["m299"]


async def test_summary_counts_as_one(session: Session) -> None:
    """In a limited history a summary counts as one message, wherever the limit falls (API-2)."""
    await session.append_messages([said(name) for name in NAMES])
    overlay = f"compaction_{(await session.add_compaction('S', 'm100', 'm297')).id}"
    for limit, expected in (
        (1, ["m299"]),
        (2, ["m298", "m299"]),
        (3, [overlay, "m298", "m299"]),
        (4, ["m99", overlay, "m298", "m299"]),
        (103, [*NAMES[:100], overlay, "m298", "m299"]),
        (10**9, [*NAMES[:100], overlay, "m298", "m299"]),
        (0, []),
    ):
        assert ids(await session.get_history(limit=limit)) == expected
    assert ids(await session.get_history("m297", limit=2)) == ["m99", overlay]
    assert ids(await session.get_history("m200", limit=2)) == ["m199", "m200"]


async def test_limit_crosses_branches(session: Session) -> None:
    """A limit that reaches over forks counts along the path that is read (API-2)."""
    await chain(session, "a", "b", "c")
    await session.append_message(said("c2"), "b")
    await session.append_message(said("d2"))
    await session.append_message(said("d3"), "c2")
    for limit in range(6):
        assert ids(await session.get_history(limit=limit)) == ["a", "b", "c2", "d3"][4 - min(limit, 4) :]


@pytest.mark.parametrize("limit", [-1, -(10**30), True, 1.0, "3", [3]], ids=repr)
async def test_limit_must_be_a_number(session: Session, limit: Any) -> None:
    """A limit below 0, or that is no whole number, is refused (API-2)."""
    await chain(session, "m1")
    with pytest.raises(InvalidArgumentError):
        await session.get_history(limit=limit)


async def test_recent_history_keeps_to_its_budget(session: Session) -> None:
    """A recent history is the newest messages whose bytes fit, at least as many as asked for, and says so (API-2)."""
    messages = [said(name, "x" * (50 * n)) for n, name in enumerate(NAMES[:20])]
    await session.append_messages(messages)
    sizes = [size(message) for message in messages]
    for count in range(21):
        budget = sum(sizes[20 - count :])
        for most, expected in ((budget, count), (max(budget - 1, 0), max(count - 1, 0))):
            recent = await session.get_recent_history(most, 0)
            assert ids(recent.messages) == NAMES[20 - expected : 20]
            assert recent.truncated == (expected < 20)
            assert recent.total_content_bytes == sum(sizes)
    for least in (0, 1, 7, 20, 100):
        recent = await session.get_recent_history(0, least)
        assert ids(recent.messages) == NAMES[20 - min(least, 20) : 20]
        assert recent.truncated == (least < 20)
    assert ids((await session.get_recent_history(0)).messages) == ["m19"]
    assert ids((await session.get_recent_history(0, leaf_id="m5")).messages) == ["m5"]


async def test_recent_history_shows_the_summary_for_its_covered_rows(session: Session) -> None:
    """A window that begins inside a summarised range begins with its summary, and counts the rows behind it."""
    await chain(session, *NAMES[:8])
    overlay = f"compaction_{(await session.add_compaction('S', 'm1', 'm5')).id}"
    for least, expected in (
        (1, ["m7"]),
        (2, ["m6", "m7"]),
        (3, [overlay, "m6", "m7"]),
        (6, [overlay, "m6", "m7"]),
        (7, [overlay, "m6", "m7"]),
        (8, ["m0", overlay, "m6", "m7"]),
    ):
        recent = await session.get_recent_history(1, least)
        assert ids(recent.messages) == expected
        assert recent.truncated == (least < 8)
        assert recent.total_content_bytes == 8 * size(said("m0"))


async def test_row_stats_follow_the_content(session: Session) -> None:
    """Role, bytes and tokens of a path's rows are those of what is stored now, without the summary."""
    await chain(session, "m1", "m2", "m3")
    await session.append_message(said("other"), "m1")
    await session.select_leaf("m3")
    changed = {"id": "m2", "role": "assistant", "parts": [{"type": "text", "text": "жжжж 😀"}]}
    await session.update_message(changed)
    await session.delete_messages(["m1"])
    await session.add_compaction("S", "m2", "m2")
    stats = await session.get_history_row_stats()
    assert [(row.id, row.role, row.bytes) for row in stats] == [
        ("m2", "assistant", size(changed)),
        ("m3", "user", size(said("m3"))),
    ]
    assert [row.id for row in await session.get_history_row_stats("other")] == ["other"]


async def test_reads_of_an_empty_session_are_empty(store: Store, session: Session) -> None:
    """Every read of a session without messages gives nothing."""
    for cleared in (False, True):
        if cleared:
            await chain(session, "m1")
            await session.clear_messages()
        assert await session.get_history(limit=5) == []
        assert await collect(session.history(newest_first=True)) == []
        assert await collect(session.history_batches()) == []
        assert await session.get_history_row_stats() == []
        assert await session.get_compactions() == []
        recent = await session.get_recent_history(100)
        assert (recent.messages, recent.truncated, recent.total_content_bytes) == ([], False, 0)
        assert await StoredSession(store, "chat").token_estimate() == 0


async def test_unknown_leaf_is_refused_by_every_read(store: Store, session: Session) -> None:
    """A leaf that is unknown or deleted is an error in every read that takes one."""
    await chain(session, "m1", "m2")
    await session.delete_messages(["m2"])
    for leaf in ("nope", "m2", ""):
        for attempt in (
            session.get_history(leaf, limit=0),
            collect(session.history(leaf, newest_first=True)),
            collect(session.history_batches(leaf)),
            session.get_history_row_stats(leaf),
            session.get_recent_history(100, leaf_id=leaf),
            session.get_path_length(leaf),
            session.select_leaf(leaf),
            StoredSession(store, "chat").token_estimate(leaf),
        ):
            with pytest.raises(MessageNotFoundError):
                await attempt


async def test_batches_are_bounded_both_ways(session: Session) -> None:
    """A batch holds as many messages as fit by count and by bytes, at least one, and together they are all."""
    messages = [said(name, "x" * 1_000) for name in NAMES]
    await session.append_messages(messages)
    for count, most in ((7, 1 << 20), (500, 5_000), (3, 2_500), (500, 1), (1, 1)):
        batches = await collect(session.history_batches(batch_size=count, max_batch_bytes=most))
        assert [message.id for batch in batches for message in batch] == NAMES
        for batch in batches:
            assert 1 <= len(batch) <= count
            assert len(batch) == 1 or sum(size(message.to_dict()) for message in batch) <= most + 1_200
    assert len(await collect(session.history_batches())) == 1
    for count, most in ((0, 1), (-1, 1), (1, 0), (1, -1)):
        with pytest.raises(InvalidArgumentError):
            await collect(session.history_batches(batch_size=count, max_batch_bytes=most))


@pytest.mark.parametrize("newest_first", [False, True])
async def test_stream_shows_changes_of_this_process_at_once(session: Session, *, newest_first: bool) -> None:
    """Whichever message a stream has come to, a summary too, the next ones are as this process has left them."""
    await chain(session, *NAMES[:6])
    await session.append_message(said("side"), "m2")
    await session.select_leaf("m5")
    overlay = f"compaction_{(await session.add_compaction('S', 'm2', 'm3')).id}"
    names = ["m0", "m1", overlay, "m4", "m5"]
    order = names[::-1] if newest_first else names
    for stop in range(len(order)):
        stream = session.history(newest_first=newest_first)
        read = [await anext(stream) for _ in range(stop + 1)]
        for name in ("m0", "m1", "m4", "m5", "side"):
            await session.update_message(said(name, f"changed {stop}"))
        rest = await collect(stream)
        assert ids([*read, *rest]) == order
        assert {message.text for message in rest} <= {f"changed {stop}", "S"}


async def test_streams_fix_the_path_and_show_what_is_there(session: Session) -> None:
    """A stream keeps the path and summaries of its first item, leaves out later deletions and shows updates."""
    names = [f"m{n}" for n in range(1_500)]
    for newest_first in (False, True):
        await session.append_messages([said(name) for name in names])
        overlay = f"compaction_{(await session.add_compaction('S', 'm700', 'm750')).id}"
        stream = session.history(newest_first=newest_first)
        read = [await anext(stream)]
        last = "m10" if newest_first else "m1490"
        await session.delete_messages([last])
        await session.update_message(said("m5" if newest_first else "m1495", "changed"))
        await session.append_message(said("late"))
        await session.add_compaction("later", "m20", "m1400")
        read += await collect(stream)
        expected = [name for name in [*names[:700], overlay, *names[751:]] if name != last]
        assert ids(read) == (expected[::-1] if newest_first else expected)
        assert [message.id for message in read if message.text == "changed"] == ["m5" if newest_first else "m1495"]
        await session.clear_messages()
