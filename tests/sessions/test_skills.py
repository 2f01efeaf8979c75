from __future__ import annotations

from typing import Any

import pytest

from eventstore import BlockNotFoundError, MessageAppended, NotSupportedError, SessionDeletedError
from replay import rebuild, verify
from sessions import Session, SessionManager, Store, StoredSession, open_store
from tests.projections.skill_messages import answer, call
from tests.sessions.providers import Entries, Note
from tests.sessions.talk import ids, said

BODY = "Boil the water, warm the pot, and wait for four minutes before you pour."
MARKER = "[skill unloaded: tea]"


def skilled(store: Store, session_id: str = "chat", **entries: str) -> Session:
    """Return a session with a block of skills."""
    provider = Entries(**(entries or {"tea": BODY}))
    return Session.create(store).for_session(session_id).with_context("skills", provider=provider)


def loading(name: str, key: str = "tea", body: Any = BODY, **more: Any) -> dict[str, Any]:
    """Return a message with the body of a skill."""
    return answer(name, call("load_context", "skills", key, body, **more))


async def loaded(session: Session) -> set[str]:
    """Return the keys of the loaded skills, as a session opened anew has them too."""
    keys = await session.get_loaded_skill_keys()
    store = session._storage.store  # type: ignore[union-attr]
    assert await skilled(store, session.session_id).get_loaded_skill_keys() == keys
    return keys


def outputs(messages: list[Any]) -> list[Any]:
    """Return what the parts of messages hold as output."""
    return [part["output"] for message in messages for part in message.parts if "output" in part]


async def test_skill_under_a_summary(store: Store) -> None:
    """A skill stays loaded when a summary hides its body, is read again, and unloading leaves it in the log (CTX-6)."""
    session = skilled(store)
    await session.append_messages([said("m1"), said("m2")])
    tools = await session.tools()
    assert await tools["load_context"].execute({"label": "skills", "key": "tea"}) == BODY
    await session.append_message(loading("m3"))
    await session.append_messages([said(f"m{n}") for n in range(4, 8)])
    await session.add_compaction("in short", "m2", "m6")
    assert await loaded(session) == {"skills:tea"}
    assert BODY not in outputs(await session.get_history())
    assert await session.load_skill("skills", "tea") == BODY
    assert await session.unload_skill("skills", "tea")
    assert await loaded(session) == set()
    assert outputs([await session.get_message("m3")]) == [MARKER]
    events = [envelope.event async for envelope in session.events()]
    stored = [event.message for event in events if isinstance(event, MessageAppended)]
    assert BODY in [part.get("output") for message in stored for part in message["parts"]]
    await session.delete_messages(["m3"])
    assert await loaded(session) == set()
    await rebuild(store)
    assert await loaded(session) == set()
    assert (await verify(store)).ok


async def test_hidden_skill_in_a_reopened_store(url: str) -> None:
    """A skill that a summary hides can be loaded in full again and then unloaded, also after reopening (CTX-6)."""

    async def check(store: Store, keys: set[str], seen: list[str]) -> Session:
        session = skilled(store)
        assert await loaded(session) == keys
        assert outputs(await session.get_model_messages()) == seen
        return session

    async with open_store(url) as store:
        session = skilled(store)
        await session.append_messages([said("m1"), said("m2"), loading("m3"), *(said(f"m{n}") for n in range(4, 8))])
        await session.add_compaction("in short", "m2", "m6")
    async with open_store(url) as store:
        session = await check(store, {"skills:tea"}, [])
        asked = {"label": "skills", "key": "tea"}
        assert await (await session.tools())["load_context"].execute(asked) == BODY
        await session.append_message(loading("m8"))
        await check(store, {"skills:tea"}, [BODY])
        told = await (await session.tools())["unload_context"].execute(asked)
        assert told == 'Unloaded "tea" from skills. Context reclaimed.'
    async with open_store(url) as store:
        session = await check(store, set(), [MARKER])
        await session.delete_messages(["m3"])
        await check(store, set(), [MARKER])
        await rebuild(store)
        await check(store, set(), [MARKER])
        assert await session.load_skill("skills", "tea") == BODY
        events = [envelope.event async for envelope in session.events()]
        assert sum(BODY in str(event.message) for event in events if isinstance(event, MessageAppended)) == 2
    async with open_store(url) as store:
        await check(store, {"skills:tea"}, [MARKER])


