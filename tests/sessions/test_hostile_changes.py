"""Strange and hostile values through every door that opened after the first append."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from eventstore import EventStoreError, InvalidArgumentError, InvalidMessageError, LimitExceededError, ReservedIdError
from replay import rebuild, verify
from sessions import Limits, Session, SessionManager, Store
from tests.sessions.talk import chain, collect, ids, log_of, said

LONG_AGO = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)

DOORS: dict[str, Callable[[Session, Any], Awaitable[Any]]] = {
    "update": lambda session, message: session.update_message(message),
    "upsert of a known one": lambda session, message: session.upsert_message(message),
    "upsert": lambda session, message: session.upsert_message({**message, "id": "new"}),
    "import": lambda session, message: session.import_message({**message, "id": "new"}, None, LONG_AGO),
}


def nested(depth: int) -> Any:
    """Return lists nested so deep."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "nested": (said("m1", x=nested(100_000)), "depth"),
    "a million parts": ({"id": "m1", "role": "user", "parts": [{"type": "t"}] * 1_000_000}, "parts"),
    "long role": ({**said("m1"), "role": "r" * 1_000_000}, "id_bytes"),
    "long number": (said("m1", x=10**5_000), "int_digits"),
    "large text": (said("m1", "x" * (Limits().message_bytes + 1)), "message_bytes"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("message", "limit"), TOO_MUCH.values(), ids=TOO_MUCH)
