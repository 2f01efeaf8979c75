"""Events to their stored text and back, through every schema they have had."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventstore import codec, upcasters
from eventstore.envelope import UnreadableEvent
from eventstore.errors import UpcasterError
from eventstore.events import EVENT_TYPES, Event, LeafSelected, MessageAppended, SessionCreated
from eventstore.same import same_json
from eventstore.upcasters import Upcasters
from tests.eventstore.support import MEMORY, notes, opened, stream

texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, json_values, max_size=4)
events = st.one_of(
    st.builds(
        SessionCreated,
        name=texts,
        parent_session_id=st.none() | texts,
        model=st.none() | texts,
        source=st.none() | texts,
    ),
    st.builds(LeafSelected, message_id=texts),
    st.builds(
        MessageAppended,
        raw=objects.map(lambda value: msgspec.Raw(msgspec.json.encode(value))),
        parent_id=st.none() | texts,
        created_at=st.none() | st.datetimes(timezones=st.just(dt.UTC)),
    ),
)


def contents(event: Event | UnreadableEvent) -> dict[str, Any]:
    """Return an event as a dict, its raw JSON decoded."""
    assert isinstance(event, Event)
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(event))
    return decoded


@given(events, objects)
def test_round_trip(event: Event, metadata: dict[str, Any]) -> None:
    """Every event and its metadata come back as they were, with types and key order."""
    payload = codec.encode(event, metadata).decode()
    again, found = codec.decode(event.type, event.schema, payload)
    assert type(again) is type(event)
    assert same_json(contents(again), contents(event))
    assert json.dumps(contents(again)) == json.dumps(contents(event))
    assert json.dumps(found) == json.dumps(metadata)
    assert codec.encode(again, found).decode() == payload


@given(
    st.binary().map(lambda data: data.decode("utf-8", "replace")) | json_values.map(json.dumps),
    st.sampled_from([*EVENT_TYPES, "x"]),
)
def test_any_text_decodes_to_something(payload: str, kind: str) -> None:
    """Whatever text stands in a payload, decoding it raises nothing, and what is unreadable keeps its text."""
    event, metadata = codec.decode(kind, 1, payload)
    assert isinstance(metadata, dict)
    if isinstance(event, UnreadableEvent):
        assert (event.type, event.payload) == (kind, payload)
        assert event.reason


@pytest.mark.parametrize(
    "payload",
    [
        '{"metadata":{}}',
        '{"event":{"type":"leaf_selected","message_id":"m"},"metadata":7}',
        '{"event":{"type":"leaf_selected","message_id":"m"},"metadata":null}',
        '{"event":{"type":"leaf_selected","message_id":"m"},"metadata":["a"]}',
        '{"event":{"type":"leaf_selected","message_id":"m"},"metadata":{"n":%s}}' % ("1" * 9_000),
        '{"event":{"type":"leaf_selected","message_id":"m"},"attachments":7}',
        '{"event":7}',
        '{"event":null}',
        "\ufeff{}",
        "NaN",
    ],
)
def test_broken_payload_is_unreadable(payload: str) -> None:
    """A payload that is not built as ours are is kept as it is, with the reason, and raises nothing."""
    event, metadata = codec.decode("leaf_selected", 1, payload)
    assert isinstance(event, UnreadableEvent)
    assert (event.payload, metadata) == (payload, {})
    assert event.reason


def test_erased_payload_is_unreadable() -> None:
    """An event whose payload was erased has neither content nor metadata."""
    assert codec.decode("leaf_selected", 1, None) == (UnreadableEvent("leaf_selected", "", "erased"), {})


def test_payload_has_its_parts_in_order() -> None:
    """The payload holds the event with its tag first, then the metadata, and no empty parts."""
    assert (
        codec.encode(LeafSelected(message_id="é"), {}) == '{"event":{"type":"leaf_selected","message_id":"é"}}'.encode()
    )
    assert codec.encode(SessionCreated(name="n"), {"b": 1, "a": None}) == (
        b'{"event":{"type":"session_created","name":"n"},"metadata":{"b":1,"a":null}}'
    )


def test_message_is_stored_as_it_came() -> None:
    """A message's JSON stands in the payload byte by byte, spaces and number forms included."""
    raw = '{ "id":"m",  "n":1.50, "e":1E2, "s":"\\u00e9" }'
    payload = codec.encode(MessageAppended(raw=msgspec.Raw(raw.encode())), {}).decode()
    assert f'"message":{raw}' in payload
    event, _ = codec.decode("message_appended", 1, payload)
    assert isinstance(event, MessageAppended)
    assert bytes(event.raw).decode() == raw


