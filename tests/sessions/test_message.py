from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
import types
import uuid
from typing import Any

import pytest

from eventstore import InvalidArgumentError, InvalidMessageError
from sessions import Message, Session
from tests.sessions.talk import said

UI_MESSAGE: dict[str, Any] = {
    "id": "msg-1",
    "role": "assistant",
    "metadata": {"createdAt": 1_700_000_000_000, "model": "m", "usage": {"inputTokens": 3}},
    "parts": [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Let me see", "state": "done", "providerMetadata": {"openai": {"itemId": "r"}}},
        {"type": "text", "text": "Looking it up.", "state": "done"},
        {
            "type": "tool-getWeather",
            "toolCallId": "call-1",
            "state": "output-available",
            "input": {"city": "Zürich", "days": [1, 2.5]},
            "output": {"ok": True, "temp": -0.5, "note": None},
            "callProviderMetadata": {},
        },
        {"type": "dynamic-tool", "toolName": "x", "toolCallId": "c2", "state": "output-error", "errorText": "no"},
        {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "source-url", "sourceId": "s", "url": "https://example.com/?a=1&b=2", "title": "T"},
        {"type": "source-document", "sourceId": "d", "mediaType": "text/plain", "title": "D"},
        {"type": "data-weather", "id": "w", "data": {"a": [[], {}, ""]}},
        {"type": "text", "text": "It is mild."},
    ],
}


async def stored(session: Session, message: Any) -> Message:
    """Append a message and read it back."""
    result = await session.append_message(message)
    found = await session.get_message(result.message.id)
    assert found is not None
    return found


async def test_ui_messages_come_out_unchanged(session: Session) -> None:
    """A `UIMessage` of the Vercel AI SDK comes back as it went in, down to the order of keys."""
    message = await stored(session, UI_MESSAGE)
    assert json.dumps(message.to_dict()) == json.dumps(UI_MESSAGE)
    (read,) = await session.get_history()
    assert json.dumps(read.to_dict()) == json.dumps(UI_MESSAGE)
    assert message.text == "Looking it up.\nIt is mild."
    assert (message.id, message.role, message.metadata) == ("msg-1", "assistant", UI_MESSAGE["metadata"])
    assert message.parts == UI_MESSAGE["parts"]


async def test_unknown_keys_and_their_order_survive(session: Session) -> None:
    """Every key of a message and of its parts is kept verbatim, in the order given."""
    given = {
        "z": 1,
        "parts": [{"zz": {"b": 1, "a": 2}, "type": "mine", "": 0}],
        "role": "r",
        "a": [],
        "id": "m",
        "é": "",
    }
    message = await stored(session, given)
    assert json.dumps(message.to_dict()) == json.dumps(given)
    assert json.dumps((await session.append_message(given)).message.to_dict()) == json.dumps(given)


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        2**64,
        10**4299,
        -(10**4299),
        -0.0,
        0.1 + 0.2,
        5e-324,
        1.7976931348623157e308,
        1e22,
        True,
        None,
        "",
        "\0",
        'a"\\/\b\f\n\r\t\u2028\u2029\x7f',
        "🙂👩‍👩‍👧é\u0301",
        "\\u0000 \\ud800",
        [],
        {},
        [[[]], {"": [None]}],
        {"a\0b": "c\0"},
        "x" * 100_000,
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_values_read_back_equal(session: Session, value: object) -> None:
    """Every JSON value below the limits reads back equal and of the same type, wherever it stands."""
    message = await stored(session, said("m1", extra=value, metadata={"v": value}))
    data = message.to_dict()
    for found in (data["extra"], data["metadata"]["v"]):
        assert repr(found) == repr(value)


async def test_tuples_are_lists(session: Session) -> None:
    """Tuples are taken for lists, as parts and as values."""
    given = {"id": "m1", "role": "user", "parts": ({"type": "a", "v": (1, (2,))},)}
    assert (await stored(session, given)).to_dict() == {
        "id": "m1",
        "role": "user",
        "parts": [{"type": "a", "v": [1, [2]]}],
    }


async def test_to_dict_is_a_copy(session: Session) -> None:
    """Changing what `to_dict` gave changes neither the message nor what is stored."""
    message = await stored(session, said("m1", "hi", deep={"a": [1]}))
    given = message.to_dict()
    given["deep"]["a"].append(2)
    given["parts"].clear()
    assert message.to_dict() == said("m1", "hi", deep={"a": [1]})
    built = Message(id="m2", role="user", parts=[{"type": "x", "v": [1]}])
    built.to_dict()["parts"][0]["v"].append(2)
    assert built.parts == [{"type": "x", "v": [1]}]


async def test_what_was_given_may_be_changed_afterwards(session: Session) -> None:
    """A message is taken as it is at the moment of the call."""
    given = said("m1", "before")
    append = session.append_message(given)
    result = await append
    given["parts"][0]["text"] = "after"
    assert result.message.text == "before"
    found = await session.get_message("m1")
    assert found is not None
    assert found.text == "before"


async def test_missing_id_gets_a_new_one(session: Session) -> None:
    """A message without an id gets one that is a version 7 UUID, and what was given is left alone."""
    given = {"role": "user", "parts": []}
    first, second = [await session.append_message(given) for _ in range(2)]
    assert uuid.UUID(first.message.id).version == uuid.UUID(second.message.id).version == 7
    assert first.message.id < second.message.id
    assert given == {"role": "user", "parts": []}
    assert await session.get_message(first.message.id) == first.message
    assert uuid.UUID(Message(role="user", parts=[]).id).version == 7


