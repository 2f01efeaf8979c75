from __future__ import annotations

import asyncio
from typing import Any

import pytest

from replay import rebuild, verify
from sessions import CompactResult, Session, SessionManager, Store, create_compact_function
from tests.sessions.compactions import BAD, Compactor, Frames, Waiting, middle, shown
from tests.sessions.providers import Failing
from tests.sessions.talk import chain, said
from tests.sessions.tool_talk import call, message, result
from tests.sessions.watching import working

LONG = "words to fill a turn with, and more of them to be over whatever was set"


def constant(tokens: float) -> Any:
    """Return a token counter that always says the same."""
    return lambda **_: tokens


def automatic(session: Session, threshold: int, *answers: Any) -> tuple[Compactor, list[BaseException]]:
    """Have a session compact after appends; return the function and the errors that it hands on."""
    function, errors = Compactor(*answers), list[BaseException]()
    session.on_compaction(function).compact_after(threshold).on_compaction_error(errors.append)
    return function, errors


async def test_append_above_the_threshold_compacts(session: Session) -> None:
    """The append that makes the view too long has it compacted before it returns, and no one before it."""
    function, _ = automatic(session, 40, middle())
    await chain(session, *(f"m{n}" for n in range(6)))
    assert function.given == []
    await session.append_message(said("m6", LONG))
    assert await shown(session) == ["m0", "S(m1 m2 m3 m4 m5)", "m6"]


@pytest.mark.parametrize("write", ["append_messages", "upsert_message"])
async def test_every_append_counts(session: Session, write: str) -> None:
    """Appending several messages at once, and an upsert, compact as an append does."""
    automatic(session, 10, middle())
    await chain(session, "m0")
    if write == "append_messages":
        await session.append_messages([said("m1"), said("m2")])
    else:
        await session.upsert_message(said("m1"))
        await session.upsert_message(said("m2"))
    assert await shown(session) == ["m0", "S(m1)", "m2"]


async def test_nothing_is_computed_without_a_function(session: Session) -> None:
    """A threshold without a compaction function asks no counter."""
    session.compact_after(0, token_counter=lambda **_: pytest.fail("was asked"))
    await chain(session, "m0")


@pytest.mark.parametrize("bad", BAD)
async def test_failure_does_not_fail_the_append(session: Session, bad: str) -> None:
    """What goes wrong reaches the error handler once, the append is stored, and the next one tries again (CMP-6)."""
    answer, error = BAD[bad]
    function, errors = automatic(session, 30, answer, answer, middle())
    await chain(session, "m0", "m1", "m2")
    for name in ("m3", "m4"):
        assert (await session.append_message(said(name, LONG))).inserted
    assert [type(one) for one in errors] == [error, error]
    assert await session.get_compactions() == []
    await session.append_message(said("m5"))
    assert (len(function.given), await shown(session)) == (3, ["m0", "S(m1 m2 m3 m4)", "m5"])


