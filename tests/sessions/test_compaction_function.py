from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventstore import InvalidArgumentError
from sessions import (
    CompactionContext,
    CompactResult,
    Message,
    create_compact_function,
    is_compaction_message,
)
from tests.sessions.talk import ids
from tests.sessions.tool_talk import call, conversations, message, pairs, result, text, users

TIGHT: dict[str, Any] = {"protect_head": 1, "tail_token_budget": 0, "min_tail_messages": 1}


class Model:
    """A summariser that remembers what it was asked."""

    def __init__(self, answer: Any = "SUMMARY") -> None:
        self.answer = answer
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> Any:
        """Answer a prompt."""
        self.prompts.append(prompt)
        return self.answer


def overlay(name: str, words: str) -> Message:
    """Return an overlay as a view shows it."""
    return message(f"compaction_{name}", "assistant", text(words))


@given(
    conversations(overlays=True),
    st.integers(0, 5),
    st.integers(0, 120),
    st.integers(0, 4),
)
def test_no_pair_is_parted(messages: list[Message], head: int, budget: int, least: int) -> None:
    """Whatever the budget, a call and its result are both summarised, or both stay (CMP-3)."""
    compact = create_compact_function(
        summarize=Model(), protect_head=head, tail_token_budget=budget, min_tail_messages=least
    )
    found = asyncio.run(_run(compact, messages))
    if found is None:
        return
    order = ids(messages)
    gone = range(order.index(found.from_message_id), order.index(found.to_message_id) + 1)
    assert gone.start >= head
    assert gone.stop <= len(messages) - max(least, 1)
    for place, results in pairs(messages):
        assert place not in gone or all(one in gone for one in results)
        assert place in gone or results[0] not in gone
    assert not {found.from_message_id, found.to_message_id} & {one.id for one in messages if is_compaction_message(one)}


async def _run(compact: Any, messages: list[Message]) -> CompactResult | None:
    found: CompactResult | None = await compact(messages, CompactionContext())
    return found


async def test_middle_is_summarised() -> None:
    """The middle goes into the prompt, head and tail do not, and the result names its ends."""
    messages = [message(f"m{at}", "user", text(f"turn {at}.")) for at in range(7)]
    model = Model()
    compact = create_compact_function(summarize=model, protect_head=2, tail_token_budget=0, min_tail_messages=2)
    assert await compact(messages) == CompactResult("m2", "m4", "SUMMARY")
    told = [f"turn {at}." in model.prompts[0] for at in range(7)]
    assert told == [False, False, True, True, True, False, False]


async def test_all_overlays_reach_the_summariser() -> None:
    """All overlays in view reach the summariser, wherever they are, in their order and before the rest."""
    first, *rest = users(6)
    messages = [overlay("a", "FIRST"), first, overlay("b", "SECOND"), *rest, overlay("c", "THIRD")]
    model = Model()
    compact = create_compact_function(summarize=model, **TIGHT)
    assert await compact(messages) == CompactResult("u0", "u5", "SUMMARY")
    (prompt,) = model.prompts
    places = [prompt.index(word) for word in ("FIRST", "SECOND", "THIRD", "[user]")]
    assert places == sorted(places)
    assert "[assistant]" not in prompt


async def test_nothing_but_an_overlay() -> None:
    """Where only an overlay lies between head and tail there is nothing to do, and no model is asked."""
    model = Model()
    first, second, third = users(3)
    compact = create_compact_function(summarize=model, **{**TIGHT, "min_tail_messages": 2})
    assert await compact([first, overlay("a", "old"), second, third]) is None
    assert model.prompts == []


@pytest.mark.parametrize("count", range(8))
async def test_too_few_messages(count: int) -> None:
    """A conversation that is no longer than head and least tail is left alone, and no model is asked."""
    model = Model()
    compact = create_compact_function(summarize=model, protect_head=3, tail_token_budget=0, min_tail_messages=4)
    found = await compact(users(count))
    assert (found, model.prompts) == (None, [])


async def test_defaults_leave_a_short_talk_alone() -> None:
    """Left alone, a tail of 20,000 tokens stays: a short conversation is never compacted, a long one is."""
    compact = create_compact_function(summarize=Model())
    assert await compact(users(50)) is None
    assert await compact(users(50, "x" * 4_000)) == CompactResult("u3", "u30", "SUMMARY")


async def test_head_takes_its_results_along() -> None:
    """A call in the head keeps its results there, however much later they come (CMP-3)."""
    late = [message("c", "assistant", call("a")), *users(3), message("r", "tool", result("a"))]
    messages = [*late, *(message(f"m{at}", "user", text("more")) for at in range(4))]
    compact = create_compact_function(summarize=Model(), **TIGHT)
    assert await compact(messages) == CompactResult("m0", "m2", "SUMMARY")


