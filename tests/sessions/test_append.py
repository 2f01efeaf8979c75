from __future__ import annotations

import pytest

from eventstore import (
    ANY,
    NO_STREAM,
    STREAM_EXISTS,
    InvalidArgumentError,
    InvalidMessageError,
    ParentNotFoundError,
    ReservedIdError,
    VersionConflictError,
)
from sessions import AUTO, Session, SessionManager, Store
from tests.sessions.talk import chain, collect, ids, log_of, said, stored_parents


async def test_result_tells_what_was_stored(session: Session) -> None:
    """An append returns the message, that it is new, and the version and position of its event."""
    first = await session.append_message(said("m1", "hi"))
    second = await session.append_message(said("m2", "ho"))
    assert (first.message.to_dict(), first.inserted, first.version, first.position) == (said("m1", "hi"), True, 1, 1)
    assert (second.message.id, second.inserted, second.version, second.position) == ("m2", True, 2, 2)
    assert [e.recorded_at async for e in session.events()] == [first.message.created_at, second.message.created_at]


async def test_omitted_parent_is_the_latest_leaf(session: Session) -> None:
    """A message without a parent is appended under the message that was appended last."""
    await chain(session, "m1", "m2", "m3")
    await session.append_message(said("x"), "m1")
    await session.append_message(said("y"), AUTO)
    assert await stored_parents(session) == {"m1": None, "m2": "m1", "m3": "m2", "x": "m1", "y": "x"}


async def test_none_is_a_new_root(session: Session) -> None:
    """A message with the parent None begins a tree of its own, which is not the same as no parent given."""
    await chain(session, "m1", "m2")
    await session.append_message(said("r"), None)
    assert ids(await session.get_history()) == ["r"]
    assert ids(await session.get_history("m2")) == ["m1", "m2"]


@pytest.mark.parametrize("parent", ["nope", "m2_", "", "M2", "m2 ", "m3", "z1", "compaction_m2"])
async def test_unknown_or_foreign_parent_is_refused(store: Store, session: Session, parent: str) -> None:
    """A parent id that does not exist, lives in another session, or is the message itself is refused whole (TREE-1)."""
    await chain(session, "m1", "m2")
    await Session.create(store).for_session("other").append_message(said("z1"))
    before = await log_of(store)
    with pytest.raises(ParentNotFoundError) as raised:
        await session.append_message(said("m3"), parent)
    assert (raised.value.session_id, raised.value.parent_id, raised.value.code) == ("chat", parent, "parent_not_found")
    assert await log_of(store) == before
    assert ids(await session.get_history()) == ["m1", "m2"]
    latest = await session.get_latest_leaf()
    assert latest is not None
    assert latest.id == "m2"


async def test_unknown_parent_creates_no_session(store: Store, session: Session) -> None:
    """A first message that is refused leaves no session behind (TREE-1)."""
    with pytest.raises(ParentNotFoundError):
        await session.append_message(said("m1"), "nope")
    assert await SessionManager(store).list() == []
    assert await session.version() == 0


async def test_parent_in_the_same_session_on_another_branch(session: Session) -> None:
    """Any message of the session may be the parent, on whatever branch it is."""
    await chain(session, "m1", "m2", "m3")
    await session.append_message(said("b2"), "m1")
    await session.append_message(said("m4"), "m3")
    assert ids(await session.get_history()) == ["m1", "m2", "m3", "m4"]
    assert ids(await session.get_history("b2")) == ["m1", "b2"]


@pytest.mark.parametrize("reserved", ["compaction_", "compaction_1", "compaction_\ud800"])
async def test_reserved_ids_are_refused(store: Store, session: Session, reserved: str) -> None:
    """An id that belongs to overlays is refused, alone and in a list, and nothing is written."""
    for attempt in (session.append_message(said(reserved)), session.append_messages([said("m1"), said(reserved)])):
        with pytest.raises(ReservedIdError) as raised:
            await attempt
        assert raised.value.message_id == reserved.replace("\ud800", "\ufffd")
    assert await log_of(store) == []


async def test_similar_ids_are_not_reserved(session: Session) -> None:
    """An id that only looks like an overlay's is an ordinary one."""
    await chain(session, "compaction", "Compaction_1", "my_compaction_1", " compaction_1")
    assert len(await session.get_history()) == 4


async def test_expected_version_holds(session: Session) -> None:
    """An append that expects the version the session is at is written."""
    result = await session.append_message(said("m1"), expected_version=0)
    result = await session.append_message(said("m2"), expected_version=result.version)
    assert result.version == await session.version() == 2


