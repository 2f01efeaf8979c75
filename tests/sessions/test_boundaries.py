from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventstore import InvalidArgumentError
from sessions import (
    Message,
    align_boundary_backward,
    align_boundary_forward,
    estimate_message_tokens,
    find_tail_cut_by_tokens,
)
from tests.sessions.tool_talk import call, conversations, message, pairs, result, text, users

PARALLEL = [
    message("m0", "user", text("look twice")),
    message("m1", "assistant", call("a"), call("b")),
    message("m2", "tool", result("a")),
    message("m3", "tool", result("b")),
    message("m4", "assistant", text("here")),
]
LATE = [
    message("m0", "assistant", call("a")),
    message("m1", "user", text("still there?")),
    message("m2", "assistant", text("it takes a while")),
    message("m3", "tool", result("a")),
    message("m4", "user", text("thanks")),
]

budgets = st.integers(0, 200)


def parts_a_pair(messages: list[Message], index: int) -> bool:
    """Tell whether a boundary stands between a call and the result that answers it."""
    return any(place < index <= results[0] for place, results in pairs(messages))


@given(conversations(), st.integers(-2, 20))
def test_boundary_parts_no_pair(messages: list[Message], index: int) -> None:
    """A boundary that was moved, forward or backward, never stands between a call and its result (CMP-3)."""
    forward, backward = align_boundary_forward(messages, index), align_boundary_backward(messages, index)
    assert backward <= index <= forward
    assert not parts_a_pair(messages, forward)
    assert not parts_a_pair(messages, backward)


@given(conversations(), st.integers(-2, 20))
def test_boundary_moves_no_further_than_needed(messages: list[Message], index: int) -> None:
    """A boundary that parts nothing stays, and backward the nearest that parts nothing is found."""
    if not parts_a_pair(messages, index):
        assert align_boundary_forward(messages, index) == align_boundary_backward(messages, index) == index
    else:
        nearest = max(at for at in range(index) if not parts_a_pair(messages, at))
        assert align_boundary_backward(messages, index) == nearest


@given(conversations(), st.integers(0, 20), budgets, st.integers(0, 6))
def test_tail_has_each_call_of_its_results(messages: list[Message], head_end: int, budget: int, least: int) -> None:
    """Whatever the budget, a call and its result are both between head and tail, or both not (CMP-3)."""
    head_end = align_boundary_forward(messages, head_end)
    cut = find_tail_cut_by_tokens(messages, head_end, tail_token_budget=budget, min_tail_messages=least)
    gone = range(head_end, cut)
    for place, results in pairs(messages):
        assert place not in gone or all(one in gone for one in results)
        assert place in gone or results[0] not in gone


@given(conversations(), st.integers(0, 20), budgets, st.integers(0, 6))
def test_tail_is_large_enough(messages: list[Message], head_end: int, budget: int, least: int) -> None:
    """The tail never begins before the head's end and has the last message and, where there are, as many as asked."""
    cut = find_tail_cut_by_tokens(messages, head_end, tail_token_budget=budget, min_tail_messages=least)
    after_head = max(len(messages) - head_end, 0)
    assert min(head_end, len(messages)) <= cut <= len(messages)
    assert len(messages) - cut >= min(1, after_head)
    assert after_head < least or len(messages) - cut >= least


@given(st.lists(st.integers(0, 40), min_size=1, max_size=10), budgets)
def test_tail_fills_its_budget(lengths: list[int], budget: int) -> None:
    """Without tools the tail has as many of the newest messages as fit, and one when none does."""
    messages = [message(f"u{at}", "user", text("x" * length)) for at, length in enumerate(lengths)]
    cut = find_tail_cut_by_tokens(messages, 0, tail_token_budget=budget, min_tail_messages=0)
    assert estimate_message_tokens(messages[cut:]) <= budget or cut == len(messages) - 1
    assert cut == 0 or estimate_message_tokens(messages[cut - 1 :]) > budget


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("budget", range(60))
def test_cut_in_a_group_of_parallel_calls(budget: int, least: int) -> None:
    """Wherever a budget would cut a group of parallel calls and results, the tail has all of it or none (CMP-3)."""
    cut = find_tail_cut_by_tokens(PARALLEL, 0, tail_token_budget=budget, min_tail_messages=least)
    assert cut in {0, 1, 4}


@pytest.mark.parametrize("budget", range(60))
def test_cut_before_a_late_result(budget: int) -> None:
    """A result that comes three messages after its call stays with it, whatever the budget (CMP-3)."""
    assert find_tail_cut_by_tokens(LATE, 0, tail_token_budget=budget, min_tail_messages=1) in {0, 4}


def test_interlocked_pairs() -> None:
    """Where moving a boundary off one pair puts it into another, it moves on until it parts none (CMP-3)."""
    messages = [message("call a", "assistant", call("a"))]
    for last, name in itertools.pairwise("abcd"):
        messages += [message(f"call {name}", "assistant", call(name)), message(f"result {last}", "tool", result(last))]
    messages.append(message("result d", "tool", result("d")))
    for at in range(1, len(messages)):
        assert (align_boundary_backward(messages, at), align_boundary_forward(messages, at)) == (0, 8)
        assert find_tail_cut_by_tokens(messages, 0, tail_token_budget=0, min_tail_messages=at) == 0


def test_repeated_result() -> None:
    """A boundary after a call's first result is good, but a tail does not begin with one that is repeated."""
    messages = [
        *users(2),
        message("c", "assistant", call("a")),
        *(message(f"r{n}", "tool", result("a")) for n in (1, 2)),
    ]
    assert align_boundary_forward(messages, 3) == 5
    assert align_boundary_backward(messages, 4) == align_boundary_forward(messages, 4) == 4
    assert find_tail_cut_by_tokens(messages, 0, tail_token_budget=0, min_tail_messages=1) == 2


def test_id_used_again() -> None:
    """Calls of different turns that have one id are different calls."""
    turns = [
        one
        for turn in range(3)
        for one in (message(f"c{turn}", "assistant", call("0")), message(f"r{turn}", "tool", result("0")))
    ]
    assert [align_boundary_backward(turns, at) for at in range(7)] == [0, 0, 2, 2, 4, 4, 6]
    assert [align_boundary_forward(turns, at) for at in range(7)] == [0, 2, 2, 4, 4, 6, 6]


def test_dicts_are_taken_too() -> None:
    """Messages may be given as dicts."""
    dicts = [one.to_dict() for one in PARALLEL]
    assert align_boundary_forward(dicts, 2) == 4
    assert find_tail_cut_by_tokens(dicts, 0, tail_token_budget=10) == 1


@pytest.mark.parametrize("option", ["tail_token_budget", "min_tail_messages"])
@pytest.mark.parametrize("value", [-1, 1.5, None, True])
def test_bad_numbers(option: str, value: object) -> None:
    """A budget or a count that is no number from 0 on is refused by its name."""
    with pytest.raises(InvalidArgumentError, match=option):
        find_tail_cut_by_tokens(PARALLEL, 0, **{option: value})  # type: ignore[arg-type]
