from __future__ import annotations

import json
from typing import Any

import pytest

from eventstore.errors import InvalidMessageError, LimitExceededError
from replay import rebuild, verify
from sessions import Message, Session, SessionManager, Store, StoredSession
from sessions.exporters import FORMATS
from tests.sessions.compactions import Frames
from tests.sessions.exporters.exports import exported
from tests.sessions.talk import collect, ids, said

LONE = ["\ud800", "\udbff", "\udc00", "\udfff", "a\ud82db", "백트래\ud82d·깊이", "\udc00\ud800", "\ud800" * 3]
WHOLE = ["🙂", "👩‍👩‍👧‍👦", "é\u0301", "\U0010ffff", "\ufffd", "𝄞" * 10]


def replaced(text: str) -> str:
    """Return a text with its lone surrogates replaced."""
    return "".join("\ufffd" if 0xD800 <= ord(character) < 0xE000 else character for character in text)


@pytest.mark.parametrize("lone", LONE, ids=ascii)
async def test_lone_surrogates_are_replaced_at_the_door(store: Store, session: Session, lone: str) -> None:
    """A lone surrogate in a text, a key, a title or an id becomes U+FFFD, and whatever comes later works (SQL-3)."""
    manager = SessionManager(store)
    tool = {"type": "tool-x", "input": {lone: [lone, {"a": lone}]}}
    message = {"id": f"m{lone}", "role": "user", "parts": [{"type": "text", "text": lone}, tool]}
    expected = json.loads(replaced(json.dumps(message, ensure_ascii=False)))
    given = await session.append_message(message)
    assert given.message.to_dict() == expected
    made = await manager.create(f"title {lone}", id=f"s{lone}", model=lone)
    assert (made.id, made.name, made.model) == tuple(map(replaced, (f"s{lone}", f"title {lone}", lone)))
    await session.append_message(said("normal", "a normal message"))
    assert [m.to_dict() for m in await session.get_history()] == [expected, said("normal", "a normal message")]
    assert [hit.id for hit in await session.search("normal")] == ["normal"]
    assert [hit.id for hit in await session.search(f"{lone} normal")] in (["normal"], [])
    assert {info.name for info in await manager.list()} == {made.name, "chat"}
    assert (await manager.get(f"s{lone}")) == made
    await rebuild(store)
    assert (await verify(store)).ok
    found = await session.get_message(f"m{lone}")
    assert found is not None
    json.dumps(found.to_dict(), ensure_ascii=False).encode()


@pytest.mark.parametrize("name", FORMATS)
async def test_exports_and_followers_get_clean_text(store: Store, name: str) -> None:
    """What is exported, or followed live, of a session with lone surrogates is valid UTF-8 in every format (SQL-3)."""
    lone = LONE[5]
    session = Session.create(store).for_session(f"s{lone}")
    following = session.subscribe(0)
    await SessionManager(store).create(f"title {lone}", id=f"s{lone}")
    tool = {"type": "tool-x", "toolCallId": lone, "input": {lone: lone}, "output": lone, "state": "output-available"}
    await session.append_message({"id": "m1", "role": "assistant", "parts": [{"type": "text", "text": lone}, tool]})
    await session.append_message(said("m2", lone))
    text = await exported(store, f"s{lone}", name)
    assert replaced(lone) in text
    assert text.encode().decode() == text
    seen = [await anext(following) for _ in range(3)]
    await following.aclose()
    assert [envelope.type for envelope in seen] == ["session_created", "message_appended", "message_appended"]
    json.dumps([str(envelope.event) for envelope in seen], ensure_ascii=False).encode()


@pytest.mark.parametrize("text", WHOLE, ids=ascii)
async def test_whole_characters_are_unchanged(session: Session, text: str) -> None:
    """Pairs, emoji, joined sequences and U+FFFD itself come back as they were given (SQL-3)."""
    message: dict[str, Any] = {"id": text, "role": "user", "parts": [{"type": "text", "text": text, text: text}]}
    await session.append_message(message)
    found = await session.get_message(text)
    assert found is not None
    assert found.to_dict() == message


