"""Bodies of skills in parts of their own, and calls as other programs write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay import rebuild, verify
from sessions import Session, SessionManager, Store, StoredSession
from tests.projections.skill_messages import answer, answering, asking, call
from tests.sessions.talk import said
from tests.sessions.test_skills import BODY, MARKER, loaded, skilled

ASKED: dict[str, Any] = {"label": "skills", "key": "tea"}


def load(name: str, key: str = "tea", **more: Any) -> dict[str, Any]:
    """Return a message with a call for a skill that it does not hold the answer to."""
    return answer(name, asking("load_context", "skills", key, **more))


async def bodies(session: Session) -> list[Any]:
    """Return the answers that a history shows, as a rebuilt store shows them too."""
    messages = await session.get_history()
    await rebuild(session._storage.store)  # type: ignore[union-attr]
    assert await session.get_history() == messages
    return [
        part[name]
        for message in messages
        for part in message.parts
        for name in ("output", "result")
        if part.get(name) is not None
    ]


@pytest.mark.parametrize("held_as", ["result", "output"])
@pytest.mark.parametrize(
    "about",
    [
        {},
        {"toolName": "load_context"},
        {"type": "tool-load_context", "state": "output-available"},
        {"type": "dynamic-tool", "toolName": "load_context"},
    ],
)
async def test_answer_in_a_message_of_its_own(store: Store, held_as: str, about: dict[str, Any]) -> None:
    """A body in a message of its own is a copy: it loads the skill, and unloading shows the marker in every view."""
    session, provider = skilled(store), StoredSession(store, "chat")
    tools = await session.tools()
    body = await tools["load_context"].execute(ASKED)
    await session.append_messages([said("u"), load("a"), answering("t", body, held_as=held_as, **about)])
    assert await loaded(session) == {"skills:tea"}
    before = await provider.token_estimate()
    told = await tools["unload_context"].execute(ASKED)
    assert told == 'Unloaded "tea" from skills. Context reclaimed.'
    assert await loaded(session) == set()
    assert await provider.token_estimate() < before
    shown = answering("t", MARKER, held_as=held_as, **about)
    reads: list[list[Any]] = [
        await session.get_history(),
        await session.get_model_messages(),
        [message async for message in session.history()],
        (await session.get_recent_history(10_000)).messages,
        [node.message async for node in session.tree()],
        [await session.get_message("t")],
    ]
    for messages in reads:
        assert messages[-1].to_dict() == shown
        assert BODY not in str([message.to_dict() for message in messages])
    assert await bodies(session) == [MARKER]
    assert (await verify(store)).ok


async def test_deleting_the_answer_unloads(store: Store) -> None:
    """A skill is loaded as long as the message with its body is there, whatever becomes of that with the call."""
    session = skilled(store)
    await session.load_skill("skills", "tea")
    await session.append_messages([load("a"), answering("t", BODY)])
    await session.delete_messages(["a"])
    assert await loaded(session) == {"skills:tea"}
    await session.delete_messages(["t"])
    assert await loaded(session) == set()
    await session.append_message(answering("t2", BODY))
    assert await loaded(session) == set()


async def test_several_calls_at_once(store: Store) -> None:
    """Calls of one message that are answered one after the other are told from each other by their ids."""
    session = skilled(store, tea=BODY, bike="Check the tyres.")
    asked = [asking("load_context", "skills", key, call_id=key) for key in ("tea", "bike", "map")]
    await session.append_messages(
        [
            answer("a", *asked),
            answering("t1", "Check the tyres.", call_id="bike"),
            answering("t2", BODY, call_id="tea"),
            answering("t3", "Not found: map", call_id="map"),
        ]
    )
    assert await loaded(session) == {"skills:tea", "skills:bike"}
    await session.unload_skill("skills", "bike")
    assert await bodies(session) == ["[skill unloaded: bike]", BODY, "Not found: map"]


async def test_unloading_that_is_answered_elsewhere(store: Store) -> None:
    """A stored call that unloads takes effect with its answer, as calls in messages do."""
    session = skilled(store)
    await session.append_messages([load("a"), answering("t", BODY)])
    await session.append_message(answer("b", asking("unload_context", "skills", "tea", call_id="u")))
    assert await loaded(session) == {"skills:tea"}
    await session.append_message(answering("t2", "Unloaded", call_id="u"))
    assert await loaded(session) == set()
    assert await bodies(session) == [MARKER, "Unloaded"]


async def test_ids_of_calls_that_are_used_again(store: Store) -> None:
    """An answer belongs to the newest call of its id, of whatever tool, and an edit makes no call newer."""
    session = skilled(store, tea=BODY, bike="Check the tyres.")
    weather = {"type": "tool-weather", "toolCallId": "c", "input": {}}
    await session.append_messages([load("a"), answering("t1", BODY), load("b", "bike")])
    await session.update_message({**load("a"), "metadata": {"seen": True}})
    await session.append_messages([answering("t2", "Check the tyres."), answer("w", weather), answering("t3", "sunny")])
    assert await loaded(session) == {"skills:tea", "skills:bike"}
    for key in ("tea", "bike"):
        assert await session.unload_skill("skills", key)
    assert await bodies(session) == [MARKER, "[skill unloaded: bike]", "sunny"]


async def test_calls_on_branches(store: Store) -> None:
    """Of calls with one id on two branches an answer belongs to the one that it hangs on."""
    session = skilled(store, tea=BODY, bike="Check the tyres.")
    await session.append_messages([said("u"), load("a")])
    await session.append_message(load("b", "bike"), "u")
    await session.append_message(answering("t1", BODY), "a")
    await session.append_message(answering("t2", "Check the tyres."), "b")
    await session.unload_skill("skills", "tea")
    assert await bodies(session) == ["Check the tyres."]
    on_the_other = await session.get_message("t1")
    assert on_the_other is not None
    assert on_the_other.to_dict() == answering("t1", MARKER)


async def test_edited_answer(store: Store) -> None:
    """An edit of an answer keeps what was unloaded, and one that takes the body out unloads it."""
    session = skilled(store)
    await session.append_messages([load("a"), answering("t", BODY)])
    await session.unload_skill("skills", "tea")
    await session.update_message({**answering("t", BODY), "metadata": {"seen": True}})
    assert await bodies(session) == [MARKER]
    await session.append_message(load("b"))
    await session.append_message(answering("t2", BODY))
    assert await loaded(session) == {"skills:tea"}
    await session.update_message(said("t2"))
    assert await loaded(session) == set()


async def test_shown_answer_can_be_sent_back(store: Store) -> None:
    """An answer that comes back with its marker is no change, and a fork shows the marker as well."""
    session = skilled(store)
    await session.append_messages([load("a"), answering("t", BODY), said("u")])
    await session.unload_skill("skills", "tea")
    version, shown = await session.version(), await session.get_history()
    await session.reconcile(shown)
    assert not (await session.upsert_message(shown[1])).inserted
    assert await session.version() == version
    fork = skilled(store, (await SessionManager(store).fork("chat", "u", "Fork")).id)
    assert await bodies(fork) == [MARKER]
    assert await loaded(fork) == set()


@pytest.mark.parametrize("is_apart", [False, True])
async def test_input_as_json_text(store: Store, *, is_apart: bool) -> None:
    """The input of a call may be the JSON text that some APIs give."""
    session = skilled(store)
    if is_apart:
        await session.append_messages([load("a", input=json.dumps(ASKED)), answering("t", BODY)])
    else:
        await session.append_message(answer("a", call("load_context", "", "", BODY, input=json.dumps(ASKED))))
    assert await loaded(session) == {"skills:tea"}
    assert await session.unload_skill("skills", "tea")
    assert await bodies(session) == [MARKER]


@pytest.mark.parametrize(
    "given",
    ["", "{", "[" * 100_000, "null", '"tea"', '{"label": "skills"}', '{"label": "skills", "key": 1}', "1e999", [], 5],
)
async def test_input_that_names_no_skill(store: Store, given: Any) -> None:
    """A call whose input names no skill loads none, and its answer is nobody else's."""
    session = skilled(store)
    await session.append_messages([load("a"), answering("t", BODY)])
    await session.append_message(answer("b", call("load_context", "", "", "other", input=given)))
    await session.append_messages([load("d", input=given), answering("t2", "another")])
    await session.unload_skill("skills", "tea")
    assert await bodies(session) == [MARKER, "other", "another"]


@pytest.mark.parametrize(
    ("key", "keys"), [("\\ud800", {"\ufffd"}), ("\\u0000", set()), ("\\ud83c\\udf75", {"\U0001f375"})]
)
async def test_strange_key_in_json_text(store: Store, key: str, keys: set[str]) -> None:
    """A key that a store cannot hold as it is harms nothing when it stands in JSON text."""
    session = skilled(store)
    await session.append_messages([load("a", input=f'{{"label": "skills", "key": "{key}"}}'), answering("t", BODY)])
    assert await loaded(session) == {f"skills:{held}" for held in keys}
    assert [await session.unload_skill("skills", held) for held in keys] == [True] * len(keys)
    assert (await verify(store)).ok


async def test_skill_whose_body_is_not_stored(store: Store) -> None:
    """The tool does not claim that it made room when no stored message showed the body."""
    session = skilled(store)
    tools = await session.tools()
    await tools["load_context"].execute(ASKED)
    told = await tools["unload_context"].execute(ASKED)
    assert told == 'Unloaded "tea" from skills. Nothing was taken out of the conversation.'
    assert await tools["unload_context"].execute(ASKED) == 'Skill "tea" is not currently loaded in "skills".'