@pytest.mark.parametrize("expected", [0, 1, 3, 1 << 80, NO_STREAM])
async def test_wrong_expected_version_is_a_conflict(session: Session, store: Store, expected: int) -> None:
    """An append that expects another version, behind or ahead, is a conflict with both numbers; nothing is written."""
    await chain(session, "m1", "m2")
    with pytest.raises(VersionConflictError) as raised:
        await session.append_message(said("m3"), expected_version=expected)
    assert (raised.value.stream_id, raised.value.expected, raised.value.actual) == ("chat", expected, 2)
    assert len(await log_of(store)) == 2


async def test_expected_version_of_an_empty_session(session: Session) -> None:
    """A session without events is at version 0, and does not exist."""
    with pytest.raises(VersionConflictError):
        await session.append_message(said("m1"), expected_version=1)
    with pytest.raises(VersionConflictError):
        await session.append_message(said("m1"), expected_version=STREAM_EXISTS)  # type: ignore[arg-type]
    await session.append_message(said("m1"), expected_version=NO_STREAM)  # type: ignore[arg-type]
    await session.append_message(said("m2"), expected_version=STREAM_EXISTS)  # type: ignore[arg-type]
    await session.append_message(said("m3"), expected_version=ANY)  # type: ignore[arg-type]


@pytest.mark.parametrize("expected", [-1, True, "1", 1.0, [1]])
async def test_what_is_no_version_is_refused(session: Session, expected: object) -> None:
    """An expected version that can be none is refused before anything is written."""
    with pytest.raises(InvalidArgumentError) as raised:
        await session.append_message(said("m1"), expected_version=expected)  # type: ignore[arg-type]
    assert raised.value.argument == "expected"
    assert isinstance(raised.value, ValueError)


async def test_events_of_every_kind_count_as_versions(session: Session) -> None:
    """Choosing a branch moves the version that the next append must expect (CON-3)."""
    await chain(session, "m1", "m2")
    await session.select_leaf("m1")
    with pytest.raises(VersionConflictError):
        await session.append_message(said("m3"), expected_version=2)
    assert (await session.append_message(said("m3"), expected_version=3)).version == 4


async def test_conflict_is_told_before_an_unknown_parent(session: Session) -> None:
    """A writer that is behind hears of the conflict, whatever else its view has made wrong."""
    await chain(session, "m1", "m2")
    with pytest.raises(VersionConflictError):
        await session.append_message(said("m3"), "nope", expected_version=1)


async def test_metadata_goes_with_the_event(session: Session) -> None:
    """Metadata given with an append is kept in the envelope and is no part of the message."""
    await session.append_message(said("m1"), metadata={"actor": "ann", "trace": [1, {"a": -0.0}]})
    (envelope,) = await collect(session.events())
    assert envelope.metadata == {"actor": "ann", "trace": [1, {"a": -0.0}]}
    message = await session.get_message("m1")
    assert message is not None
    assert message.to_dict() == said("m1")


@pytest.mark.parametrize("metadata", [{"a": {1}}, {"a": float("nan")}, {1: "a"}])
async def test_metadata_must_be_json(session: Session, metadata: dict[str, object]) -> None:
    """Metadata that JSON has no place for is refused and nothing is written."""
    with pytest.raises(InvalidMessageError):
        await session.append_message(said("m1"), metadata=metadata)
    assert await session.version() == 0


@pytest.mark.parametrize("metadata", [["a"], "a", 1])
async def test_metadata_must_be_a_dict(session: Session, metadata: object) -> None:
    """Metadata that is no dict is refused, since nobody could read the event back."""
    with pytest.raises(InvalidArgumentError):
        await session.append_message(said("m1"), metadata=metadata)  # type: ignore[arg-type]
    assert await session.version() == 0


async def test_sessions_do_not_see_each_other(store: Store) -> None:
    """The same ids in two sessions are two trees."""
    one, two = (Session.create(store).for_session(name) for name in ("one", "two"))
    await one.append_messages([said("m1", "a"), said("m2", "b")])
    await two.append_messages([said("m2", "c"), said("m1", "d")])
    assert [m.text for m in await one.get_history()] == ["a", "b"]
    assert [m.text for m in await two.get_history()] == ["c", "d"]
    assert (await one.append_message(said("m3"))).version == (await two.append_message(said("m3"))).version == 3
