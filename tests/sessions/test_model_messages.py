from __future__ import annotations

from collections.abc import Sequence

import pytest

from eventstore import InvalidArgumentError, MessageNotFoundError
from sessions import Message, Session, SessionManager, Store, open_store, sanitize_tool_pairs
from tests.sessions.providers import Entries
from tests.sessions.talk import ids, log_of
from tests.sessions.tool_talk import call, calls_and_results, message, result, text


def turn(number: int) -> list[Message]:
    """Return a question, a call, its result and an answer."""
    return [
        message(f"u{number}", "user", text("question")),
        message(f"c{number}", "assistant", call(f"k{number}")),
        message(f"r{number}", "tool", result(f"k{number}")),
        message(f"a{number}", "assistant", text("answer")),
    ]


def assert_whole(messages: Sequence[Message]) -> None:
    """Check that each call has one result after it, and each result a call before it."""
    called: list[str] = []
    answered: list[str] = []
    for _, call_id, is_call, _ in calls_and_results(messages):
        if is_call:
            called.append(call_id)
        else:
            assert call_id in called
            answered.append(call_id)
    assert sorted(called) == sorted(answered)


async def test_whole_history(session: Session) -> None:
    """A history without half a pair is given as it is read."""
    await session.append_messages([*turn(0), *turn(1)])
    assert await session.get_model_messages() == await session.get_history()


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, []),
        (1, ["a0"]),
        (2, ["c0", "r0", "a0"]),
        (3, ["c0", "r0", "a0"]),
        (4, ["u0", "c0", "r0", "a0"]),
        (99, ["u0", "c0", "r0", "a0"]),
    ],
)
async def test_limit_moves_a_call_in(session: Session, limit: int, expected: list[str]) -> None:
    """A window that would begin with a result begins with its call, and a plain read obeys its limit (CTX-8)."""
    await session.append_messages(turn(0))
    assert ids(await session.get_model_messages(limit=limit)) == expected
    assert len(await session.get_history(limit=limit)) == min(limit, 4)


@pytest.mark.parametrize("limit", [*range(11), None])
async def test_no_window_has_half_a_pair(session: Session, limit: int | None) -> None:
    """Whatever the limit, every call has its result and every result its call, parallel ones too (CTX-8)."""
    parallel = [
        message("p", "assistant", call("a"), call("b")),
        message("pa", "tool", result("a")),
        message("pb", "tool", result("b")),
    ]
    await session.append_messages([message("s", "system", text("rules")), *turn(0), *parallel, *turn(1)])
    assert_whole(await session.get_model_messages(limit=limit))


async def test_call_that_was_never_answered(url: str) -> None:
    """A call that the process did not live to answer has a stub, in every process that reads it (CTX-8)."""
    talk = [message("u", "user", text("question")), message("c", "assistant", call("k"))]
    async with open_store(url) as store:
        await Session.create(store).for_session("chat").append_messages(talk)
    async with open_store(url) as store:
        session = Session.create(store).for_session("chat")
        shown = await session.get_model_messages()
        assert_whole(shown)
        assert (ids(shown), ids(await session.get_history())) == (["u", "c", "stub-k"], ["u", "c"])


async def test_call_far_back(session: Session) -> None:
    """A call is found however far back it is; one that a summary hides takes its result with it (CTX-8)."""
    between = [message(f"m{n}", "user", text("more")) for n in range(40)]
    await session.append_messages(
        [
            message("c", "assistant", call("k")),
            *between,
            message("r", "tool", result("k")),
            message("z", "user", text("z")),
        ]
    )
    assert len(await session.get_model_messages(limit=2)) == 43
    await session.add_compaction("S", "c", "m39")
    assert ids(await session.get_model_messages(limit=2)) == ["z"]


async def test_nothing_stored_changes(store: Store, session: Session) -> None:
    """Building a model's view writes no event and changes no message (CTX-8)."""
    await session.append_messages([*turn(0), message("c", "assistant", call("k"))])
    before, history = await log_of(store), await session.get_history()
    await session.get_model_messages(limit=2)
    assert (await log_of(store), await session.get_history()) == (before, history)


async def test_unloaded_skill_is_a_marker(store: Store) -> None:
    """A skill that was unloaded is a marker for the model too."""
    session = SessionManager(store).with_context("skills", provider=Entries(k="the whole body")).get_session("chat")
    loads = {"type": "tool-load_context", "toolCallId": "l", "input": {"label": "skills", "key": "k"}}
    await session.append_message(message("c", "assistant", {**loads, "output": "the whole body"}))
    assert "the whole body" in str((await session.get_model_messages())[0].parts)
    await session.unload_skill("skills", "k")
    assert "[skill unloaded: k]" in str((await session.get_model_messages())[0].parts)


async def test_branch_and_bad_arguments(session: Session) -> None:
    """A branch is read by its leaf; a leaf that does not exist and a limit below 0 are refused."""
    await session.append_messages(turn(0))
    assert ids(await session.get_model_messages("r0")) == ["u0", "c0", "r0"]
    with pytest.raises(MessageNotFoundError):
        await session.get_model_messages("gone")
    with pytest.raises(InvalidArgumentError):
        await session.get_model_messages(limit=-1)


async def test_same_as_mending_what_was_read(session: Session) -> None:
    """Without a limit it is what `sanitize_tool_pairs` makes of the history."""
    await session.append_messages([message("r", "tool", result("gone")), *turn(0)])
    assert await session.get_model_messages() == sanitize_tool_pairs(await session.get_history())