async def test_hostile_shapes_are_refused_by_every_door(
    store: Store, session: Session, door: str, message: Any, limit: str
) -> None:
    """What an append refuses is refused as an update, an upsert and an import too, before it is logged (MEM-4)."""
    await chain(session, "m1")
    before = await log_of(store)
    with pytest.raises(LimitExceededError) as raised:
        await DOORS[door](session, message)
    assert raised.value.limit == limit
    assert await log_of(store) == before
    assert [one.text for one in await session.get_history()] == ["hello"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("parts", [None, {}, "x", [{}], [{"type": None}], [[]]], ids=str)
async def test_shapeless_parts_are_refused_by_every_door(store: Store, session: Session, door: str, parts: Any) -> None:
    """Parts that are none, or have no type, are refused by every door (MEM-4)."""
    await chain(session, "m1")
    before = await log_of(store)
    with pytest.raises(InvalidMessageError):
        await DOORS[door](session, {"id": "m1", "role": "user", "parts": parts})
    assert await log_of(store) == before


async def test_long_ids_and_summaries_are_refused(store: Store, session: Session) -> None:
    """A long id, a summary above the limit and a reserved id are refused, and nothing is logged (MEM-4)."""
    await chain(session, "m1")
    before = await log_of(store)
    for attempt in (
        session.update_message(said("x" * 1_000_000)),
        session.upsert_message(said("x" * 1_000_000)),
        session.import_message(said("x" * 1_000_000), None, LONG_AGO),
        session.add_compaction("x" * (Limits().message_bytes + 1), "m1", "m1"),
    ):
        with pytest.raises(LimitExceededError):
            await attempt
    for attempt in (
        session.upsert_message(said("compaction_x")),
        session.import_message(said("compaction_x"), None, LONG_AGO),
    ):
        with pytest.raises(ReservedIdError):
            await attempt
    assert await session.update_message(said("compaction_x")) is None
    assert await session.delete_messages(["x" * 1_000_000, "compaction_x", ""]) == 0
    with pytest.raises(EventStoreError):
        await session.add_compaction("S", "x" * 1_000_000, "m1")
    assert await log_of(store) == before


@pytest.mark.parametrize(
    "attempt",
    [
        lambda session: session.delete_messages("m1"),
        lambda session: session.delete_messages([1]),
        lambda session: session.delete_messages(None),
        lambda session: session.delete_messages(["m1", None]),
        lambda session: session.delete_messages(["m1\0"]),
        lambda session: session.add_compaction(None, "m1", "m1"),
        lambda session: session.add_compaction(b"S", "m1", "m1"),
        lambda session: session.add_compaction("S", None, "m1"),
        lambda session: session.add_compaction("S", "m1", 1),
        lambda session: session.import_message(said("new"), None, "2001-01-01"),
        lambda session: session.import_message(said("new"), None, dt.datetime(2001, 1, 1)),  # noqa: DTZ001
        lambda session: session.import_message(said("new"), None, None),
        lambda session: session.import_message(said("new"), 1, LONG_AGO),
        lambda session: session.upsert_message(said("new"), 1),
        lambda session: session.update_message(None),
        lambda session: session.update_message([]),
        lambda session: session.get_recent_history(-1),
        lambda session: session.get_recent_history("1"),
        lambda session: session.get_recent_history(1.5),
        lambda session: session.get_recent_history(1, -1),
        lambda session: session.get_history(1),
    ],
)
async def test_wrong_types_are_refused(
    store: Store, session: Session, attempt: Callable[[Session], Awaitable[Any]]
) -> None:
    """Arguments that are not what they should be raise a typed error, and nothing is logged (MEM-4)."""
    await chain(session, "m1", "m2")
    before = await log_of(store)
    with pytest.raises((InvalidArgumentError, InvalidMessageError)):
        await attempt(session)
    assert await log_of(store) == before


STRANGE: dict[str, dict[str, Any]] = {
    "deepest": said("m2", "word", x=nested(Limits().depth - 2)),
    "most parts": {"id": "m2", "role": "user", "parts": [{"type": "text", "text": "word"}] * 10_000},
    "two megabytes": said("m2", "word " * 400_000),
    "longest number": said("m2", "word", x=10 ** Limits().int_digits - 1),
    "a number for a text": {
        "id": "m2",
        "role": "user",
        "parts": [{"type": "text", "text": 1 - 10 ** Limits().int_digits}, {"type": "text", "text": "word"}],
    },
    "control characters": said("m2", "".join(map(chr, range(256))) + " word"),
    "strange keys": said("m2", "word", **{"": 1, "\0": 2, "id ": 4, "__class__": 5}),
    "empty": {"id": "m2", "role": "user", "parts": []},
}


@pytest.mark.parametrize("message", STRANGE.values(), ids=STRANGE)
async def test_whatever_an_update_accepts_works_everywhere(store: Store, session: Session, message: Any) -> None:
    """A content below the limits can be updated to and from, read, searched, covered, rebuilt and deleted (MEM-4)."""
    await chain(session, "m1", "m2", "m3")
    updated = await session.update_message(message)
    assert updated is not None
    assert updated.to_dict() == message
    assert await session.update_message(message) is not None
    assert await session.version() == 4
    for _ in range(2):
        read = (await session.get_history())[1]
        assert read.to_dict() == message
        assert [hit.id for hit in await session.search("word")] == (["m2"] if "word" in read.text else [])
        await rebuild(store)
    summary = updated.text or "nothing"
    await session.add_compaction(summary, "m1", "m2")
    assert [one.text for one in await session.get_history()] == [summary, "hello"]
    assert (await verify(store)).problems == []
    await session.update_message(said("m2", "short"))
    assert await session.search("word") == []
    await session.upsert_message(message)
    assert await session.delete_messages(["m2"]) == 1
    assert await session.search("word") == []
    assert (await verify(store)).problems == []


async def test_surrogates_are_replaced_in_every_change(store: Store, session: Session) -> None:
    """A lone surrogate in an update, an upsert, an import or a summary becomes U+FFFD, ids included (SQL-3)."""
    lone, clean = "백트래\ud82d·깊이 \udc00", "백트래\ufffd·깊이 \ufffd"
    await session.append_message(said("m\ud800"))
    updated = await session.update_message(said("m\udfff", lone))
    assert updated is not None
    assert updated.to_dict() == said("m\ufffd", clean)
    assert await session.update_message(said("m\ufffd", clean)) is not None
    assert await session.version() == 2
    assert (await session.upsert_message(said("n\ud800", lone))).inserted
    assert not (await session.upsert_message(said("n\ud801", lone))).inserted
    await session.import_message(said("o\ud800", lone, **{"\udc00": lone}), "n\udfff", LONG_AGO)
    compaction = await session.add_compaction(lone, "m\ud800", "n\udc00")
    assert (compaction.summary, compaction.from_message_id, compaction.to_message_id) == (clean, "m\ufffd", "n\ufffd")
    for _ in range(2):
        history = await session.get_history()
        assert [one.text for one in history] == [clean, clean]
        assert history[1].to_dict()["\ufffd"] == clean
        for message in history:
            str(message.to_dict()).encode()
        assert (await session.get_compactions())[0].summary == clean
        assert len(await session.search("깊이")) == 3
        await rebuild(store)
    assert await session.delete_messages(["m\ud800", "m\udc00"]) == 1
    await session.append_message(said("normal"))
    assert ids(await session.get_history()) == [f"compaction_{compaction.id}", "o\ufffd", "normal"]
    assert [info.id for info in await SessionManager(store).list()] == ["chat"]
    assert len(await collect(session.events())) == await session.version()
    assert (await verify(store)).problems == []


async def test_summary_may_hold_anything_a_text_may(session: Session) -> None:
    """NUL, quotes and characters beyond the basic plane stay in a summary as they are (SQL-3)."""
    await chain(session, "m1", "m2")
    for summary in ("a\0b", '"quoted" \\u0000', "👩‍👩‍👧‍👦 𝄞", "a\u2028b", "  padded  "):
        await session.add_compaction(summary, "m1", "m1")
        assert (await session.get_history())[0].text == summary
        assert (await session.get_compactions())[-1].summary == summary
