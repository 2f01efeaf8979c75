"""Where a history may be cut without parting a tool's call from its result, and where its tail begins."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from projections.tokens import estimate_message_tokens
from sessions.arguments import Given, check_count
from sessions.message import Message
from sessions.pairs import as_messages, tool_spans

TAIL_TOKEN_BUDGET: Final = 20_000
MIN_TAIL_MESSAGES: Final = 2


def align_boundary_forward(messages: Iterable[Given], index: int) -> int:
    """The first boundary from an index on that parts no call from its result, behind all that answers the call.

    A boundary at an index stands before that message. One outside the messages parts nothing, so it stays.
    """
    for span in tool_spans(as_messages(messages)):
        if span.call < index <= span.first_result:
            index = span.last_result + 1
    return index


def align_boundary_backward(messages: Iterable[Given], index: int) -> int:
    """The last boundary up to an index that parts no call from its result: before the message with the call."""
    for span in reversed(tool_spans(as_messages(messages))):
        if span.call < index <= span.first_result:
            index = span.call
    return index


def find_tail_cut_by_tokens(
    messages: Iterable[Given],
    head_end: int,
    *,
    tail_token_budget: int = TAIL_TOKEN_BUDGET,
    min_tail_messages: int = MIN_TAIL_MESSAGES,
) -> int:
    """The index at which the tail begins: the newest messages that fit into a budget of tokens.

    The tail has the last message, however large, and `min_tail_messages` where there are as many after the head. It
    never begins before `head_end`, nor between a call and its results: then it begins with the call.
    """
    check_count(tail_token_budget, "tail_token_budget")
    check_count(min_tail_messages, "min_tail_messages")
    given = as_messages(messages)
    tail = given[max(head_end, 0) :]
    totals = itertools.accumulate(estimate_message_tokens([message]) for message in reversed(tail))
    fitting = sum(1 for _ in itertools.takewhile(lambda total: total <= tail_token_budget, totals))
    return tail_cut(given, head_end, fitting, min_tail_messages)


def tail_cut(messages: Sequence[Message], head_end: int, fitting: int, min_tail_messages: int) -> int:
    """The index at which the tail begins, given how many of the newest messages fit into its budget."""
    end = len(messages)
    first = min(max(head_end, 0), end)
    cut = max(end - max(fitting, 1), first)
    if end - min_tail_messages >= first:
        cut = min(cut, end - min_tail_messages)
    for span in reversed(tool_spans(messages)):
        # A result that comes once more would stand in the tail without its call, so it counts here.
        if span.call < cut <= span.last_result:
            cut = span.call
    return max(cut, first)