async def test_loaded_since_it_was_given_out(store: Store) -> None:
    """A skill is loaded from when it was given out, until its copies that were stored since are gone."""
    session = skilled(store)
    assert await session.load_skill("skills", "nope") is None
    await session.load_skill("skills", "tea")
    assert await loaded(session) == {"skills:tea"}
    await session.append_message(loading("a"))
    await session.append_message(loading("b"), None)
    await session.delete_messages(["a"])
    assert await loaded(session) == {"skills:tea"}
    await session.delete_messages(["b"])
    assert await loaded(session) == set()


async def test_clearing_unloads(store: Store) -> None:
    """Clearing the messages unloads all skills, also those that no message holds."""
    session = skilled(store)
    await session.load_skill("skills", "tea")
    await session.clear_messages()
    assert await loaded(session) == set()
    assert not await session.unload_skill("skills", "tea")


async def test_every_copy_shows_the_marker_however_it_is_read(store: Store) -> None:
    """Every copy of an unloaded skill, wherever and however it is read, shows the marker and is else as it was."""
    session = skilled(store)
    static = {**loading("b")["parts"][0], "type": "tool-load_context", "custom": {"keep": True}}
    await session.append_messages([said("r"), loading("a")])
    await session.append_message({**answer("b", {"type": "text", "text": "Here:"}, static), "meta": 7}, "r")
    assert await session.unload_skill("skills", "tea")
    provider = StoredSession(store, "chat")
    reads: list[list[Any]] = [
        await session.get_history(),
        await session.get_history(limit=1),
        [message async for message in session.history()],
        [message async for batch in session.history_batches(batch_size=1) for message in batch],
        (await session.get_recent_history(10_000)).messages,
        await session.get_branches("r"),
        [node.message async for node in session.tree()],
        [await session.get_latest_leaf(), await session.get_message("a")],
        await provider.get_history("a"),
    ]
    for messages in reads:
        assert outputs(messages)
        assert set(outputs(messages)) == {MARKER}
    raw = [message async for message in provider.history(overlays=False)]
    assert outputs(raw) == [BODY]
    leaf = await session.get_latest_leaf()
    assert leaf is not None
    assert leaf.to_dict() == {**answer("b", {"type": "text", "text": "Here:"}, {**static, "output": MARKER}), "meta": 7}


async def test_estimate_follows_the_view(store: Store) -> None:
    """Unloading makes the estimate for a history smaller by what the marker saves, where the body is in view."""
    session, provider = skilled(store), StoredSession(store, "chat")
    await session.append_messages([said("m1"), loading("m2"), said("m3")])
    before = await provider.token_estimate()
    await session.unload_skill("skills", "tea")
    after = await provider.token_estimate()
    plain = Session.create(store).for_session("plain")
    await plain.append_messages([said("m1"), loading("m2", body=MARKER), said("m3")])
    assert after == await StoredSession(store, "plain").token_estimate() < before
    await session.add_compaction("in short", "m1", "m2")
    await plain.add_compaction("in short", "m1", "m2")
    assert await provider.token_estimate() == await StoredSession(store, "plain").token_estimate()


async def test_what_is_shown_can_be_sent_back(store: Store) -> None:
    """A message that is sent back as it was shown, or as it was appended, is no change."""
    session = skilled(store)
    await session.append_message(loading("m"))
    await session.unload_skill("skills", "tea")
    version = await session.version()
    shown = (await session.get_history())[0]
    await session.update_message(shown)
    assert not (await session.append_message(shown)).inserted
    assert not (await session.upsert_message(loading("m"))).inserted
    assert await session.version() == version
    assert outputs(await session.get_history()) == [MARKER]


async def test_edits_keep_what_was_unloaded(store: Store) -> None:
    """An edit of a message with an unloaded copy leaves it unloaded, and an edit that takes the body out unloads it."""
    session = skilled(store)
    await session.append_message(loading("m"))
    await session.unload_skill("skills", "tea")
    await session.update_message({**loading("m"), "metadata": {"seen": True}})
    assert outputs(await session.get_history()) == [MARKER]
    assert await loaded(session) == set()
    await session.append_message(loading("n"))
    assert await loaded(session) == {"skills:tea"}
    await session.update_message({**loading("m"), "metadata": {"seen": False}})
    assert await loaded(session) == {"skills:tea"}
    await session.update_message(said("n"))
    assert await loaded(session) == set()


async def test_calls_in_messages_count_as_they_came(store: Store) -> None:
    """Messages that hold calls which loaded and unloaded skills tell what is loaded, in their order and once."""
    session = skilled(store)
    load, unload = loading("x")["parts"][0], call("unload_context", "skills", "tea", "Unloaded", call_id="u")
    await session.append_message(answer("a", load, unload))
    assert await loaded(session) == set()
    await session.append_message(answer("b", unload, {**load, "toolCallId": "second"}))
    assert await loaded(session) == {"skills:tea"}
    await session.update_message({**answer("a", load, unload), "metadata": {"seen": True}})
    assert await loaded(session) == {"skills:tea"}
    assert outputs(await session.get_history()) == [MARKER, "Unloaded", "Unloaded", BODY]


