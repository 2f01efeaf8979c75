from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from eventstore import InvalidArgumentError, InvalidCompactionError, LimitExceededError
from replay import verify
from sessions import Limits, SessionManager, Store, open_store
from tests.sessions.talk import ids, log_of, said


@pytest.fixture
def manager(store: Store) -> SessionManager:
    """Return a manager of the store."""
    return SessionManager(store)


async def talk(manager: SessionManager) -> None:
    """Create the session "s" with two messages."""
    await manager.create("Talk", id="s", model="m", source="web")
    await manager.append_all("s", [said("m1"), said("m2")])


async def test_split_goes_on_with_a_summary(store: Store, manager: SessionManager) -> None:
    """A split ends a session and begins one that holds the summary alone, and both take messages."""
    await talk(manager)
    await manager.add_usage("s", 5, 6, 0.5)
    made = await manager.compact_and_split("s", "They met.", "Part two")
    assert (made.name, made.parent_session_id, made.model, made.source) == ("Part two", "s", "m", "web")
    assert (made.input_tokens, made.output_tokens, made.estimated_cost, made.end_reason) == (0, 0, 0.0, None)
    assert await manager.get(made.id) == made
    (first,) = await manager.get_history(made.id)
    assert (first.role, first.text) == ("assistant", "[Context from previous session]\n\nThey met.")
    source = await manager.get("s")
    assert source is not None
    assert (source.name, source.end_reason) == ("Talk", "compaction")
    assert ids(await manager.get_history("s")) == ["m1", "m2"]
    assert [(stream, kind) for stream, _, kind in (await log_of(store))[-3:]] == [
        ("s", "session_ended"),
        (made.id, "session_created"),
        (made.id, "message_appended"),
    ]
    for session_id in ("s", made.id):
        await manager.append(session_id, said("more"))
    again = await manager.compact_and_split("s", "They met again.")
    assert (again.name, again.id != made.id) == ("Talk", True)
    assert (await verify(store)).problems == []


async def test_split_of_a_session_that_was_only_appended_to(manager: SessionManager) -> None:
    """A session that was never created is split as well, and its id is the name of what goes on."""
    await manager.append("chat", said("m1"))
    made = await manager.compact_and_split("chat", "S")
    assert (made.name, made.parent_session_id) == ("chat", "chat")
    assert (await manager.compact_and_split("chat", "S", "")).name == ""


@pytest.mark.parametrize("summary", ["", "  \n\t", "\u3000"])
async def test_split_with_a_blank_summary_is_refused(store: Store, manager: SessionManager, summary: str) -> None:
    """A blank summary ends nothing and begins nothing (CMP-6)."""
    await talk(manager)
    log = await log_of(store)
    with pytest.raises(InvalidCompactionError):
        await manager.compact_and_split("s", summary)
    assert await log_of(store) == log


@pytest.mark.parametrize("wrong", [5, None, b"x", ["a"]])
async def test_wrong_kinds_are_refused(store: Store, manager: SessionManager, wrong: Any) -> None:
    """What is no text is no id, name or summary, and nothing is written for it."""
    await talk(manager)
    log = await log_of(store)
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "session_id": lambda: manager.fork(wrong, "m1", "F"),
        "at_message_id": lambda: manager.fork("s", wrong, "F"),
        "new_name": lambda: manager.fork("s", "m1", wrong),
        "summary": lambda: manager.compact_and_split("s", wrong),
    }
    for argument, call in calls.items():
        with pytest.raises(InvalidArgumentError) as raised:
            await call()
        assert raised.value.argument == argument
    assert await log_of(store) == log


async def test_limits_of_names_and_summaries(url: str) -> None:
    """Names and summaries of forks and splits are held to the store's limits."""
    async with open_store(url, limits=Limits(title_bytes=4, message_bytes=200), synchronous="normal") as store:
        manager = SessionManager(store)
        await manager.create("A", id="s")
        await manager.append("s", said("m1"))
        for call, path in (
            (manager.fork("s", "m1", "five5"), "new_name"),
            (manager.compact_and_split("s", "S", "five5"), "new_name"),
            (manager.compact_and_split("s", "x" * 201), "summary"),
        ):
            with pytest.raises(LimitExceededError) as raised:
                await call
            assert raised.value.path == path
        assert [info.id for info in await manager.list()] == ["s"]
