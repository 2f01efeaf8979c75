from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from eventstore import InvalidMessageError
from sessions import Message, Session, Store
from tests.sessions.talk import log_of, said

BAD_MESSAGES: list[tuple[Any, str]] = [
    (None, ""),
    ("m1", ""),
    ([said("m1")], ""),
    ({}, "role"),
    ({"role": "user", "parts": [], "id": None}, "id"),
    ({"role": "user", "parts": [], "id": 5}, "id"),
    ({"role": "user", "parts": [], "id": ""}, "id"),
    ({"role": "user", "parts": [], "id": "a\0b"}, "id"),
    ({"id": "m1", "parts": []}, "role"),
    ({"id": "m1", "role": None, "parts": []}, "role"),
    ({"id": "m1", "role": "", "parts": []}, "role"),
    ({"id": "m1", "role": ["user"], "parts": []}, "role"),
    ({"id": "m1", "role": "user"}, "parts"),
    ({"id": "m1", "role": "user", "parts": None}, "parts"),
    ({"id": "m1", "role": "user", "parts": "text"}, "parts"),
    ({"id": "m1", "role": "user", "parts": {"type": "text"}}, "parts"),
    ({"id": "m1", "role": "user", "parts": [{"type": "text"}, "x"]}, "parts[1]"),
    ({"id": "m1", "role": "user", "parts": [None]}, "parts[0]"),
    ({"id": "m1", "role": "user", "parts": [{}]}, "parts[0].type"),
    ({"id": "m1", "role": "user", "parts": [{"type": 5}]}, "parts[0].type"),
    ({"id": "m1", "role": "user", "parts": [{"type": "t", "input": {"x": [0, {1, 2}]}}]}, "parts[0].input.x[1]"),
    ({"id": "m1", "role": "user", "parts": [{"type": "t", "input": {"x": float("nan")}}]}, "parts[0].input.x"),
    ({"id": "m1", "role": "user", "parts": [], "a": float("inf")}, "a"),
    ({"id": "m1", "role": "user", "parts": [], "a": {"b": {1: 2}}}, "a.b"),
    ({"id": "m1", "role": "user", "parts": [], 5: 2}, ""),
    ({"id": "m1", "role": "user", "parts": [], "a": b"x"}, "a"),
    ({"id": "m1", "role": "user", "parts": [], "createdAt": dt.datetime.now(dt.UTC)}, "createdAt"),
    ({"id": "m1", "role": "user", "parts": [], "a": object()}, "a"),
]


@pytest.mark.parametrize(
    ("message", "path"), BAD_MESSAGES, ids=[f"{n}-{path}" for n, (_, path) in enumerate(BAD_MESSAGES)]
)
async def test_malformed_messages_are_refused(store: Store, session: Session, message: Any, path: str) -> None:
    """What is no message is refused with the path of the bad value before anything is written."""
    with pytest.raises(InvalidMessageError) as raised:
        await session.append_message(message)
    assert (raised.value.path, raised.value.code) == (path, "invalid_message")
    assert await log_of(store) == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "user"}, "parts: is missing"),
        ({"role": "user", "parts": None}, "parts: must be a list, not null"),
        ({"role": "user", "parts": "Hi"}, "parts: must be a list, not a string"),
        ({"role": "user", "parts": {}}, "parts: must be a list, not an object"),
        ({"role": "user", "parts": {1}}, "parts: must be a list, not set"),
        ({"role": "user", "parts": [[]]}, "parts[0]: must be an object, not a list"),
        ({"role": "user", "parts": [{"type": "text"}, {}]}, "parts[1].type: is missing"),
        ({"role": "user", "parts": [{"type": None}]}, "parts[0].type: must be a string, not null"),
        ({"role": "user", "parts": [{"type": True}]}, "parts[0].type: must be a string, not a boolean"),
        ({"parts": []}, "role: is missing"),
        ({"role": None, "parts": []}, "role: must be a string, not null"),
        ({"role": 1.5, "parts": []}, "role: must be a string, not a number"),
        ({"role": "user", "parts": [], "id": None}, "id: must be a string, not null"),
        ({}, "role: is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_refusal_says_what_is_missing(session: Session, message: Any, reason: str) -> None:
    """A refusal says by its path what is missing, and of what is there what it must be, in the words of JSON."""
    with pytest.raises(InvalidMessageError) as raised:
        await session.append_message(message)
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    "keywords",
    [
        {"id": 5},
        {"role": 5},
        {"role": None},
        {"parts": None},
        {"parts": ["x"]},
        {"parts": [{}]},
    ],
    ids=str,
)
def test_message_must_have_a_shape(keywords: dict[str, Any]) -> None:
    """A Message cannot be built without the shape of one."""
    with pytest.raises(InvalidMessageError):
        Message(**{"role": "user", "parts": [], **keywords})