async def test_message_objects_go_in_and_come_out(session: Session) -> None:
    """A Message is built from keywords, goes in where a dict does, and comes out equal."""
    when = dt.datetime(2025, 1, 2, 3, 4, 5, 678, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    built = Message(
        id="m1", role="user", parts=[{"type": "text", "text": "hi"}], created_at=when, metadata={"a": 1}, x=2
    )
    assert built.to_dict() == {
        "id": "m1",
        "role": "user",
        "parts": [{"type": "text", "text": "hi"}],
        "createdAt": "2025-01-02T01:04:05.000678Z",
        "metadata": {"a": 1},
        "x": 2,
    }
    read = await stored(session, built)
    assert read == built
    assert (read.created_at, read.text, read.metadata) == (when, "hi", {"a": 1})
    assert read.created_at is not None
    assert read.created_at.tzinfo is dt.UTC
    assert {read, built} == {built}
    assert not read != built  # noqa: SIM202 - what `!=` says is asked
    assert read != built.to_dict()
    assert "m1" in repr(read)


async def test_messages_are_copied_and_pickled(session: Session) -> None:
    """A copy of a message, also one that goes to another process, is equal to it and has its time."""
    read = await stored(session, said("m1", "hi", deep={"a": [1]}))
    built = Message(role="user", parts=[{"type": "x", "v": [1]}])
    for message in (read, built):
        for copied in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):  # noqa: S301 - our own
            assert copied == message
            assert (copied.id, copied.created_at, copied.to_dict()) == (
                message.id,
                message.created_at,
                message.to_dict(),
            )


async def test_any_mapping_is_a_message(session: Session) -> None:
    """A mapping that is no dict will do."""
    assert (await stored(session, types.MappingProxyType(said("m1")))).to_dict() == said("m1")


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2025-01-02T03:04:05Z", "2025-01-02T03:04:05+00:00"),
        ("2025-01-02T03:04:05.123456+05:30", "2025-01-01T21:34:05.123456+00:00"),
        ("2025-01-02T03:04:05.123Z", "2025-01-02T03:04:05.123000+00:00"),
        ("2025-01-02T03:04:05", "2025-01-02T03:04:05+00:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"),
    ],
)
async def test_own_time_is_read_as_utc(session: Session, given: str, time: str) -> None:
    """A message's own time is its `createdAt`, in UTC, and the text stays as it was given."""
    message = await stored(session, said("m1", createdAt=given))
    assert message.created_at == dt.datetime.fromisoformat(time)
    assert message.to_dict()["createdAt"] == given
    (hit,) = await session.search("hello")
    assert hit.created_at == message.created_at
    assert hit.created_at.utcoffset() == dt.timedelta(0)


@pytest.mark.parametrize("given", ["yesterday", "", 1_700_000_000, None, {"a": 1}, "0001-01-01T00:00:00+05:00"])
async def test_unreadable_own_time_is_kept_and_not_used(session: Session, given: object) -> None:
    """A `createdAt` that is no time stays in the message, whose time is then when it was recorded."""
    message = await stored(session, said("m1", createdAt=given))
    (envelope,) = [envelope async for envelope in session.events()]
    assert message.to_dict()["createdAt"] == given
    assert message.created_at == envelope.recorded_at


async def test_created_at_is_on_the_wire_only_when_given(session: Session) -> None:
    """A message without an own time has the time of its recording, which is no part of its dict."""
    message = await stored(session, said("m1"))
    assert message.created_at is not None
    assert message.created_at.utcoffset() == dt.timedelta(0)
    assert message.to_dict() == said("m1")
    assert Message(role="user", parts=[]).created_at is None


def test_text_is_the_text_parts_joined() -> None:
    """The text of a message is its text parts joined by newlines, and nothing else of it."""
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "one"},
        {"type": "reasoning", "text": "secret"},
        {"type": "text", "text": ""},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "text", "text": "two"},
    ]
    assert Message(role="user", parts=parts).text == "one\n\ntwo"
    assert Message(role="user", parts=[]).text == ""


@pytest.mark.parametrize("time", [dt.datetime(2025, 1, 1), "2025-01-01T00:00:00Z", 5, dt.date(2025, 1, 1)])  # noqa: DTZ001
def test_message_time_must_be_aware(time: Any) -> None:
    """A Message's own time must be an aware datetime, so that it means the same everywhere."""
    with pytest.raises(InvalidArgumentError):
        Message(role="user", parts=[], created_at=time)


async def test_time_that_utc_has_no_date_for_is_refused(session: Session) -> None:
    """A time that lies before the year 1 or behind the year 9999 in UTC is refused wherever a time goes in."""
    east, west = (dt.timezone(dt.timedelta(hours=hours)) for hours in (14, -12))
    for time in (dt.datetime.min.replace(tzinfo=east), dt.datetime.max.replace(tzinfo=west)):
        with pytest.raises(InvalidArgumentError) as raised:
            Message(role="user", parts=[], created_at=time)
        assert raised.value.argument == "created_at"
        with pytest.raises(InvalidArgumentError):
            await session.import_message(said("m1"), None, time)
    assert await session.version() == 0


def test_message_that_json_cannot_hold_has_no_dict() -> None:
    """A Message that was built of other values than JSON's says so with the path, and lone surrogates are replaced."""
    with pytest.raises(InvalidMessageError) as raised:
        Message(role="user", parts=[{"type": "a", "v": {1}}]).to_dict()
    assert raised.value.path == "parts[0].v"
    built = Message(id="m", role="user", parts=[{"type": "text", "text": "a\ud800"}])
    assert built.to_dict()["parts"] == [{"type": "text", "text": "a\ufffd"}]
