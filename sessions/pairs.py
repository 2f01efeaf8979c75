"""Tool calls and their results: who belongs to whom in a list of messages, and how halves of pairs are mended."""

from __future__ import annotations

import datetime as dt
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from eventstore.limits import Limits, encode_json
from projections.message import own_time
from sessions.arguments import Given, checked_messages
from sessions.message import Message, accept

STUB_RESULT: Final = "[Result from earlier conversation — see context summary above]"
"""What stands in the place of a result that is not there."""

_UNNAMED = "unknown"
_OUTCOMES = ("output", "result", "errorText")
_STATES_WITHOUT_OUTPUT = ("output-error", "output-denied")
# The time of a stub whose call has none; the clock's would make two equal calls give different messages.
_NO_TIME = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# How large a message may be is the store's affair.
_ANY_SIZE = Limits(message_bytes=sys.maxsize, parts=sys.maxsize, id_bytes=sys.maxsize)


class ToolPart(msgspec.Struct, frozen=True):
    """A call or a result among the parts of a message."""

    index: int
    call_id: str
    is_call: bool
    has_outcome: bool
    """Whether it holds an output, a result or an error, be it null: a call that does needs no other part."""


class ToolSpan(msgspec.Struct, frozen=True):
    """The messages from a call to its results, as indices."""

    call: int
    first_result: int
    last_result: int


def as_messages(messages: Iterable[Given]) -> list[Message]:
    """Messages from dicts and messages; raises InvalidMessageError for what is none."""
    return [one if isinstance(one, Message) else _as_message(one) for one in checked_messages(messages)]


def is_tool_part(part: Mapping[str, Any]) -> bool:
    """Whether a part is a tool's: a call, a result, or both in one."""
    kind: str = part["type"]
    return kind == "dynamic-tool" or kind.startswith("tool-")


def tool_name(part: Mapping[str, Any]) -> str:
    """The name of the tool that a part is of, which static parts may have in their type alone."""
    name, kind = part.get("toolName"), part["type"]
    if isinstance(name, str):
        return name
    is_static = kind.startswith("tool-") and kind not in {"tool-call", "tool-result"}
    return kind.removeprefix("tool-") if is_static else _UNNAMED


def tool_parts(message: Message) -> Iterator[ToolPart]:
    """The calls and results of a message, in order; parts without a call id belong to nobody.

    An assistant's parts are calls, those of other roles are results. An assistant's `tool-result` is a result too,
    unless it has an input or a state of its own: then it is the call of a tool that is named "result".
    """
    for index, part in enumerate(message.parts):
        call_id = part.get("toolCallId")
        if not is_tool_part(part) or not isinstance(call_id, str):
            continue
        is_bare_result = part["type"] == "tool-result" and "input" not in part and "state" not in part
        yield ToolPart(index, call_id, message.role == "assistant" and not is_bare_result, _has_outcome(part))


def tool_spans(messages: Sequence[Message]) -> list[ToolSpan]:
    """The spans of calls that have results after them, in the order of the calls.

    A result belongs to the newest call of its id: ids may be used again, turn after turn.
    """
    calls: list[int] = []
    results: defaultdict[int, list[int]] = defaultdict(list)
    newest: dict[str, int] = {}
    for index, message in enumerate(messages):
        for part in tool_parts(message):
            if part.is_call:
                newest[part.call_id] = len(calls)
                calls.append(index)
            elif (call := newest.get(part.call_id)) is not None:
                results[call].append(index)
    return [ToolSpan(calls[call], found[0], found[-1]) for call, found in sorted(results.items())]


def sanitize_tool_pairs(messages: Iterable[Given]) -> list[Message]:
    """The messages without half a tool pair: each result comes after its call, and each call has one result.

    A result without a call before it, or for a call that has one, is taken out, and its message too when nothing else
    was in it. A call without a result is followed by a message with a stub of one. All else is as it was, and doing it
    again changes nothing.
    """
    given = as_messages(messages)
    orphans, unanswered = _halves(given)
    mended: list[Message] = []
    for index, message in enumerate(given):
        kept = _without(message, orphans[index]) if index in orphans else message
        if kept.parts or index not in orphans:
            mended.append(kept)
        mended += [_stub(message, message.parts[part]) for part in sorted(unanswered.get(index, ()))]
    return mended


def _halves(messages: Sequence[Message]) -> tuple[dict[int, set[int]], dict[int, list[int]]]:
    """The results without a call and the calls without a result: the indices of their parts, by message."""
    orphans: defaultdict[int, set[int]] = defaultdict(set)
    waiting: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for index, message in enumerate(messages):
        for part in tool_parts(message):
            if part.is_call and not part.has_outcome:
                waiting[part.call_id].append((index, part.index))
            elif not part.is_call and part.has_outcome:
                if waiting[part.call_id]:
                    waiting[part.call_id].pop()
                else:
                    orphans[index].add(part.index)
    unanswered: defaultdict[int, list[int]] = defaultdict(list)
    for calls in waiting.values():
        for index, part_index in calls:
            unanswered[index].append(part_index)
    return dict(orphans), dict(unanswered)


def _has_outcome(part: Mapping[str, Any]) -> bool:
    return any(name in part for name in _OUTCOMES) or part.get("state") in _STATES_WITHOUT_OUTPUT


def _without(message: Message, parts: set[int]) -> Message:
    data = message.to_dict()
    data["parts"] = [part for index, part in enumerate(data["parts"]) if index not in parts]
    return rebuilt(data, message)


def rebuilt(data: Mapping[str, Any], message: Message) -> Message:
    """A message with other content and the time of the one it was made of."""
    return Message.stored(encode_json(data, _ANY_SIZE), message.created_at)


def _stub(message: Message, call: Mapping[str, Any]) -> Message:
    result = {
        "type": "tool-result",
        "toolCallId": call["toolCallId"],
        "toolName": tool_name(call),
        "result": STUB_RESULT,
    }
    return Message(
        id=f"stub-{call['toolCallId']}",
        role="assistant",
        parts=[result],
        created_at=message.created_at or _NO_TIME,
    )


def _as_message(given: Mapping[str, Any]) -> Message:
    accepted = accept(given, _ANY_SIZE, may_be_reserved=True)
    return Message.stored(accepted.json, own_time(given))
