"""A compaction function to build: it keeps head and tail of a conversation and has the middle summarised."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from eventstore.errors import InvalidArgumentError
from projections.message import COMPACTION_PREFIX
from projections.tokens import estimate_message_tokens
from sessions.arguments import Given, check_count
from sessions.boundaries import MIN_TAIL_MESSAGES, TAIL_TOKEN_BUDGET, align_boundary_forward, tail_cut
from sessions.message import Message
from sessions.pairs import as_messages
from sessions.summary import build_summary_prompt, compute_summary_budget

T = TypeVar("T")

Summarize = Callable[[str], str | Awaitable[str]]
"""Gives a model a prompt and hands back its answer; plain or async."""

MessageCounter = Callable[[list[Message]], float | Awaitable[float]]
"""Counts the tokens of messages; plain or async."""


class SessionCounter(Protocol):
    """A session's token counter: of messages, system prompt and context blocks together; plain or async."""

    def __call__(
        self, *, messages: list[Message], system_prompt: str, context_blocks: list[Any]
    ) -> float | Awaitable[float]:
        """The tokens of all of it."""


class CompactResult(msgspec.Struct, frozen=True):
    """What a compaction function came to: the summary, and the first and the last message that it stands for."""

    from_message_id: str
    to_message_id: str
    summary: str


class CompactionContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction function is told beside the messages: the session's token counter, if it has one."""

    token_counter: SessionCounter | None = None


class CompactFunction(Protocol):
    """A compaction function: from the messages of a view to a result, or None when there is nothing to do."""

    def __call__(
        self, messages: list[Message], context: CompactionContext, /
    ) -> CompactResult | Awaitable[CompactResult | None] | None:
        """Choose what to compact and summarise it."""


class BuiltCompactFunction(Protocol):
    """A compaction function that also takes messages as dicts, and may be called without a session's context."""

    def __call__(
        self, messages: Sequence[Given], context: CompactionContext | None = None
    ) -> Awaitable[CompactResult | None]:
        """Choose what to compact and have it summarised."""


def is_compaction_message(message: Given) -> bool:
    """Whether a message is an overlay: the summary that a view shows for the messages that it stands for."""
    message_id = message.get("id") if isinstance(message, Mapping) else message.id
    return isinstance(message_id, str) and message_id.startswith(COMPACTION_PREFIX)


def create_compact_function(
    *,
    summarize: Summarize,
    protect_head: int = 3,
    tail_token_budget: int = TAIL_TOKEN_BUDGET,
    min_tail_messages: int = MIN_TAIL_MESSAGES,
    token_counter: MessageCounter | None = None,
) -> BuiltCompactFunction:
    """A compaction function that has all messages summarised but the first few and the newest.

    The first `protect_head` messages stay, and of the newest those that fit into `tail_token_budget`, but at least
    `min_tail_messages`; a tool's call and its result stay together. The summaries of all overlays in view go into the
    prompt in their order, so the result covers them too when they lie between its ends. Tokens are counted message by
    message: by `token_counter`, else by the session's with an empty prompt and no blocks, else by estimate.

    What `summarize` raises is raised. An answer that is no text is an InvalidArgumentError.
    """
    for name, function in (("summarize", summarize), ("token_counter", token_counter or summarize)):
        if not callable(function):
            raise InvalidArgumentError(name, f"must be a function, not {type(function).__name__}")
    check_count(protect_head, "protect_head")
    check_count(tail_token_budget, "tail_token_budget")
    check_count(min_tail_messages, "min_tail_messages")

    async def compact(messages: Sequence[Given], context: CompactionContext | None = None) -> CompactResult | None:
        view = as_messages(messages)
        head_end = align_boundary_forward(view, protect_head)
        if head_end >= len(view) - min_tail_messages:
            return None
        count = _counter(token_counter, context)
        fitting = await _count_fitting(view[head_end:], tail_token_budget, count)
        cut = tail_cut(view, head_end, fitting, min_tail_messages)
        middle = [message for message in view[head_end:cut] if not is_compaction_message(message)]
        if not middle:
            return None
        earlier = "\n\n".join(message.text for message in view if is_compaction_message(message))
        prompt = build_summary_prompt(middle, earlier, compute_summary_budget(middle))
        summary = await _settled(summarize(prompt))
        if not isinstance(summary, str):
            raise InvalidArgumentError("summarize", f"must give a text, not {type(summary).__name__}")
        return CompactResult(middle[0].id, middle[-1].id, summary)

    return compact


def _counter(own: MessageCounter | None, context: CompactionContext | None) -> MessageCounter:
    sessions = context.token_counter if context else None
    if own or not sessions:
        return own or estimate_message_tokens
    return lambda messages: sessions(messages=messages, system_prompt="", context_blocks=[])


async def _count_fitting(tail: Sequence[Message], budget: int, count: MessageCounter) -> int:
    """How many of the newest messages fit into a budget; older ones than needed are not counted."""
    total = 0.0
    for fitting, message in enumerate(reversed(tail)):
        tokens = await _settled(count([message]))
        if not isinstance(tokens, (int, float)):
            raise InvalidArgumentError("token_counter", f"must give a number, not {type(tokens).__name__}")
        total += tokens
        if total > budget:
            return fitting
    return len(tail)


async def _settled(value: T | Awaitable[T]) -> T:
    """The value of a call that may be plain or async."""
    if inspect.isawaitable(value):
        settled: T = await value
        return settled
    return value