def test_attachments_are_part_of_the_payload() -> None:
    """A payload may name bytes kept elsewhere beside event and metadata, and is readable with them."""
    payload = '{"event":{"type":"leaf_selected","message_id":"m"},"attachments":[["/a/0","ab",7]]}'
    event, metadata = codec.decode("leaf_selected", 1, payload)
    assert (event, metadata) == (LeafSelected(message_id="m"), {})
    parts = msgspec.json.decode(payload, type=codec.Payload)
    assert parts.attachments == [codec.Attachment("/a/0", "ab", 7)]


def test_types_are_their_tags() -> None:
    """Every event type is declared once, in snake case, and tells its type."""
    assert {"session_created", "message_appended", "leaf_selected"} <= EVENT_TYPES.keys()
    for name, kind in EVENT_TYPES.items():
        assert name == name.lower()
        assert name.replace("_", "").isalpha()
        assert kind.schema >= 1
    assert LeafSelected(message_id="m").type == "leaf_selected"


@pytest.fixture
def three_schemas(monkeypatch: pytest.MonkeyPatch) -> Upcasters:
    """Make the present shape of one event type its third schema."""
    monkeypatch.setitem(codec._current, "leaf_selected", 3)
    return Upcasters({"leaf_selected": 3, "session_created": 1})


def rename(old: str, new: str) -> upcasters.Upcaster:
    """Return a step that renames a key, and notes that it was taken."""

    def step(data: dict[str, Any]) -> dict[str, Any]:
        return {new if key == old else key: value for key, value in data.items()}

    return step


@pytest.mark.parametrize(("schema", "key"), [(1, "leaf"), (2, "message"), (3, "message_id")])
def test_old_events_are_lifted_step_by_step(three_schemas: Upcasters, schema: int, key: str) -> None:
    """An event of each older schema is lifted one step at a time, and the current one is left alone."""
    three_schemas.register("leaf_selected", 1, rename("leaf", "message"))
    three_schemas.register("leaf_selected", 2, rename("message", "message_id"))
    three_schemas.check()
    payload = json.dumps({"event": {"type": "leaf_selected", key: "m"}, "metadata": {"a": 1}})
    found = codec.decode("leaf_selected", schema, payload, upcasters=three_schemas)
    assert found == (LeafSelected(message_id="m"), {"a": 1})


def test_event_of_a_newer_schema_is_unreadable(three_schemas: Upcasters) -> None:
    """An event of a schema newer than the code's is kept as it is, with the reason."""
    payload = '{"event":{"type":"leaf_selected","message_id":"m"}}'
    event, _ = codec.decode("leaf_selected", 4, payload, upcasters=three_schemas)
    assert isinstance(event, UnreadableEvent)
    assert "newer" in event.reason


@pytest.mark.parametrize("error", [KeyError("leaf"), ValueError("no"), TypeError("no"), RuntimeError("no")])
def test_event_that_an_upcaster_cannot_lift_is_unreadable(three_schemas: Upcasters, error: Exception) -> None:
    """An event on which an upcaster fails is kept as it is, and stops nobody else."""

    def fail(_data: dict[str, Any]) -> dict[str, Any]:
        raise error

    three_schemas.register("leaf_selected", 1, fail)
    three_schemas.register("leaf_selected", 2, rename("message", "message_id"))
    event, _ = codec.decode("leaf_selected", 1, '{"event":{"type":"leaf_selected"}}', upcasters=three_schemas)
    assert isinstance(event, UnreadableEvent)


