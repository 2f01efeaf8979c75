from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from eventstore import (
    InvalidArgumentError,
    MessageNotFoundError,
    NotSupportedError,
    SessionStartedError,
)
from replay import rebuild, verify
from sessions import CompactResult, Session, Store, create_compact_function
from tests.sessions.compactions import BAD, Compactor, Frames, Waiting, during, middle, shown
from tests.sessions.talk import chain, said
from tests.sessions.tool_talk import call, halves, message, result, text


def with_answers(session: Session, *answers: Any) -> Compactor:
    """Have a session compact by these answers."""
    function = Compactor(*answers)
    session.on_compaction(function)
    return function


async def test_result_is_recorded(store: Store, session: Session) -> None:
    """What the function returns is recorded as it is, shown, and there again after a rebuild."""
    function = with_answers(session, CompactResult("m1", "m3", "mid story"))
    await chain(session, *(f"m{n}" for n in range(6)))
    assert await session.compact() == CompactResult("m1", "m3", "mid story")
    assert function.given == [["m0", "m1", "m2", "m3", "m4", "m5"]]
    await rebuild(store)
    assert await shown(session) == ["m0", "mid story", "m4", "m5"]


@pytest.mark.parametrize("bad", BAD)
async def test_bad_answers_record_nothing(session: Session, bad: str) -> None:
    """A blank summary, a reversed range a function that raises or is cancelled are raised, and no event (CMP-6)."""
    answer, error = BAD[bad]
    with_answers(session, answer)
    await chain(session, "m0", "m1", "m2", "m3")
    with pytest.raises(error):
        await session.compact()
    assert (await session.version(), await shown(session)) == (4, ["m0", "m1", "m2", "m3"])


@pytest.mark.parametrize(("first", "last"), [("gone", "m2"), ("m1", "gone"), ("m1", "x1"), ("", "m2")])
async def test_ends_not_in_the_history(
    session: Session, caplog: pytest.LogCaptureFixture, first: str, last: str
) -> None:
    """A range that ends at an unknown message or another branch records nothing and is logged once (CMP-6)."""
    with_answers(session, CompactResult(first, last, "S"))
    await chain(session, "m0", "m1", "m2")
    await session.append_message(said("x1"), "m0")
    await session.select_leaf("m2")
    version = await session.version()
    with caplog.at_level(logging.WARNING):
        assert [await session.compact() for _ in range(3)] == [None] * 3
    assert (await session.version(), len(caplog.records)) == (version, 1)


