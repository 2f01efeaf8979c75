from __future__ import annotations

from typing import Any

import pytest

from eventstore import EventStoreError, InvalidMessageError, LimitExceededError
from replay import rebuild, verify
from sessions import Limits, Session, SessionManager, Store
from tests.sessions.talk import collect, log_of, said

DEFAULTS = Limits()


def nested(depth: int, *, key: str | None = None) -> Any:
    """Return lists, or objects with this key, nested so deep."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


def shared(levels: int) -> Any:
    """Return a few objects that written out are 10 ** levels."""
    value: Any = "x"
    for _ in range(levels):
        value = [value] * 10
    return value


def endless() -> Any:
    """Return a list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


def part(**fields: Any) -> dict[str, Any]:
    """Return a message with one part of these fields."""
    return {"id": "m1", "role": "user", "parts": [{"type": "t", **fields}]}


REFUSED: dict[str, tuple[Any, str, str]] = {
    "nested lists": (part(a=nested(100_000)), "depth", "parts[0].a"),
    "nested objects": (part(a=nested(100_000, key="k")), "depth", "parts[0].a"),
    "one level too deep": (part(a=nested(DEFAULTS.depth)), "depth", "parts[0].a"),
    "deep beside parts": (said("m1", x=nested(DEFAULTS.depth + 1)), "depth", "x"),
    "holds itself": (part(a=endless()), "depth", "parts[0].a"),
    "a million parts": ({"id": "m1", "role": "user", "parts": [{"type": "t"}] * 1_000_000}, "parts", "parts"),
    "one part too many": ({"id": "m1", "role": "user", "parts": [{"type": "t"}] * 10_001}, "parts", "parts"),
    "long id": (said("x" * 1_000_000), "id_bytes", "id"),
    "id one byte too long": (said("x" * 513), "id_bytes", "id"),
    "long role": ({**said("m1"), "role": "r" * 1_000_000}, "id_bytes", "role"),
    "long number": (part(a=10 ** (DEFAULTS.int_digits + 1)), "int_digits", "parts[0].a"),
    "very long number": (part(a=1 << 10_000_000), "int_digits", "parts[0].a"),
    "huge when written out": (part(a=shared(8)), "message_bytes", ""),
    "large text": (said("m1", "x" * (DEFAULTS.message_bytes + 1)), "message_bytes", ""),
}


@pytest.mark.parametrize(("message", "limit", "path"), REFUSED.values(), ids=REFUSED)
async def test_hostile_shapes_are_refused(store: Store, session: Session, message: Any, limit: str, path: str) -> None:
    """A message that is too deep, too many or too long is refused by the limit's name before it is logged (MEM-4)."""
    for attempt in (session.append_message(message), session.append_messages([said("ok"), message])):
        with pytest.raises(LimitExceededError) as raised:
            await attempt
        assert raised.value.limit == limit
        assert raised.value.maximum == getattr(DEFAULTS, limit)
        assert raised.value.path.startswith(path)
        assert len(raised.value.path) < 200
        assert len(str(raised.value)) < 400
    assert await log_of(store) == []
    await session.append_message(said("next"))
    assert await session.get_path_length() == 1


@pytest.mark.parametrize("parts", [None, {}, "x", 5, [{}], [{"type": None}], [[]]], ids=str)
async def test_parts_without_shape_are_refused(store: Store, session: Session, parts: Any) -> None:
    """Parts that are none, or have no type, are refused at the door and nothing is logged (MEM-4)."""
    with pytest.raises(InvalidMessageError):
        await session.append_message({"id": "m1", "role": "user", "parts": parts})
    assert await log_of(store) == []


@pytest.mark.parametrize("title", ["x" * 1_000_000, "x" * 4097])
async def test_long_titles_are_refused(store: Store, title: str) -> None:
    """A title of a megabyte is refused by the limit's name and no session is created (MEM-4)."""
    with pytest.raises(LimitExceededError) as raised:
        await SessionManager(store).create(title)
    assert (raised.value.limit, raised.value.maximum) == ("title_bytes", 4096)
    assert await log_of(store) == []


ACCEPTED: dict[str, Any] = {
    "deepest": part(a=nested(DEFAULTS.depth - 4), b=nested(DEFAULTS.depth - 4, key="k")),
    "most parts": {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "word"}] * 10_000},
    "longest names": {**said("i" * 512, "word"), "role": "r" * 512},
    "root": {**said("root", "word"), "role": "root"},
    "longest number": part(a=10**DEFAULTS.int_digits - 1),
    "longest negative number": part(a=1 - 10**DEFAULTS.int_digits),
    "shared": part(a=shared(4)),
    "two megabytes": said("m1", "word " * 400_000),
    "one word of five megabytes": said("m1", "w" * 5_000_000),
    "many keys": said("m1", "word", x={str(number): number for number in range(100_000)}),
    "empty": {"id": "m1", "role": "user", "parts": []},
    "a number for a text": {
        "id": "m1",
        "role": "user",
        "parts": [{"type": "text", "text": 1 - 10**DEFAULTS.int_digits}, {"type": "text", "text": "word"}],
    },
    "strange types": {
        "id": "m1",
        "role": "user",
        "parts": [{"type": ""}, {"type": "\0"}, {"type": "text", "text": {}}],
    },
    "control characters": said("m1", "".join(map(chr, range(256))) + " word"),
    "strange keys": said("m1", "word", **{"": 1, "\0": 2, "a.b[0]": 3, "id ": 4, "__class__": 5}),
}


@pytest.mark.parametrize("message", ACCEPTED.values(), ids=ACCEPTED)
async def test_whatever_is_accepted_works_everywhere(store: Store, session: Session, message: Any) -> None:
    """A message below the limits reads back equal and can be searched, listed, rebuilt and verified (MEM-4)."""
    await session.append_message(said("before"))
    result = await session.append_message(message)
    assert not (await session.append_message(message)).inserted
    await session.append_message(said("after", "after all"))
    for _ in range(2):
        (_, read, _) = await session.get_history()
        assert read.to_dict() == message
        assert read.to_dict().keys() == message.keys()
        assert [node.parent_id for node in await collect(session.tree())] == [None, "before", result.message.id]
        assert len(await collect(session.events())) == 3
        assert [hit.id for hit in await session.search("word")] == ([read.id] if " word" in f" {read.text} " else [])
        assert [hit.id for hit in await session.search("after all")] == ["after"]
        assert len(await SessionManager(store).list()) == 1
        await rebuild(store)
    assert (await verify(store)).ok


async def test_refusals_do_not_depend_on_the_place(store: Store, session: Session) -> None:
    """Hostile values are refused beside the parts and in an append's metadata as well (MEM-4)."""
    for value in (nested(100_000), endless(), shared(8), 10**5_000, {1}, float("nan")):
        for attempt in (
            session.append_message(said("m1", x=value)),
            session.append_message(said("m1"), metadata={"x": value}),
        ):
            with pytest.raises(EventStoreError):
                await attempt
    assert await log_of(store) == []