@pytest.mark.parametrize("body", [{"text": BODY}, [BODY, {"more": 1}], 5, True])
async def test_body_that_is_no_text_counts(store: Store, body: Any) -> None:
    """A call that was answered by an object, as some programs store it, loads its skill, and unloading hides it all."""
    session = skilled(store)
    await session.append_message(loading("m", body=body))
    assert await loaded(session) == {"skills:tea"}
    assert await session.unload_skill("skills", "tea")
    assert outputs(await session.get_history()) == [MARKER]
    await rebuild(store)
    assert (await loaded(session), outputs(await session.get_history())) == (set(), [MARKER])


@pytest.mark.parametrize(
    "part",
    [
        call("load_context", "skills", "tea", "Not found: tea"),
        call("load_context", "skills", "tea", "Error: away"),
        call("load_context", "skills", "tea", MARKER),
        call("load_context", "skills", "tea", None),
        call("load_context", "skills", "tea", BODY, state="output-error"),
        call("load_context", "skills", 1, BODY),  # type: ignore[arg-type]
        call("other", "skills", "tea", BODY),
        {"type": "text", "text": "load_context", "input": {"label": "skills", "key": "tea"}, "output": BODY},
        {"type": "tool-load_context", "input": None, "output": BODY},
    ],
)
async def test_calls_that_loaded_nothing(store: Store, part: dict[str, Any]) -> None:
    """A call that failed, or that is no call of the tool, loads no skill."""
    session = skilled(store)
    await session.append_message(answer("m", part))
    assert await loaded(session) == set()


async def test_keys_are_pairs(store: Store) -> None:
    """Two skills whose label and key look the same when they are put together are two."""
    session = Session.create(store).with_context("a", provider=Entries(**{"b:c": "1"}))
    session.with_context("a:b", provider=Entries(c="2"))
    await session.load_skill("a", "b:c")
    assert not await session.unload_skill("a:b", "c")
    assert await session.get_loaded_skill_keys() == {"a:b:c"}
    assert await session.remove_context("a")
    assert await session.get_loaded_skill_keys() == set()


async def test_fork_copies_what_is_shown(store: Store) -> None:
    """In a fork the skills of its messages are loaded that were, and those that were unloaded show the marker."""
    session = skilled(store, tea=BODY, bike="Check the tyres.")
    await session.append_messages([loading("a"), loading("b", "bike", "Check the tyres.")])
    await session.unload_skill("skills", "tea")
    await session.load_skill("skills", "tea")
    fork = skilled(store, (await SessionManager(store).fork("chat", "b", "Fork")).id)
    assert outputs(await fork.get_history()) == [MARKER, "Check the tyres."]
    assert await loaded(fork) == {"skills:bike"}


async def test_deleted_session_loads_nothing(store: Store) -> None:
    """No skill of a deleted session is loaded, and none can be."""
    session = skilled(store)
    await session.append_message(loading("m"))
    await SessionManager(store).delete("chat")
    assert await loaded(session) == set()
    with pytest.raises(SessionDeletedError):
        await session.load_skill("skills", "tea")


async def test_wrong_blocks(store: Store) -> None:
    """Loading from a block that is not there, or has no skills, is refused, and nothing of them can be unloaded."""
    session = Session.create(store).with_context("memory", provider=Note("x"))
    with pytest.raises(BlockNotFoundError):
        await session.load_skill("nope", "tea")
    with pytest.raises(NotSupportedError):
        await session.load_skill("memory", "tea")
    assert not await session.unload_skill("nope", "tea")
    assert not await session.unload_skill("memory", "tea")


async def test_messages_without_skills_leave_no_trace(store: Store) -> None:
    """A session that has nothing to do with skills has no row about them."""
    session = skilled(store)
    await session.append_messages([said("a", "load_context is a name"), said("b")])
    await session.update_message(said("a", "edited"))
    await session.delete_messages(["b"])
    await session.clear_messages()
    projection = next(one for one in store.log.projections if one.name == "skills")
    rows = await store.log.read(lambda tx: list(projection.dump(tx)))  # type: ignore[attr-defined]
    assert [row for row in rows if row[0] != "skill_versions"] == []
    assert ids(await session.get_history()) == []
