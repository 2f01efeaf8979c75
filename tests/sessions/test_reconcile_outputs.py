"""Tools in a client's list of messages: outputs that are filled in, and copies that are behind."""

from __future__ import annotations

from typing import Any

import pytest

from replay import verify
from sessions import Message, ReconcileResult, Session, Store
from tests.sessions.clients import twice
from tests.sessions.talk import ids, said
from tests.sessions.test_skills import BODY, MARKER, loading, outputs, skilled
from tests.sessions.tool_talk import text

PENDING = ["input-streaming", "input-available", "approval-requested", "approval-responded"]
ENDS: dict[str, dict[str, Any]] = {
    "output-available": {"output": {"celsius": 4}},
    "output-error": {"errorText": "no such place"},
    "output-denied": {"approval": {"id": "p", "approved": False}},
}


def tool(call_id: str, state: str | None = "input-available", **other: Any) -> dict[str, Any]:
    """Return a part that calls a tool, with what belongs to its state."""
    named = {} if state is None else {"state": state}
    given = {"type": "tool-weather", "toolCallId": call_id, **named, "input": {"city": "Oslo"}}
    return given | ENDS.get(state or "", {}) | other


def done(call_id: str, output: Any = "found", **other: Any) -> dict[str, Any]:
    """Return a part that calls a tool and has its output."""
    return tool(call_id, "output-available", output=output, **other)


def answer(id: str, *parts: dict[str, Any], **other: Any) -> dict[str, Any]:
    """Return a message of the model."""
    return {"id": id, "role": "assistant", "parts": list(parts), **other}


async def asked(session: Session, *parts: dict[str, Any]) -> dict[str, Any]:
    """Store a question with its answer, and return the question."""
    question = said("u1", "how warm is it?")
    await session.append_messages([question, answer("a1", *parts)])
    return question


async def parts_of(session: Session, name: str = "a1") -> list[dict[str, Any]]:
    """Return the parts of a message as it is stored."""
    found = await session.get_message(name)
    assert found is not None
    return found.parts