async def test_handler_that_raises(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """An error handler that raises, plain or async, does not break the append, and its words are not logged (CMP-6)."""

    async def raising(_: Exception) -> None:
        raise RuntimeError(LONG)

    session.on_compaction(Compactor(OSError("model offline"))).compact_after(0).on_compaction_error(raising)
    await chain(session, "m0")
    assert (await shown(session), [LONG in record.getMessage() for record in caplog.records]) == (["m0"], [False])


async def test_failure_without_a_handler_is_logged(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """Without an error handler a failure is logged, without what it says."""
    session.on_compaction(Compactor(OSError(LONG))).compact_after(0)
    await chain(session, "m0")
    assert ["OSError" in record.getMessage() for record in caplog.records] == [True]
    assert LONG not in caplog.text


async def test_counter_and_cut_agree(session: Session) -> None:
    """A counter that always says too much compacts once, and not again as long as nothing has grown (CMP-5)."""
    summaries: list[str] = []

    def summarize(_: str) -> str:
        summaries.append("S")
        return "S"

    session.on_compaction(create_compact_function(summarize=summarize))
    session.compact_after(100_000, token_counter=constant(140_000))
    talk = [
        one
        for n in range(20)
        for one in (message(f"c{n}", "assistant", call(f"k{n}")), message(f"r{n}", "tool", result(f"k{n}")))
    ]
    await session.append_messages(talk)
    before = await session.get_history_row_stats()
    for n in range(3):
        await session.append_message(said(f"m{n}"))
    assert (len(summaries), len(await session.get_compactions())) == (1, 1)
    assert len(await session.get_history()) < len(before)


async def test_failed_summary_is_tried_again(session: Session) -> None:
    """A summariser that fails once is asked again by the next append, then rests until the view has grown (CMP-5)."""
    asked: list[str] = []
    errors: list[Exception] = []

    def summarize(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            raise OSError("model offline")
        return "S"

    await session.append_messages([message(f"t{n}", "tool", call(f"k{n}", output="found " * 500)) for n in range(40)])
    again = Session.create(session._storage.store).for_session("chat")  # type: ignore[union-attr]
    again.on_compaction(create_compact_function(summarize=summarize)).on_compaction_error(errors.append)
    again.compact_after(100_000, token_counter=constant(140_000))
    sizes = []
    for n in range(4):
        await again.append_message(said(f"m{n}"))
        sizes.append(await again._storage.token_estimate())
    assert ([str(error) for error in errors], len(asked)) == (["model offline"], 2)
    assert sizes[1] < sizes[0] // 5
    assert sizes[1] < sizes[3] < sizes[1] + 100


async def test_no_growth_is_told_by_branch(session: Session) -> None:
    """On another branch the view is another one, and is compacted though it is no larger."""
    function, errors = Compactor(middle("A"), middle("B")), list[Exception]()
    session.on_compaction(function).compact_after(5, token_counter=constant(10)).on_compaction_error(errors.append)
    await session.append_messages([said("m0"), said("a1"), said("a2")])
    await session.append_messages([said("b1"), said("b2")], "m0")
    assert (await shown(session), errors) == (["m0", "B(b1)", "b2"], [])
    assert len(function.given) == 2


async def test_change_asks_anew(session: Session) -> None:
    """After an edit or a deletion the next append is not held back by what the view came to before."""
    function, _ = automatic(session, 12, None)
    await chain(session, "m0", "m1", "m2", "m3")
    tried = len(function.given)
    await session.delete_messages(["m1", "m2"])
    await chain(session, "m4")
    assert len(function.given) == tried + 1


async def test_compaction_that_changes_nothing_is_logged_once(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    """A function that finds nothing is asked once per append, and one warning is logged until a compaction works."""
    nothing = [None, None, CompactResult("m0", "m1", "S"), None, None]
    function, errors = automatic(session, 1, *nothing)
    warned: list[int] = []
    for n in range(5):
        await session.append_message(said(f"m{n}"))
        warned.append(len(caplog.records))
    assert (len(function.given), warned, errors) == (5, [1, 1, 1, 2, 2], [])


async def test_summary_for_a_summary(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """A summary that would only replace another one, and is no shorter, is not recorded (CMP-5)."""
    automatic(session, 1, CompactResult("m0", "m0", "S"))
    await chain(session, "m0", "m1", "m2")
    assert (len(await session.get_compactions()), len(caplog.records)) == (1, 1)


async def test_unknown_ids_are_logged_once(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """A function that names messages that are not there fails no append and is logged once (CMP-6)."""
    _, errors = automatic(session, 1, CompactResult("gone", "m0", "S"))
    await chain(session, "m0", "m1", "m2")
    assert (len(caplog.records), errors, await session.get_compactions()) == (1, [], [])
    assert "gone" not in caplog.text


async def test_text_without_spaces_counts(session: Session) -> None:
    """8,000 Chinese characters are far more than 4,000 tokens, also in the sums of the store (CMP-5)."""
    function, _ = automatic(session, 4_000, None)
    await session.append_message(said("m0", "中文字符" * 2_000))
    assert len(function.given) == 1


async def test_prompt_and_blocks_count(session: Session) -> None:
    """The prompt counts as it is frozen, and as long as it is not as it would be."""
    function, _ = automatic(session, 60, None)
    session.with_context("memory").with_cached_prompt()
    await session.freeze_system_prompt()
    await session.replace_context_block("memory", LONG * 10)
    await session.append_message(said("m0"))
    assert function.given == []
    await session.refresh_system_prompt()
    await session.append_message(said("m1"))
    assert len(function.given) == 1


async def test_failing_block(session: Session) -> None:
    """An estimate that cannot be made is a failure of its own, and the append stands."""
    function, errors = automatic(session, 1, middle())
    session.with_context("bad", provider=Failing("get", "unreadable"))
    await chain(session, "m0")
    assert ([str(error) for error in errors], function.given) == (["unreadable"], [])


@pytest.mark.parametrize("wrong", [None, "many", object()])
async def test_counter_that_gives_no_number(session: Session, wrong: Any) -> None:
    """A counter that gives no number is a failure that the handler gets."""
    errors: list[Exception] = []
    session.on_compaction(Compactor(None)).compact_after(1, token_counter=constant(wrong))
    session.on_compaction_error(errors.append)
    await chain(session, "m0")
    assert [getattr(error, "code", "") for error in errors] == ["invalid_argument"]


@pytest.mark.parametrize("error", [OSError("no tokenizer"), asyncio.CancelledError()])
async def test_counter_that_raises(session: Session, error: BaseException) -> None:
    """A counter that raises, or whose own work is cancelled, is a failure that the handler gets, and no append's."""
    errors: list[BaseException] = []

    def count(**_: Any) -> int:
        raise error

    session.on_compaction(Compactor(None)).compact_after(1, token_counter=count).on_compaction_error(errors.append)
    await chain(session, "m0")
    assert errors == [error]


async def test_append_that_is_cancelled_while_it_is_counted(session: Session) -> None:
    """An append whose caller is cancelled while a counter runs is cancelled and stored, and no handler hears of it."""
    counting, errors = asyncio.Event(), list[Exception]()

    async def count(**_: Any) -> int:
        counting.set()
        await asyncio.sleep(60)
        return 0

    session.on_compaction(Compactor(None)).compact_after(1, token_counter=count).on_compaction_error(errors.append)
    appending = asyncio.create_task(session.append_message(said("m0")))
    await counting.wait()
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await appending
    assert (errors, await shown(session)) == ([], ["m0"])


async def test_custom_counter_sees_everything(session: Session) -> None:
    """A counter of one's own gets the view, the prompt and the blocks by their names, and may be async."""
    seen: list[tuple[int, str, list[str]]] = []

    async def count(*, messages: Any, system_prompt: str, context_blocks: Any) -> int:
        seen.append((len(messages), system_prompt, [block.label for block in context_blocks]))
        return 0

    session.on_compaction(Compactor(None)).compact_after(1, token_counter=count).with_context("memory")
    await chain(session, "m0", "m1")
    assert [(number, "MEMORY" in prompt, labels) for number, prompt, labels in seen] == [
        (1, True, ["memory"]),
        (2, True, ["memory"]),
    ]


async def test_managers_sessions_remember(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A manager's sessions compact as it says, and what one object has warned of the next one knows."""
    errors: list[Exception] = []
    manager = SessionManager(store).on_compaction(Compactor(None)).compact_after(1).on_compaction_error(errors.append)
    for n in range(3):
        await manager.append("chat", said(f"m{n}"))
    assert (len(caplog.records), errors) == (1, [])


async def test_cancelled_append(session: Session) -> None:
    """An append that is cancelled while its compaction runs is stored, and the next one can compact."""
    waiting = Waiting(middle())
    frames = Frames()
    session.on_compaction(waiting).compact_after(12).with_publisher(frames)
    await chain(session, "m0", "m1")
    task = asyncio.create_task(session.append_message(said("m2")))
    await waiting.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert frames.phases()[-2:] == ["error: CancelledError", "idle"]
    waiting.go.set()
    await session.append_message(said("m3"))
    assert await shown(session) == ["m0", "S(m1 m2)", "m3"]


async def test_estimate_reads_no_history(store: Store) -> None:
    """However long a session is, looking at its tokens after an append takes the same few statements."""
    works: list[tuple[int, int]] = []
    for length in (10, 10_000):
        plain = Session.create(store).for_session(f"of {length}")
        await plain.append_messages([said(f"m{n}") for n in range(length)])
        await plain.add_compaction("S", "m1", "m5")
        watched = Session.create(store).for_session(f"of {length}").on_compaction(Compactor(None)).compact_after(10**9)
        await watched.append_message(said("x0"))
        async with working(store) as bare:
            await plain.append_message(said("x1"))
        async with working(store) as work:
            await watched.append_message(said("x2"))
        works.append((work.statements - bare.statements, work.steps - bare.steps))
    assert works[0][0] == works[1][0] <= 12
    assert works[1][1] < works[0][1] + 200


async def test_rebuild_repeats_nothing(store: Store, session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """A rebuild calls no compaction function, no counter, no handler and no publisher (LOG-2)."""
    calls: list[str] = []
    frames = Frames(OSError("offline"))

    def counted(name: str, answer: Any) -> Any:
        def function(*_: Any, **__: Any) -> Any:
            calls.append(name)
            return answer

        return function

    session.on_compaction(counted("function", CompactResult("m0", "m1", "S"))).with_publisher(frames)
    session.compact_after(1, token_counter=counted("counter", 5)).on_compaction_error(counted("handler", None))
    await session.append_messages([said(f"m{n}") for n in range(1_000)])
    before = (len(calls), len(frames.sent), len(caplog.records), await shown(session))
    assert {"function", "counter"} <= {*calls}
    await rebuild(store)
    assert (len(calls), len(frames.sent), len(caplog.records), await shown(session)) == before
    assert (await verify(store)).ok