async def test_plain_and_async_functions() -> None:
    """The summariser and both counters may be plain or async."""

    async def later(value: Any) -> Any:
        await asyncio.sleep(0)
        return value

    found = [
        await create_compact_function(summarize=summarize, token_counter=counter, **TIGHT)(users(5), context)
        for summarize in (lambda _: "S", lambda _: later("S"))
        for counter in (None, lambda _: 1, lambda _: later(1))
        for context in (None, CompactionContext(token_counter=lambda **_: later(1)))
    ]
    assert found == [CompactResult("u1", "u3", "S")] * 12


async def test_sessions_counter_is_used() -> None:
    """Without a counter of its own a function asks the session's, with one message, no prompt and no blocks (CMP-5)."""
    asked: list[tuple[list[str], str, list[Any]]] = []

    def count(*, messages: list[Message], system_prompt: str, context_blocks: list[Any]) -> int:
        asked.append((ids(messages), system_prompt, context_blocks))
        return 1_000

    compact = create_compact_function(summarize=Model(), protect_head=1, tail_token_budget=2_500, min_tail_messages=1)
    found = await compact(users(8), CompactionContext(token_counter=count))
    assert found == CompactResult("u1", "u5", "SUMMARY")
    assert asked == [(["u7"], "", []), (["u6"], "", []), (["u5"], "", [])]


async def test_own_counter_comes_first() -> None:
    """A function's own counter is asked, and the session's is not."""

    def never(**_: Any) -> int:
        raise AssertionError

    compact = create_compact_function(
        summarize=Model(), protect_head=1, tail_token_budget=25, min_tail_messages=1, token_counter=lambda _: 10
    )
    assert await compact(users(6), CompactionContext(token_counter=never)) == CompactResult("u1", "u3", "SUMMARY")


async def test_counter_that_gives_one_size_for_all() -> None:
    """A counter that calls everything too large leaves the least tail, so that something is compacted (CMP-5)."""
    context = CompactionContext(token_counter=lambda **_: 140_000)
    compact = create_compact_function(summarize=Model())
    assert await compact(users(41), context) == CompactResult("u3", "u38", "SUMMARY")


async def test_chinese_counts() -> None:
    """Text without spaces is not taken for short: 8,000 Chinese characters are 8,000 tokens (CMP-5)."""
    compact = create_compact_function(summarize=Model())
    assert await compact(users(8, "字" * 8_000)) == CompactResult("u3", "u5", "SUMMARY")


async def test_what_the_summariser_raises() -> None:
    """What the summariser raises comes out as it is (CMP-6)."""

    def fail(_: str) -> str:
        raise ConnectionError("rate limited")

    with pytest.raises(ConnectionError, match="rate limited"):
        await create_compact_function(summarize=fail, **TIGHT)(users(5))


async def test_cancelled_summariser() -> None:
    """A summariser that is cancelled ends the call, which gives no result (CMP-6)."""

    async def wait(_: str) -> str:
        await asyncio.Event().wait()
        return "never"

    task = asyncio.ensure_future(create_compact_function(summarize=wait, **TIGHT)(users(5)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("answer", [None, 7, ["S"]])
async def test_answer_that_is_no_text(answer: object) -> None:
    """An answer that is no text is an error and never a summary (CMP-6)."""
    with pytest.raises(InvalidArgumentError, match="summarize"):
        await create_compact_function(summarize=Model(answer), **TIGHT)(users(5))


async def test_count_that_is_no_number() -> None:
    """A token count that is no number is an error, and no model is asked."""
    model = Model()
    count: Callable[..., Any] = lambda _: "many"  # noqa: E731 - a counter as callers write them
    with pytest.raises(InvalidArgumentError, match="token_counter"):
        await create_compact_function(summarize=model, token_counter=count, **TIGHT)(users(5))
    assert model.prompts == []


@pytest.mark.parametrize(
    "options",
    [
        {"summarize": None},
        {"token_counter": 3},
        {"protect_head": -1},
        {"tail_token_budget": 0.5},
        {"min_tail_messages": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_bad_options(options: dict[str, Any]) -> None:
    """An option that cannot be meant is refused by its name when the function is built."""
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        create_compact_function(**{"summarize": Model(), **options})


def test_overlays_are_told_by_their_ids() -> None:
    """An overlay is told by its id, as a message and as a dict; no other message is one."""
    assert is_compaction_message(overlay("x", "s"))
    assert is_compaction_message(overlay("x", "s").to_dict())
    assert not is_compaction_message(message("m1", "assistant", text("compaction_")))
    assert not is_compaction_message({"role": "user", "parts": []})