@pytest.mark.parametrize("schema", [0, -1])
def test_event_of_an_impossible_schema_is_unreadable(three_schemas: Upcasters, schema: int) -> None:
    """An event of a schema that never was is kept as it is."""
    three_schemas.register("leaf_selected", 1, rename("leaf", "message"))
    three_schemas.register("leaf_selected", 2, rename("message", "message_id"))
    event, _ = codec.decode("leaf_selected", schema, '{"event":{"type":"leaf_selected"}}', upcasters=three_schemas)
    assert isinstance(event, UnreadableEvent)


@pytest.mark.parametrize(
    ("type_", "schema", "reason"),
    [
        ("leaf_selected", 1, "no step leads on"),
        ("leaf_selected", 3, "past the current schema"),
        ("leaf_selected", 0, "past the current schema"),
        ("session_created", 1, "past the current schema"),
        ("no_such_type", 1, "no such event type"),
    ],
    ids=["step missing", "beyond", "before", "loop", "unknown type"],
)
def test_steps_that_lead_nowhere_are_refused(three_schemas: Upcasters, type_: str, schema: int, reason: str) -> None:
    """A missing step, one that leads past the current schema, and one of an unknown type are refused."""
    if reason != "no step leads on":
        three_schemas.register(type_, schema, rename("a", "b"))
        three_schemas.register("leaf_selected", 1, rename("a", "b"))
    if (type_, schema) != ("leaf_selected", 2):
        three_schemas.register("leaf_selected", 2, rename("a", "b"))
    with pytest.raises(UpcasterError, match=reason) as caught:
        three_schemas.check()
    assert (caught.value.type, caught.value.schema) == (type_, schema)


def test_second_step_from_a_schema_is_refused(three_schemas: Upcasters) -> None:
    """There is one way on from a schema: a second one could lead in a loop."""
    three_schemas.register("leaf_selected", 1, rename("a", "b"))
    with pytest.raises(UpcasterError, match="registered already"):
        three_schemas.register("leaf_selected", 1, rename("a", "b"))


async def test_steps_are_checked_when_a_store_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that lead nowhere keep a store from being opened."""
    monkeypatch.setattr(upcasters.UPCASTERS, "_steps", {("leaf_selected", 7): rename("a", "b")})
    with pytest.raises(UpcasterError):
        async with opened(MEMORY):
            pass


async def test_stored_bytes_never_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading an old event through an upcaster changes nothing of what is stored."""
    async with opened(MEMORY) as log:
        before = (await log.append("s", notes("old"))).envelopes[0]
        monkeypatch.setitem(codec._current, "leaf_selected", 2)
        monkeypatch.setitem(upcasters.UPCASTERS._current, "leaf_selected", 2)
        monkeypatch.setattr(upcasters.UPCASTERS, "_steps", {})
        upcasters.register_upcaster("leaf_selected", 1, lambda data: {**data, "message_id": "new"})
        [after] = await stream(log)
    assert after.event == LeafSelected(message_id="new")
    assert (after.schema, after.payload_digest, after.hash) == (1, before.payload_digest, before.hash)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, True),
        ([1, 2], [2, 1], False),
        (1, 1.0, False),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ("1", 1, False),
        (0.0, -0.0, True),
        ({"a": None}, {}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1.0}]}, False),
        ([], {}, False),
        ([1], [1, 1], False),
        ("é", "e\u0301", False),
        (10**4_000, 10**4_000, True),
    ],
    ids=str,
)
def test_same_values(left: object, right: object, same: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """JSON values are the same when types, values and the order of lists are, whatever the order of keys."""
    assert same_json(left, right) is same
    assert same_json(right, left) is same