async def test_nothing_to_do(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """A function that finds nothing to compact, and an empty session, give None without a word."""
    function = with_answers(session, None)
    assert await session.compact() is None
    await chain(session, "m0")
    assert await session.compact() is None
    assert (function.given, caplog.records) == ([["m0"]], [])


async def test_without_a_function(session: Session) -> None:
    """Without a compaction function there is nothing to compact by, and what gives the session one is said."""
    with pytest.raises(NotSupportedError, match=r"give the session one with on_compaction\(\)"):
        await session.compact()


async def test_unknown_leaf(session: Session) -> None:
    """The history of a leaf that does not exist is not compacted, and nobody is told that it would be."""
    frames = Frames()
    function = with_answers(session.with_publisher(frames), middle())
    with pytest.raises(MessageNotFoundError):
        await session.compact("gone")
    assert (function.given, frames.sent) == ([], [])


async def test_new_summary_reaches_back(session: Session) -> None:
    """A range that begins right behind a summary, which the function was given, is recorded with it."""
    function = with_answers(session, CompactResult("m1", "m2", "one"), CompactResult("m3", "m4", "one and two"))
    await chain(session, *(f"m{n}" for n in range(6)))
    await session.compact()
    assert await session.compact() == CompactResult("m1", "m4", "one and two")
    assert function.given[1] == ["m0", "one", "m3", "m4", "m5"]
    assert await shown(session) == ["m0", "one and two", "m5"]


async def test_new_summary_does_not_reach_over_a_gap(session: Session) -> None:
    """Messages that nobody summarised are not hidden, whichever side of them the other summary is on."""
    with_answers(session, CompactResult("m4", "m5", "late"), CompactResult("m1", "m2", "early"))
    await chain(session, *(f"m{n}" for n in range(10)))
    await session.add_compaction("old", "m7", "m8")
    assert await session.compact() == CompactResult("m4", "m5", "late")
    assert await session.compact() == CompactResult("m1", "m2", "early")
    assert await shown(session) == ["m0", "early", "m3", "late", "m6", "old", "m9"]


async def test_ids_of_overlays(session: Session) -> None:
    """An id may be a summary's, or one that a summary in view covers, and then means that summary's edge."""
    with_answers(session, lambda messages: CompactResult(messages[1].id, "m6", "both"))
    await chain(session, *(f"m{n}" for n in range(9)))
    await session.add_compaction("one", "m1", "m3")
    await session.add_compaction("two", "m5", "m7")
    assert await session.compact() == CompactResult("m1", "m7", "both")
    assert await shown(session) == ["m0", "both", "m8"]


async def test_covered_start(session: Session) -> None:
    """A range from inside a summary begins where the summary does."""
    with_answers(session, CompactResult("m2", "m4", "more"))
    await chain(session, *(f"m{n}" for n in range(6)))
    await session.add_compaction("one", "m1", "m3")
    assert await session.compact() == CompactResult("m1", "m4", "more")


async def test_stale_summary_is_written_afresh(session: Session) -> None:
    """What was edited since it was summarised is given to the function as it is now."""
    function = with_answers(session, middle("fresh"))
    await chain(session, *(f"m{n}" for n in range(6)))
    await session.add_compaction("inner", "m1", "m2")
    await session.add_compaction("outer", "m1", "m4")
    await session.update_message(said("m4", "changed"))
    assert await session.compact() == CompactResult("m1", "m4", "fresh(m3 m4)")
    assert function.given == [["m0", "inner", "m3", "m4", "m5"]]
    assert await shown(session) == ["m0", "fresh(m3 m4)", "m5"]


async def test_one_branch_is_compacted(session: Session) -> None:
    """A branch is compacted by itself, and the others show what they did (CMP-2)."""
    with_answers(session, middle("A"), middle("B"))
    await chain(session, "r0", "r1", "a2", "a3")
    await session.append_message(said("b2"), "r1")
    await session.append_message(said("b3"))
    assert await session.compact("a3") == CompactResult("r1", "a2", "A(r1 a2)")
    assert await session.compact() == CompactResult("r1", "b2", "B(r1 b2)")
    assert (await shown(session, "a3"), await shown(session)) == (["r0", "A(r1 a2)", "a3"], ["r0", "B(r1 b2)", "b3"])


async def test_compacting_again_shows_one_summary(store: Store, session: Session) -> None:
    """A history that was sent back and compacted again has one summary, made of the last one (CMP-1)."""
    session.on_compaction(create_compact_function(summarize=lambda _: "S", protect_head=1, tail_token_budget=8))
    await chain(session, *(f"m{n}" for n in range(1, 11)))
    await session.compact()
    for one in await session.get_history():
        if not one.id.startswith("compaction_"):
            assert (await session.append_message(one)).inserted is False
    await chain(session, "m11", "m12", "m13")
    await session.compact()
    assert await shown(session) == ["m1", "S", "m12", "m13"]
    assert (await verify(store)).ok


@pytest.mark.parametrize("budget", range(0, 60, 4))
async def test_history_holds_no_half_of_a_pair(session: Session, budget: int) -> None:
    """Whatever the budget of the tail, no result stands in the compacted history without its call (CMP-3)."""
    talk = [
        *(message(f"u{n}", "user", text("look at both of them")) for n in range(4)),
        message("both", "assistant", call("a"), call("b")),
        message("first", "tool", result("a")),
        message("second", "tool", result("b")),
        message("slow", "assistant", call("c")),
        *(message(f"w{n}", "user", text("still waiting")) for n in range(2)),
        message("late", "tool", result("c")),
        message("end", "assistant", text("here you are")),
    ]
    compact = create_compact_function(summarize=lambda _: "S", protect_head=1, tail_token_budget=budget)
    session.on_compaction(compact)
    await session.append_messages(talk)
    assert await session.compact() is not None
    assert halves(await session.get_history()) == []
    assert halves(await session.get_model_messages()) == []


async def test_prompt_is_rendered_anew(session: Session) -> None:
    """A compaction that was recorded freezes the prompt anew, one that was not leaves it as it is (CTX-3)."""
    with_answers(session, None, CompactResult("m0", "m1", "S"))
    session.with_context("memory").with_cached_prompt()
    await chain(session, "m0", "m1", "m2")
    frozen = await session.freeze_system_prompt()
    await session.replace_context_block("memory", "likes tea")
    await session.compact()
    assert await session.freeze_system_prompt() == frozen
    await session.compact()
    assert "likes tea" in await session.freeze_system_prompt()


async def test_context_has_the_counter(session: Session) -> None:
    """The function is told the session's token counter, from the builder as from the constructor."""

    def counter(**_: Any) -> int:
        return 0

    function = with_answers(session.compact_after(10**9, token_counter=counter), None)
    await chain(session, "m0")
    await session.compact()
    assert [context.token_counter for context in function.contexts] == [counter]


async def test_no_compaction_within_another(session: Session) -> None:
    """A compaction function that compacts the same session is refused instead of waiting for itself."""

    async def again(_messages: Any, _context: Any) -> None:
        await asyncio.create_task(session.compact())

    session.on_compaction(again)
    await chain(session, "m0")
    with pytest.raises(NotSupportedError):
        await session.compact()


async def test_function_may_append(session: Session) -> None:
    """A compaction function may write to its own session, which starts no other compaction, and hides nothing of it."""
    function = Compactor(CompactResult("m0", "m0", "S"))

    async def append(messages: Any, context: Any) -> Any:
        await session.append_message(said("m2"))
        return function(messages, context)

    session.on_compaction(append).compact_after(10)
    await chain(session, "m0", "m1")
    assert (function.given, await shown(session)) == ([["m0", "m1"]], ["S", "m1", "m2"])


async def test_settings_come_first(session: Session) -> None:
    """How a session compacts is said before it is used."""
    await chain(session, "m0")
    with pytest.raises(SessionStartedError):
        session.on_compaction(Compactor(None))
    with pytest.raises(SessionStartedError):
        session.compact_after(1)
    with pytest.raises(SessionStartedError):
        session.on_compaction_error(print)
    with pytest.raises(SessionStartedError):
        session.with_publisher(Frames())


@pytest.mark.parametrize("bad", [-1, 1.5, None, "1", True])
async def test_bad_threshold(session: Session, bad: Any) -> None:
    """A threshold that is no whole number from 0 on is refused, and so is what cannot be called."""
    with pytest.raises(InvalidArgumentError):
        session.compact_after(bad)
    with pytest.raises(InvalidArgumentError):
        session.on_compaction(bad)
    with pytest.raises(InvalidArgumentError):
        session.on_compaction_error(bad)
    with pytest.raises(InvalidArgumentError):
        session.with_publisher(bad)


async def _summarise_and_delete(session: Session) -> None:
    await session.add_compaction("T", "m0", "m0")
    await session.delete_messages(["m0"])


CHANGES: dict[str, tuple[Any, list[str]]] = {
    "deletion in the range": (lambda s: s.delete_messages(["m2"]), ["m0", "m1", "m3", "m4"]),
    "edit in the range": (lambda s: s.update_message(said("m2", "!")), ["m0", "m1", "m2", "m3", "m4"]),
    "overlay over its end": (lambda s: s.add_compaction("T", "m3", "m4"), ["m0", "m1", "m2", "T"]),
    "overlay inside": (lambda s: s.add_compaction("T", "m2", "m2"), ["m0", "m1", "T", "m3", "m4"]),
    "all cleared": (lambda s: s.clear_messages(), []),
}
HARMLESS: dict[str, tuple[Any, list[str]]] = {
    "append": (lambda s: s.append_message(said("m5")), ["m0", "S(m1 m2 m3)", "m4", "m5"]),
    "deletion outside": (lambda s: s.delete_messages(["m0"]), ["S(m1 m2 m3)", "m4"]),
    "edit outside": (lambda s: s.update_message(said("m4", "!")), ["m0", "S(m1 m2 m3)", "m4"]),
    "overlay outside": (lambda s: s.add_compaction("T", "m0", "m0"), ["T", "S(m1 m2 m3)", "m4"]),
    "overlay outside that is gone again": (_summarise_and_delete, ["S(m1 m2 m3)", "m4"]),
    "overlay of a branch": (lambda s: s.add_compaction("T", "m1", "x2"), ["m0", "S(m1 m2 m3)", "m4"]),
}


async def _compact_during(session: Session, change: Any) -> tuple[Any, list[str]]:
    function = Waiting(middle())
    session.on_compaction(function)
    await chain(session, *(f"m{n}" for n in range(5)))
    await session.append_message(said("x2"), "m1")
    await session.select_leaf("m4")
    result = await during(function, session.compact("m4"), meanwhile=lambda: change(session))
    return result, await shown(session)


@pytest.mark.parametrize("change", CHANGES)
async def test_result_is_discarded(session: Session, change: str) -> None:
    """A summary of messages that were deleted, edited or summarised while it was written is not recorded."""
    make, history = CHANGES[change]
    assert await _compact_during(session, make) == (None, history)


@pytest.mark.parametrize("change", HARMLESS)
async def test_result_outlives_other_changes(session: Session, change: str) -> None:
    """What is written elsewhere while a summary is made does not lose it."""
    make, history = HARMLESS[change]
    result, after = await _compact_during(session, make)
    assert (result.summary, after) == ("S(m1 m2 m3)", history)