async def test_two_halves_are_a_whole(session: Session) -> None:
    """Two surrogates that belong together are the character they stand for (SQL-3)."""
    halves = "\ud83d\ude42"
    await session.append_message(said("m1", f"a {halves} b \ud83d c"))
    found = await session.get_message("m1")
    assert found is not None
    assert found.text == "a 🙂 b \ufffd c"


async def test_lookups_are_cleaned_alike(session: Session) -> None:
    """An id is found by the same text that it was given as (SQL-3)."""
    await session.append_message(said("m\ud800"))
    await session.append_message(said("m2"), "m\ud800")
    await session.append_message(Message(id="m\udc00x", role="user", parts=[]))
    assert ids(await session.get_branches("m\ud800")) == ["m2"]
    assert ids(await session.get_history("m2")) == ["m\ufffd", "m2"]
    await session.select_leaf("m\ud800")
    assert ids(await collect(session.history())) == ["m\ufffd"]
    assert await session.get_path_length("m\udc00x") == 3


async def test_status_frames_have_the_id_that_is_stored(store: Store) -> None:
    """Frames of a session go to the channel of its id as it is stored, and can be sent (SQL-3)."""
    frames = Frames()
    for session in (
        Session.create(store).for_session("s\ud800"),
        SessionManager(store).get_session("s\ud800"),
        Session.create(StoredSession(store, "s\ud800")),
    ):
        await session.with_publisher(frames).append_message(said("m"))
        channel, frame = frames.sent[-1]
        assert (channel, frame["sessionId"], session.session_id) == ("session:s\ufffd", "s\ufffd", "s\ufffd")


async def test_error_frames_can_be_sent(session: Session) -> None:
    """What a function says of its failure is told in a frame that can be sent, whatever it says (SQL-3)."""
    frames = Frames()

    def fail(_messages: list[Message], _context: object) -> None:
        raise ValueError("no \ud800")

    session.with_publisher(frames).on_compaction(fail)
    await session.append_message(said("m"))
    with pytest.raises(ValueError, match="no"):
        await session.compact()
    (error,) = (frame for _, frame in frames.sent if "error" in frame)
    assert error["error"] == "no \ufffd"


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"type": "text", "a\ud800": {"b\udc00": object()}}, "parts[0].a\ufffd.b\ufffd"),
        ({"type": "text", "a\ud800": dict.fromkeys(("\ud800", "\udc00"))}, "parts[0].a\ufffd"),
        ({"type": "text", "k" * 1_000: object()}, "parts[0]." + "k" * 1_000),
    ],
    ids=["value", "keys", "long"],
)
async def test_path_of_a_bad_value_can_be_sent(session: Session, part: dict[str, Any], path: str) -> None:
    """The path of a bad value has no lone surrogates, and of a long one the error tells the beginning (SQL-3)."""
    with pytest.raises(InvalidMessageError) as refused:
        await session.append_message({"id": "m", "role": "user", "parts": [part]})
    assert refused.value.path == path
    assert len(str(refused.value).encode()) < 500


async def test_path_of_what_is_too_deep_can_be_sent(session: Session) -> None:
    """The path to what is nested too deep has no lone surrogates (SQL-3)."""
    deep: object = {"x": 1}
    for _ in range(250):
        deep = {"\ud800": deep}
    with pytest.raises(LimitExceededError) as refused:
        await session.append_message({"id": "m", "role": "user", "parts": [{"type": "data", "deep": deep}]})
    assert refused.value.path.startswith("parts[0].deep.\ufffd.\ufffd")
    assert len(str(refused.value).encode()) < 500


async def test_metadata_is_cleaned(session: Session) -> None:
    """Lone surrogates in an append's metadata are replaced too (SQL-3)."""
    await session.append_message(said("m1"), metadata={"a\ud800": "\udc00"})
    (envelope,) = await collect(session.events())
    assert envelope.metadata == {"a\ufffd": "\ufffd"}
