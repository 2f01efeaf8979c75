"""Conversations with tools for tests: short ways to say them, and any that can be thought of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from sessions import Message

Parts = list[dict[str, Any]]


def message(id: str, role: str, *parts: dict[str, Any]) -> Message:
    """Return a message of parts."""
    return Message(id=id, role=role, parts=list(parts))


def text(words: str) -> dict[str, Any]:
    """Return a text part."""
    return {"type": "text", "text": words}


def call(call_id: str, **other: Any) -> dict[str, Any]:
    """Return a part that calls a tool; with an output it is a whole pair."""
    return {"type": "tool-look", "toolCallId": call_id, "input": {"q": 1}, **other}


def result(call_id: str, **other: Any) -> dict[str, Any]:
    """Return a part that is a tool's result and nothing else."""
    return {"type": "tool-result", "toolCallId": call_id, "result": "found"} | other


def users(count: int, words: str = "some words to fill a turn") -> list[Message]:
    """Return messages of a user, u0 and so on."""
    return [message(f"u{number}", "user", text(words)) for number in range(count)]


def calls_and_results(messages: Sequence[Message]) -> Iterator[tuple[int, str, bool, bool]]:
    """Yield place, call id, whether it is a call and whether it holds an outcome, of the parts made above."""
    for place, one in enumerate(messages):
        for part in one.parts:
            if "toolCallId" in part:
                yield place, part["toolCallId"], part["type"] == "tool-look", "output" in part or "result" in part


def pairs(messages: Sequence[Message]) -> list[tuple[int, list[int]]]:
    """Return the places of each call and of the results that follow it, up to the next call of its id."""
    found: list[tuple[int, list[int]]] = []
    newest: dict[str, list[int]] = {}
    for place, call_id, is_call, _ in calls_and_results(messages):
        if is_call:
            newest[call_id] = []
            found.append((place, newest[call_id]))
        elif call_id in newest:
            newest[call_id].append(place)
    return [(place, results) for place, results in found if results]


def halves(messages: Sequence[Message]) -> list[str]:
    """Return the ids of calls without one result of their own, and of results without a call before them."""
    open_calls: defaultdict[str, int] = defaultdict(int)
    wrong = []
    for _, call_id, is_call, has_outcome in calls_and_results(messages):
        if is_call:
            open_calls[call_id] += not has_outcome
        elif open_calls[call_id]:
            open_calls[call_id] -= 1
        else:
            wrong.append(call_id)
    return wrong + [call_id for call_id, count in open_calls.items() if count]


_call_ids = st.sampled_from(["a", "b", "c", "d"])
_texts = st.sampled_from(["", "short", "a few words more than that " * 4]).map(text)
_calls = st.builds(lambda call_id, other: call(call_id, **other), _call_ids, st.sampled_from([{}, {"output": None}]))
_parts = {
    "user": _texts,
    "assistant": st.one_of(_texts, _calls, _calls),
    "tool": _call_ids.map(result),
}


@st.composite
def conversations(draw: st.DrawFn, *, overlays: bool = False) -> list[Message]:
    """Any conversation with parallel, late, repeated, missing and misplaced results, and ids used again."""
    roles = draw(st.lists(st.sampled_from(["user", "assistant", "tool", "tool"]), max_size=16))
    messages = [
        message(f"m{number}", role, *draw(st.lists(_parts[role], min_size=1, max_size=3)))
        for number, role in enumerate(roles)
    ]
    if overlays:
        for place in draw(st.lists(st.integers(0, len(messages)), max_size=3)):
            messages.insert(place, message(f"compaction_{len(messages)}", "assistant", text(f"sum {len(messages)}")))
    return messages
