"""What a session promises over any provider of messages, be it the store's own or an application's."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eventstore import InvalidArgumentError, NotSupportedError
from sessions import Compaction, Message, RecentHistory, RowStat, Session, StoredSession, open_store
from tests.projections.support import NOON
from tests.sessions.providers import Entries, Note
from tests.sessions.talk import collect, ids, said


class InMemory:
    """Messages in a list, each under the one before it unless a parent is named; nothing but the twelve methods."""

    def __init__(self) -> None:
        self.messages: dict[str, tuple[Any, str | None]] = {}
        self.compactions: list[Compaction] = []

    def get_message(self, message_id: str) -> Any:
        """Give a message."""
        return self.messages.get(message_id, (None, None))[0]

    def get_history(self, leaf_id: str | None = None) -> list[Any]:
        """Give the path to a leaf."""
        path: list[Any] = []
        at = leaf_id or next(reversed(self.messages), None)
        while at is not None:
            message, at = self.messages[at]
            path.append(message)
        return path[::-1]

    def get_latest_leaf(self) -> Any:
        """Give the last message."""
        return self.get_message(next(reversed(self.messages), ""))

    def get_branches(self, message_id: str) -> list[Any]:
        """Give the children of a message."""
        return [message for message, parent_id in self.messages.values() if parent_id == message_id]

    def get_path_length(self, leaf_id: str | None = None) -> int:
        """Count a path."""
        return len(self.get_history(leaf_id))

    def append_message(self, message: Message, *parent: str | None) -> None:
        """Append a message."""
        self.messages[message.id] = (message, parent[0] if parent else next(reversed(self.messages), None))

    def update_message(self, message: Message) -> None:
        """Replace a message."""
        self.messages[message.id] = (message, self.messages[message.id][1])

    def delete_messages(self, ids: Sequence[str]) -> None:
        """Delete messages."""
        for one in ids:
            self.messages.pop(one, None)

    def clear_messages(self) -> None:
        """Delete all messages."""
        self.messages.clear()
        self.compactions.clear()

    def add_compaction(self, summary: str, from_message_id: str, to_message_id: str) -> Compaction:
        """Remember a compaction."""
        self.compactions.append(Compaction("k", summary, from_message_id, to_message_id, NOON, stale=False))
        return self.compactions[-1]

    def get_compactions(self) -> list[Compaction]:
        """Give the compactions."""
        return self.compactions

    def search_messages(self, query: str, *, limit: int = 20) -> list[Any]:
        """Find messages by a part of their text."""
        return [message for message, _ in self.messages.values() if query in message.text][:limit]


class InDicts:
    """The same with async methods that speak of messages as dicts, and no search."""

    def __init__(self) -> None:
        self._kept = InMemory()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_") or name not in vars(InMemory) or name == "search_messages":
            raise AttributeError(name)

        async def method(*arguments: Any) -> Any:
            found = getattr(self._kept, name)(*arguments)
            if isinstance(found, list):
                return [one.to_dict() if isinstance(one, Message) else one for one in found]
            return found.to_dict() if isinstance(found, Message) else found

        return method


@pytest.fixture(params=["stored", "in memory", "in dicts"])
async def provider(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """Return an empty provider of each kind."""
    if request.param == "stored":
        async with open_store(f"sqlite:///{tmp_path / 'chats.db'}", synchronous="normal") as store:
            yield StoredSession(store, "chat")
    else:
        yield InMemory() if request.param == "in memory" else InDicts()


async def test_messages_go_in_and_come_out(provider: Any) -> None:
    """What is appended, edited, deleted and cleared through a session is read through it, as messages."""
    session = Session(provider)
    assert await session.get_latest_leaf() is None
    assert (await session.append_message(said("a", "one", custom={"keep": 1}))).inserted
    appended = await session.append_messages([said("b"), Message(**said("c"))])
    assert ids([one.message for one in appended]) == ["b", "c"]
    await session.append_message(said("d"), "a")
    assert ids(await session.get_history("c")) == ["a", "b", "c"]
    assert ids(await session.get_history("c", limit=2)) == ["b", "c"]
    assert ids(await session.get_history()) == ["a", "d"]
    assert ids(await session.get_branches("a")) == ["b", "d"]
    assert await session.get_path_length("c") == 3
    message = await session.get_message("a")
    assert message is not None
    assert (message.text, message.to_dict()["custom"]) == ("one", {"keep": 1})
    assert await session.get_message("z") is None
    updated = await session.update_message(said("b", "two"))
    assert updated is not None
    assert updated.text == "two"
    assert await session.update_message(said("z")) is None
    assert not (await session.upsert_message(said("b", "three"))).inserted
    assert (await session.upsert_message(said("e", "four"), "d")).inserted
    assert [one.text for one in await session.get_history("c")] == ["one", "three", "hello"]
    assert await session.delete_messages(["e", "z"]) == 1
    await session.clear_messages()
    assert await session.get_history() == []


async def test_long_reads(provider: Any) -> None:
    """A history is read one by one, in batches, and its end within bounds, the same over any provider."""
    session = Session(provider)
    await session.append_messages([said(f"m{n}", "x" * 100) for n in range(5)])
    names = [f"m{n}" for n in range(5)]
    assert ids(await collect(session.history())) == names
    assert ids(await collect(session.history(newest_first=True))) == names[::-1]
    batches = await collect(session.history_batches(batch_size=2))
    assert [ids(batch) for batch in batches] == [names[:2], names[2:4], names[4:]]
    assert [len(batch) for batch in await collect(session.history_batches(max_batch_bytes=1))] == [1] * 5
    stats = await session.get_history_row_stats()
    recent = await session.get_recent_history(stats[0].bytes * 2)
    assert (ids(recent.messages), recent.truncated) == (names[3:], True)
    assert recent.total_content_bytes == sum(stat.bytes for stat in stats)
    assert [(stat.id, stat.role) for stat in stats] == [(name, "user") for name in names]


async def test_compactions_are_kept(provider: Any) -> None:
    """A compaction is added and listed; a blank summary goes to no provider."""
    session = Session(provider)
    await session.append_messages([said("a"), said("b")])
    added = await session.add_compaction("in short", "a", "b")
    assert (added.summary, added.from_message_id, added.to_message_id) == ("in short", "a", "b")
    assert [one.id for one in await session.get_compactions()] == [added.id]
    with pytest.raises(Exception, match="blank"):
        await session.add_compaction(" ", "a", "b")


async def test_blocks_prompt_and_skills(provider: Any) -> None:
    """Blocks with providers, the prompt and skills work over any provider of messages."""
    session = Session(provider, prompt_store=Note())
    session.with_context("memory", provider=Note("likes tea")).with_context("skills", provider=Entries(tea="Boil."))
    frozen = await session.freeze_system_prompt()
    await session.append_context_block("memory", "and milk")
    assert await session.freeze_system_prompt() == frozen
    assert await session.load_skill("skills", "tea") == "Boil."
    assert await session.get_loaded_skill_keys() == {"skills:tea"}
    assert await session.unload_skill("skills", "tea")
    assert await session.get_loaded_skill_keys() == set()
    await session.load_skill("skills", "tea")
    await session.clear_messages()
    assert await session.get_loaded_skill_keys() == set()
    assert "and milk" in await session.freeze_system_prompt()


@pytest.mark.parametrize("kind", [InMemory, InDicts])
async def test_what_only_a_log_can_answer(kind: Callable[[], Any]) -> None:
    """Over a provider without a log the calls that need one are refused, and nothing is written."""
    session = Session(kind())
    calls: list[Callable[[], Any]] = [
        session.version,
        session.events,
        session.subscribe,
        session.tree,
        lambda: session.select_leaf("a"),
        lambda: session.import_message(said("a"), None, None),  # type: ignore[arg-type]
        lambda: session.append_message(said("a"), expected_version=0),
        lambda: session.append_message(said("a"), metadata={}),
    ]

    async def answer(call: Callable[[], Any]) -> None:
        called = call()
        await (called if inspect.isawaitable(called) else anext(called))

    for call in calls:
        with pytest.raises(NotSupportedError):
            await answer(call)
    assert await session.get_history() == []


async def test_search_if_the_provider_can() -> None:
    """A provider that can search is asked, and one that cannot is said to."""
    session = Session(InMemory())
    await session.append_messages([said("a", "tea"), said("b", "milk")])
    assert ids(await session.search("tea")) == ["a"]  # type: ignore[arg-type]
    with pytest.raises(NotSupportedError):
        await Session(InDicts()).search("tea")


class KnowsMore(InMemory):
    """A provider that answers by itself what else would take its whole history."""

    def get_recent_history(self, most: int, least: int = 1, *, leaf_id: str | None = None) -> RecentHistory:
        """Give the last message, and say what was asked."""
        return RecentHistory([self.get_latest_leaf().to_dict()], most > least, len(str(leaf_id)))

    async def get_history_row_stats(self, leaf_id: str | None = None) -> tuple[RowStat, ...]:
        """Give a row that says what was asked."""
        return (RowStat(str(leaf_id), "user", 1, 2),)


async def test_provider_that_knows_more_is_asked() -> None:
    """A provider with its own way to the end of a history, or to its sizes, is asked for them with the arguments."""
    session = Session(KnowsMore())
    await session.append_messages([said("a"), said("b")])
    recent = await session.get_recent_history(9, 3)
    assert (ids(recent.messages), recent.truncated, recent.total_content_bytes) == (["b"], True, 4)
    assert isinstance(recent.messages[0], Message)
    assert await session.get_history_row_stats("a") == [RowStat("a", "user", 1, 2)]


async def test_reads_of_an_empty_provider_are_empty(provider: Any) -> None:
    """Over any provider a session of which nothing is stored has no history, no batches and no sizes."""
    session = Session(provider)
    assert await collect(session.history()) == []
    assert await collect(session.history_batches()) == []
    assert await session.get_history_row_stats() == []
    recent = await session.get_recent_history(10)
    assert (recent.messages, recent.truncated, recent.total_content_bytes) == ([], False, 0)


@pytest.mark.parametrize("odd", ["a", 5, [said("a")]])
async def test_what_is_no_message_is_refused(odd: Any) -> None:
    """A provider that gives something else for a message is told so by a typed error."""
    provider = InMemory()
    provider.messages["a"] = (odd, None)
    with pytest.raises(InvalidArgumentError, match="message"):
        await Session(provider).get_message("a")
    with pytest.raises(InvalidArgumentError, match="message"):
        await Session(provider).get_history()


@pytest.mark.parametrize("thing", [object(), None, "sqlite://", {}])
def test_what_is_no_provider_is_refused(thing: Any) -> None:
    """A session over something that keeps no messages is refused when it is built."""
    with pytest.raises(InvalidArgumentError):
        Session(thing)