@pytest.mark.parametrize("name", ["a1", "x"], ids=["same id", "other id"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("state", PENDING)
async def test_output_that_is_filled_in(session: Session, state: str, end: str, name: str) -> None:
    """What a tool came to in the client is taken over, under the stored id, whichever id the client has (TREE-6)."""
    question = await asked(session, tool("c1", state), text("One moment."))
    filled = answer(name, tool("c1", end), text("One moment."))
    assert await twice(session, [question, filled, said("u2")]) == ReconcileResult(1, 1, 1)
    assert ids(await session.get_history()) == ["u1", "a1", "u2"]
    assert await parts_of(session) == filled["parts"]


@pytest.mark.parametrize("name", ["a1", "x"], ids=["same id", "other id"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("state", PENDING)
async def test_output_is_not_taken_back(session: Session, state: str, end: str, name: str) -> None:
    """A copy from before a tool came to its end leaves the stored message as it is, and is no change (TREE-6)."""
    kept = [tool("c1", end), text("Four degrees.")]
    question = await asked(session, *kept)
    for behind in ([tool("c1", state)], [tool("c1", state), text("Four degrees.")], [tool("c1", None)]):
        assert await twice(session, [question, answer(name, *behind)]) == ReconcileResult(0, 0, 2)
    assert await twice(session, [question, answer(name, tool("c1", state)), said("u2")]) == ReconcileResult(1, 0, 2)
    assert await parts_of(session) == kept
    assert ids(await session.get_history()) == ["u1", "a1", "u2"]


@pytest.mark.parametrize("output", [{"output": None}, {}], ids=["null", "none"])
async def test_filled_output_never_becomes_empty(session: Session, output: dict[str, Any]) -> None:
    """A copy that is at its end without an output, or lacks the call, does not empty what is filled."""
    question = await asked(session, done("c1", {"celsius": 4}), text("Four."))
    part = {name: value for name, value in done("c1").items() if name != "output"} | output
    for copy in (answer("a1", part, text("Four.")), answer("a1", text("Four.")), answer("a1")):
        assert await twice(session, [question, copy]) == ReconcileResult(0, 0, 2)
    assert await parts_of(session) == [done("c1", {"celsius": 4}), text("Four.")]


@pytest.mark.parametrize(("earlier", "later"), list(zip(PENDING, [*PENDING[1:], "output-error"], strict=True)))
async def test_states_go_forwards_only(session: Session, earlier: str, later: str) -> None:
    """A later state of a call is taken over, be it an approval that was given, and an earlier one is not."""
    question = await asked(session, tool("c1", earlier))
    assert await twice(session, [question, answer("a1", tool("c1", later))]) == ReconcileResult(0, 1, 1)
    assert await twice(session, [question, answer("a1", tool("c1", earlier))]) == ReconcileResult(0, 0, 2)
    assert await parts_of(session) == [tool("c1", later)]


async def test_preliminary_output(session: Session) -> None:
    """An output that is still being made is followed by the next and the last one, and takes no last one back."""
    question = await asked(session, done("c1", "f", preliminary=True))
    for output, more in (("fo", {"preliminary": True}), ("found", {})):
        assert await twice(session, [question, answer("a1", done("c1", output, **more))]) == ReconcileResult(0, 1, 1)
    stale = answer("a1", done("c1", "fou", preliminary=True))
    assert await twice(session, [question, stale]) == ReconcileResult(0, 0, 2)
    assert await parts_of(session) == [done("c1")]


async def test_each_side_has_an_output(session: Session) -> None:
    """Of two tools that were run in two places both outputs are kept, and what the client adds to its copy too."""
    question = await asked(session, done("c1"), tool("c2"), text("So."))
    copy = answer("a1", tool("c1"), done("c2", 2), text("So."), done("c3", 3), metadata={"mood": "good"})
    assert await twice(session, [question, copy]) == ReconcileResult(0, 1, 1)
    assert await parts_of(session) == [done("c1"), done("c2", 2), text("So."), done("c3", 3)]
    found = await session.get_message("a1")
    assert found is not None
    assert found.metadata == {"mood": "good"}


async def test_answer_that_went_on_meanwhile(session: Session) -> None:
    """The list that brought an output, sent again after the answer went on, does not cut the answer off (CON-4)."""
    question = await asked(session, tool("c1"))
    given = [question, answer("a1", done("c1"))]
    assert await twice(session, given) == ReconcileResult(0, 1, 1)
    went_on = [done("c1"), {**text("Four degrees."), "state": "done"}, tool("c2")]
    await session.update_message(answer("a1", *went_on))
    assert await twice(session, given) == ReconcileResult(0, 0, 2)
    step, begun = {"type": "step-start"}, {**text("Four degrees."), "providerMetadata": {}}
    for copy in ([step, done("c1")], [step, done("c1"), begun]):
        assert await twice(session, [question, answer("a1", *copy)]) == ReconcileResult(0, 0, 2)
    assert await parts_of(session) == went_on
    filled = answer("x", done("c1"), begun, step, done("c2"))
    assert await twice(session, [question, filled]) == ReconcileResult(0, 1, 1)
    assert await parts_of(session) == filled["parts"]


async def test_output_from_before_the_answer_went_on(session: Session) -> None:
    """An output in a copy from before the answer went on is taken over, and what the answer went on with is kept."""
    question = await asked(session, tool("c1"), text("Meanwhile:"))
    assert await twice(session, [question, answer("a1", done("c1"))]) == ReconcileResult(0, 1, 1)
    assert await parts_of(session) == [done("c1"), text("Meanwhile:")]


async def test_edit_of_what_is_not_behind(session: Session) -> None:
    """A copy that takes nothing back is taken as it is: other texts, another output, more parts, other metadata."""
    question = await asked(session, done("c1"), text("Four."))
    for number, parts in enumerate(
        [[done("c1"), text("Five.")], [done("c1", "lost"), text("Five.")], [text("So:"), done("c1", "lost"), text("6")]]
    ):
        copy = answer("a1", *parts, metadata={"edit": number})
        assert await twice(session, [question, copy]) == ReconcileResult(0, 1, 1)
        found = await session.get_message("a1")
        assert found == Message(**copy)


async def test_question_with_fewer_parts(session: Session) -> None:
    """A question is its author's: an attachment that was taken out of it is gone, as no output is."""
    question = said("u1")
    question["parts"].append({"type": "file", "url": "https://example.com/oslo.png", "mediaType": "image/png"})
    await session.append_message(question)
    assert await twice(session, [said("u1")]) == ReconcileResult(0, 1, 0)
    assert await parts_of(session, "u1") == [text("hello")]


async def test_unfinished_text(session: Session) -> None:
    """A text that the client stopped reading is not put in place of the whole one, whichever id the client has."""
    whole = {**text("Four degrees."), "state": "done"}
    question = await asked(session, whole)
    for name, begun in (("a1", "Four"), ("x", "Four deg"), ("y", "")):
        stopped = answer(name, {"type": "step-start"}, {**text(begun), "state": "streaming"})
        assert await twice(session, [question, stopped]) == ReconcileResult(0, 0, 2)
        assert await parts_of(session) == [whole]
    assert await twice(session, [question, answer("z", {**text("Fourteen"), "state": "streaming"})]) == (
        ReconcileResult(1, 0, 1)
    )
    assert ids(await session.get_branches("u1")) == ["a1", "z"]


async def test_answer_that_is_saved_while_it_is_written(session: Session) -> None:
    """A list that comes with every few words of an answer gives one message with the last of them (LOG-6)."""
    question = await asked(session)
    words = "It is four degrees in Oslo".split()
    begun = [{**text(" ".join(words[:count])), "state": "streaming"} for count in range(1, len(words) + 1)]
    for part in begun:
        assert await session.reconcile([question, answer("a1", part)]) == ReconcileResult(0, 1, 1)
    stale = answer("a1", {**text("It is"), "state": "streaming"})
    assert await twice(session, [question, stale]) == ReconcileResult(0, 0, 2)
    assert await twice(session, [question, answer("a1", {**begun[-1], "state": "done"})]) == ReconcileResult(0, 1, 1)
    assert [message.text for message in await session.get_history()] == ["how warm is it?", " ".join(words)]


async def test_call_id_that_is_used_again(session: Session) -> None:
    """A call whose id was used in an earlier turn is another call, and neither gets the other's output (TREE-6)."""
    question = await asked(session, done("c1", "first"))
    again = [said("u2", "and now?"), answer("a2", tool("c1", input={"city": "Rome"}))]
    assert await twice(session, [question, answer("a1", done("c1", "first")), *again]) == ReconcileResult(2, 0, 2)
    filled = answer("x", done("c1", "second", input={"city": "Rome"}))
    assert await twice(session, [question, answer("y", done("c1", "first")), again[0], filled]) == (
        ReconcileResult(0, 1, 3)
    )
    assert outputs(await session.get_history()) == ["first", "second"]


@pytest.mark.parametrize(
    "parts",
    [[done("c1", input={"city": "Rome"})], [done("c1", "other")], [done("c1"), text("Five.")], [done("c2")]],
    ids=["input", "output", "text", "call"],
)
async def test_another_answer_with_a_call(session: Session, parts: list[dict[str, Any]]) -> None:
    """An answer that was made again is a branch and no edit, though the same call ids are in it (TREE-9)."""
    question = await asked(session, done("c1"), text("Four."))
    assert await twice(session, [question, answer("b1", *parts)]) == ReconcileResult(1, 0, 1)
    assert ids(await session.get_branches("u1")) == ["a1", "b1"]
    assert ids(await session.get_history()) == ["u1", "b1"]
    assert await parts_of(session) == [done("c1"), text("Four.")]


@pytest.mark.parametrize("stale_first", [False, True], ids=["behind", "before"])
async def test_stale_copy_beside_the_message(session: Session, stale_first: bool) -> None:  # noqa: FBT001 - a case
    """A second copy of a call beside the message itself is that message, and what follows hangs on it (TREE-6)."""
    question = await asked(session, done("c1"))
    copies = [answer("a1", done("c1")), answer("x", {"type": "step-start"}, tool("c1"))]
    given = [question, *(copies[::-1] if stale_first else copies), said("u2")]
    assert await twice(session, given) == ReconcileResult(1, 0, 3)
    assert ids(await session.get_history()) == ["u1", "a1", "u2"]
    assert await parts_of(session) == [done("c1")]


async def test_two_copies_under_other_ids(session: Session) -> None:
    """Two copies of a stored call, neither with its id, come to the same again once a message behind them is known."""
    question = await asked(session, tool("c1"))
    step: dict[str, Any] = {"type": "step-start"}
    given = [question, answer("x", tool("c1")), answer("y", tool("c1"), step), said("u2")]
    assert await twice(session, given) == ReconcileResult(1, 0, 3)
    given[2] = answer("y", step, done("c1"))
    assert await twice(session, given) == ReconcileResult(0, 1, 3)
    assert await parts_of(session) == [done("c1")]
    assert ids(await session.get_history()) == ["u1", "a1", "u2"]


async def test_two_copies_of_what_is_new(session: Session) -> None:
    """A call that stands twice in a list, before and after it was run, becomes one message with its output (TREE-6)."""
    question = said("u1")
    for number, copies in enumerate([(tool("c1"), done("c1")), (done("c2"), tool("c2"))]):
        given = [question, answer(f"a{number}", copies[0]), answer(f"b{number}", copies[1]), said(f"n{number}", "so")]
        assert await twice(session, given) == ReconcileResult(3 if number == 0 else 2, 0, 1 + number)
        assert outputs(await session.get_history()) == ["found"]
    same = [answer("c", tool("c3")), answer("c", done("c3"))]
    assert await twice(session, [question, *same]) == ReconcileResult(1, 0, 2)
    assert outputs(await session.get_history()) == ["found"]


async def test_results_as_messages_of_their_own(session: Session) -> None:
    """Calls and results in messages of their own, as other protocols have them, are known by their call ids too."""
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {}}
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "result": "4"}
    question = said("u1")
    given = [question, answer("a1", call), {"id": "t1", "role": "tool", "parts": [result]}]
    assert await twice(session, given) == ReconcileResult(3, 0, 0)
    other = [{**message, "id": f"x{number}"} for number, message in enumerate(given)]
    assert await twice(session, [*other, said("u2")]) == ReconcileResult(1, 0, 3)
    assert ids(await session.get_history()) == ["u1", "a1", "t1", "u2"]


@pytest.mark.parametrize("strange", [{"state": []}, {"state": {}}, {"toolCallId": 5}, {"toolCallId": None}], ids=str)
async def test_strange_tool_parts(session: Session, strange: dict[str, Any]) -> None:
    """Parts whose state or call id is of a type that nobody expects are compared and stored too (MEM-4)."""
    odd = tool("c1") | strange
    question = await asked(session, odd)
    assert await twice(session, [question, answer("a1", odd), said("u2")]) == ReconcileResult(1, 0, 2)
    assert await twice(session, [question, answer("a1", odd | {"output": 1})]) == ReconcileResult(0, 1, 1)
    assert await twice(session, [question, answer("a1", odd)]) == ReconcileResult(0, 0, 2)
    assert outputs(await session.get_history()) == [1]


async def test_skill_that_was_unloaded(store: Store) -> None:
    """The marker of an unloaded skill that a list brings back does not overwrite the skill's body (CTX-6)."""
    session = skilled(store)
    await session.append_messages([said("u1"), loading("a1")])
    assert await session.unload_skill("skills", "tea")
    shown = [message.to_dict() for message in await session.get_history()]
    assert outputs(await session.get_history()) == [MARKER]
    assert await twice(session, shown) == ReconcileResult(0, 0, 2)
    shown[1]["parts"].append(text("Four minutes."))
    assert await twice(session, shown) == ReconcileResult(0, 1, 1)
    assert outputs(await session.get_history()) == [MARKER]
    stored = [envelope.event async for envelope in session.events() if envelope.type == "message_updated"]
    assert [part.get("output") for part in stored[0].message["parts"]] == [BODY, None]  # type: ignore[union-attr]
    assert await session.get_loaded_skill_keys() == set()
    assert (await verify(store)).problems == []


async def test_update_below_a_summary(session: Session) -> None:
    """An output that is filled in below a summary makes it stale, and an echo does not."""
    question = await asked(session, tool("c1"))
    await session.append_message(said("u2"))
    await session.add_compaction("S", "u1", "a1")
    assert await twice(session, [question, answer("a1", tool("c1"))]) == ReconcileResult(0, 0, 2)
    assert [one.stale for one in await session.get_compactions()] == [False]
    assert await twice(session, [question, answer("a1", done("c1"))]) == ReconcileResult(0, 1, 1)
    assert [one.stale for one in await session.get_compactions()] == [True]
