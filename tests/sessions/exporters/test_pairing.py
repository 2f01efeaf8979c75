from __future__ import annotations

import asyncio
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from sessions import Message, Store, StoredSession, open_store, sanitize_tool_pairs
from sessions.exporters import export_session
from sessions.exporters.openai import NO_RESULT
from sessions.pairs import STUB_RESULT
from tests.sessions.exporters.exports import exported
from tests.sessions.tool_talk import call, conversations, message, result, text

Chat = list[dict[str, Any]]


async def chat_of(store: Store, messages: Sequence[Message], session_id: str = "s") -> Chat:
    """Store messages, and return the session as messages of chat completions."""
    await StoredSession(store, session_id).append_messages(messages)
    chat: Chat = msgspec.json.decode(await exported(store, session_id, "openai"))
    return chat


def short(chat: Chat) -> list[str]:
    """Return a chat in short: `c1?` for a call, `c1=` with what came of it, a text with who said it."""
    told: list[str] = []
    for one in chat:
        if one["role"] == "tool":
            told.append(f"{one['tool_call_id']}={one['content']}")
        else:
            told += [f"{one['role']}: {one['content']}"] if one["content"] is not None else []
            told += [f"{made['id']}?" for made in one.get("tool_calls", ())]
    return told


def many(name: str, count: int, size: int = 3_000) -> list[Message]:
    """Return messages of a size."""
    return [message(f"{name}{number}", "user", text("x" * size)) for number in range(count)]


HI, BYE = text("hi"), text("bye")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [("assistant", call("c")), ("tool", result("c")), ("assistant", BYE)],
            ["c?", "c=found", "assistant: bye"],
            id="in a message of its own",
        ),
        pytest.param(
            [("assistant", call("c")), ("assistant", result("c"), BYE)],
            ["c?", "c=found", "assistant: bye"],
            id="in another message of the assistant",
        ),
        pytest.param(
            [("assistant", HI, call("c"), result("c"), BYE)],
            ["assistant: hi", "c?", "c=found", "assistant: bye"],
            id="in the message of the call",
        ),
        pytest.param(
            [("assistant", call("c"), call("d")), ("tool", result("d", result=2)), ("tool", result("c", result=1))],
            ["c?", "d?", "c=1", "d=2"],
            id="of two calls, in messages of their own",
        ),
        pytest.param(
            [("assistant", call("c")), ("user", HI), ("assistant", BYE), ("tool", result("c"))],
            ["c?", "c=found", "user: hi", "assistant: bye"],
            id="late",
        ),
        pytest.param(
            [("tool", result("c")), ("assistant", call("c")), ("user", HI)],
            ["c?", f"c={NO_RESULT}", "user: hi"],
            id="before its call",
        ),
        pytest.param([("user", HI), ("tool", result("c")), ("user", BYE)], ["user: hi", "user: bye"], id="of no call"),
        pytest.param(
            [("user", HI), ("assistant", result("c")), ("tool", result("c"), BYE)],
            ["user: hi", "user: bye"],
            id="of no call, beside other parts",
        ),
        pytest.param(
            [("assistant", call("c")), ("tool", result("c", result=1), result("c", result=2)), ("tool", result("c"))],
            ["c?", "c=1"],
            id="again",
        ),
        pytest.param(
            [("assistant", call("c", output=1)), ("tool", result("c", result=2))],
            ["c?", "c=1"],
            id="of a call that has one",
        ),
        pytest.param(
            [
                ("assistant", call("c")),
                ("tool", result("c")),
                ("assistant", call("c")),
                ("tool", result("c", result=2)),
            ],
            ["c?", "c=found", "c?", "c=2"],
            id="of an id that is used again",
        ),
        pytest.param(
            [("assistant", call("c")), ("user", HI), ("assistant", call("c")), ("tool", result("c"))],
            ["c?", f"c={NO_RESULT}", "user: hi", "c?", "c=found"],
            id="of the newest call of its id",
        ),
        pytest.param(
            [("assistant", call("c"), call("c")), ("tool", result("c", result=1), result("c", result=2))],
            ["c?", "call_1?", "c=1", "call_1=2"],
            id="of two calls with one id",
        ),
        pytest.param(
            [("assistant", call("call_1"), {"type": "tool-look"})],
            ["call_1?", "call_2?", f"call_1={NO_RESULT}", f"call_2={NO_RESULT}"],
            id="of a call without an id",
        ),
        pytest.param(
            [("assistant", call("c")), ("tool", {"type": "tool-result", "toolName": "look", "result": 1})],
            ["c?", f"c={NO_RESULT}"],
            id="without an id",
        ),
        pytest.param(
            [("assistant", call("c")), ("tool", {"type": "tool-result", "toolCallId": "c"})],
            ["c?", f"c={NO_RESULT}"],
            id="without an outcome",
        ),
        pytest.param(
            [("assistant", call("c")), ("tool", {"type": "tool-look", "toolCallId": "c", "output": {"n": 1}})],
            ["c?", 'c={"n":1}'],
            id="as a part of the call's type",
        ),
        pytest.param(
            [("assistant", call("c")), ("tool", call("c", output=1)), ("user", HI)],
            ["c?", "c=1", "user: hi"],
            id="with the input once more",
        ),
        pytest.param(
            [
                ("assistant", {"type": "tool-invocation", "toolInvocation": {"toolName": "look", "toolCallId": "c"}}),
                ("tool", result("c")),
            ],
            ["c?", "c=found"],
            id="of a call in the old form",
        ),
        pytest.param(
            [("assistant", {"type": "tool-result", "toolCallId": "c", "input": {}, "output": 1})],
            ["c?", "c=1"],
            id="of a tool that is named result",
        ),
    ],
)
async def test_result_goes_to_its_call(store: Store, messages: list[Any], expected: list[str]) -> None:
    """A result stands behind the call it answers, wherever it was; one that answers none is no call, and no message."""
    told = [message(f"m{number}", *one) for number, one in enumerate(messages)]
    assert short(await chat_of(store, told)) == expected


async def test_names_and_inputs_are_the_calls_own(store: Store) -> None:
    """A call keeps its name and its input, in whichever form they stand, and its result adds neither."""
    plain = {"type": "tool-call", "toolCallId": "c", "toolName": "look", "args": {"q": 1}}
    told = [message("m1", "assistant", plain), message("m2", "tool", result("c", toolName="other"))]
    (asked, _) = await chat_of(store, told)
    assert asked["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"q":1}'}}
    ]


@given(conversations())
@settings(max_examples=60)
def test_any_conversation_is_a_chat(messages: list[Message]) -> None:
    """Whatever the conversation, each call is followed by one answer: its own where it has one, else a stand-in."""

    async def check() -> None:
        async with open_store("sqlite://") as store:
            chat = await chat_of(store, messages) if messages else []
            waiting: list[str] = []
            for one in chat:
                if one["role"] == "tool":
                    waiting.remove(one["tool_call_id"])
                else:
                    assert not waiting
                    waiting = [made["id"] for made in one.get("tool_calls", ())]
                    assert len(set(waiting)) == len(waiting)
                    assert {made["function"]["name"] for made in one.get("tool_calls", ())} <= {"look"}
            assert not waiting
            answers = Counter(one["content"] for one in chat if one["role"] == "tool")
            parts = [part for one in sanitize_tool_pairs(messages) for part in one.parts if "toolCallId" in part]
            found = [part.get("result", part.get("output")) for part in parts if "result" in part or "output" in part]
            assert answers == Counter({None: "null", STUB_RESULT: NO_RESULT}.get(one, one) for one in found)

    asyncio.run(check())


async def test_call_that_waits_in_vain_holds_nothing_up(store: Store) -> None:
    """Behind a call that nobody ever answers, much more text than a page goes through an export without being held."""
    told = [message("m", "assistant", call("c")), *many("m", 2_000, 10_000)]
    await StoredSession(store, "long").append_messages(told)
    for name in ("openai", "ai-sdk"):
        tracemalloc.start()
        try:
            async with aclosing(export_session(store, "long", format=name)) as pieces:
                async for _ in pieces:
                    pass
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 8_000_000


async def test_result_that_is_deleted_meanwhile(store: Store) -> None:
    """A call whose result is deleted while the session is exported is in the export without it."""
    told = [
        *many("a", 1_000),
        message("c", "assistant", call("c")),
        *many("b", 1_000),
        message("t", "tool", result("c")),
    ]
    session = StoredSession(store, "busy")
    await session.append_messages(told)
    whole = ""
    async with aclosing(export_session(store, "busy", format="openai")) as pieces:
        async for piece in pieces:
            if not whole:
                await session.delete_messages(["t"])
            whole += piece
    (answer,) = (one for one in msgspec.json.decode(whole) if one["role"] == "tool")
    assert answer["content"] == NO_RESULT
    assert len(msgspec.json.decode(whole)) == len(told)
