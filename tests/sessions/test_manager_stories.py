"""Any history of many sessions reads as a plain model of it says."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from eventstore import EventStoreError
from replay import verify
from sessions import AUTO, SessionInfo, SessionManager, Store, open_store
from tests.properties.always import check_rebuilds, check_redelivery, check_search
from tests.properties.comparing import compare
from tests.properties.forest import RefusedError
from tests.properties.model import Conversation, Summary
from tests.sessions.talk import collect
from tests.sessions.told import Sessions, Told

NAMES = ["a", "b", "c"]
MODELS = [None, "m-1"]
WORDS = ["fox", "running", "北京"]

places = st.integers(0, 30)
texts = st.lists(st.sampled_from(WORDS), max_size=2).map(" ".join)
message_ids = st.sampled_from([f"m{number}" for number in range(8)])


class Stories(RuleBasedStateMachine):
    """Random things done to the sessions of a store, beside dicts of what is known of each."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.plain = Sessions()
        self.changed = False

    @initialize(in_file=st.booleans())
    def open(self, in_file: bool) -> None:  # noqa: FBT001 - drawn by name
        """Open a store in a file or in memory."""
        self.url = f"sqlite:///{Path(self.folder.name) / 'chats.db'}" if in_file else "sqlite://"
        self.store: Store = self.runner.run(self._open())

    async def _open(self) -> Store:
        return await open_store(self.url, synchronous="normal")

    @property
    def manager(self) -> SessionManager:
        """A manager of the store."""
        return SessionManager(self.store)

    def teardown(self) -> None:
        """Check everything a last time, and close."""
        try:
            if hasattr(self, "store"):
                self.runner.run(self._check_all())
        finally:
            if hasattr(self, "store"):
                self.runner.run(self.store.close())
            self.runner.close()
            self.folder.cleanup()

    # What is done to them.

    @rule(name=st.sampled_from(NAMES), title=texts, model=st.sampled_from(MODELS), at=places)
    def create(self, name: str, title: str, model: str | None, at: int) -> None:
        """Create a session that may be there, or may have been."""
        parent = self._pick(at) if at < 5 else None
        call = self.manager.create(title, id=name, parent_session_id=parent, model=model, source="web")
        made = self._agree(call, lambda: self.plain.create(name, Told(title, parent, model, "web")))
        assert made is None or made == self.runner.run(self.manager.get(name))

    @rule(at=places, texts=st.lists(texts, max_size=3))
    def append(self, at: int, texts: list[str]) -> None:
        """Append messages where the last one was."""
        name = self._pick(at)
        start = len(self._talk(name).parents)
        chain = [_said(f"n{start + number}", text) for number, text in enumerate(texts)]
        result = self._agree(self.manager.append_all(name, chain), lambda: self.plain.append(name, chain))
        assert result is None or [one.inserted for one in result] == [True] * len(chain)

    @rule(at=places, message=message_ids, text=texts, below=st.one_of(st.just(AUTO), st.none(), message_ids))
    def append_anything(self, at: int, message: str, text: str, below: Any) -> None:
        """Append a message that may be known or spent, below one that may be unknown."""
        name, given = self._pick(at), _said(message, text)
        self._agree(self.manager.append(name, given, below), lambda: self.plain.append(name, [given], below))

    @rule(at=places, message=message_ids, text=texts)
    def upsert(self, at: int, message: str, text: str) -> None:
        """Update a message, or append it."""
        given = _said(message, text)
        self._change(at, lambda name: self.manager.upsert(name, given), lambda talk: talk.upsert(given, AUTO))

    @rule(at=places, some=st.lists(message_ids, min_size=1, max_size=3))
    def delete_messages(self, at: int, some: list[str]) -> None:
        """Delete messages, some of which may not be there."""
        self._change(at, lambda name: self.manager.delete_messages(name, some), lambda talk: talk.delete(some))

    @rule(at=places)
    def clear(self, at: int) -> None:
        """Delete all messages."""
        self._change(at, self.manager.clear_messages, lambda talk: talk.clear())

    @rule(at=places, first=places, length=st.integers(1, 4))
    def compact(self, at: int, first: int, length: int) -> None:
        """Put a summary over a stretch of the path."""
        talk = self._talk(self._pick(at))
        path = talk.path(talk.tip)
        if path:
            stretch = path[first % len(path) :][:length]
            ends = stretch[0], stretch[-1]
            made = self._change(
                at,
                lambda name: self.manager.add_compaction(name, "they met", *ends),
                lambda talk: talk.compact("they met", *ends),
            )
            talk.summaries[-1].id = made.id

    @rule(at=places, title=texts)
    def rename(self, at: int, title: str) -> None:
        """Give a session another name, or the one it has."""
        name = self._pick(at)
        self._agree(self.manager.rename(name, title), lambda: self.plain.tell(name, name=title))

    @rule(at=places, tokens=st.integers(0, 9), cost=st.floats(-1, 1))
    def add_usage(self, at: int, tokens: int, cost: float) -> None:
        """Add usage to a session."""
        name = self._pick(at)
        self._agree(self.manager.add_usage(name, tokens, 1, cost), lambda: self.plain.use(name, tokens, 1, cost))

    @rule(at=places)
    def delete(self, at: int) -> None:
        """Delete a session, which may be gone already or never have been."""
        name = self._pick(at)
        self._agree(self.manager.delete(name), lambda: self.plain.delete(name))

    @rule(at=places, leaf=places, title=texts)
    def fork(self, at: int, leaf: int, title: str) -> None:
        """Fork a session at some message, or at one that is not there."""
        name = self._pick(at)
        contents = list(self._talk(name).contents)
        message = contents[leaf % len(contents)] if contents and leaf < 25 else "nope"
        made = self._agree(self.manager.fork(name, message, title), lambda: self.plain.has_message(name, message))
        if made is not None:
            source = self.plain.find(name)
            # Two events are about no message: the creation, and where it was forked.
            self.plain.create(made.id, Told(title, name, source.model, source.source, told=1))
            self.runner.run(self._copy(source.talk, message, made.id))
            self.runner.run(self._compare())

    @rule(at=places, title=st.one_of(st.none(), texts))
    def split(self, at: int, title: str | None) -> None:
        """Split a session."""
        name = self._pick(at)
        made = self._agree(self.manager.compact_and_split(name, "they met", title), lambda: self.plain.end(name))
        if made is not None:
            source = self.plain.find(name)
            self.plain.create(made.id, Told(source.name if title is None else title, name, source.model, source.source))
            (first,) = self.runner.run(self.manager.get_history(made.id))
            assert first.text == "[Context from previous session]\n\nthey met"
            self.plain.append(made.id, [first.to_dict()])
            self.runner.run(self._compare())

    async def _copy(self, source: Conversation, leaf: str, made: str) -> None:
        """Tell the model of the copies, whose ids only the store knows."""
        talk = self.plain.find(made).talk
        nodes = await collect(self.manager.get_session(made).tree())
        shown = source.view(source.path(leaf))
        assert len(nodes) == len(shown)
        for node, item in zip(nodes, shown, strict=True):
            copy = node.message.to_dict()
            if isinstance(item, Summary):
                given: dict[str, Any] = {"role": "assistant", "parts": [{"type": "text", "text": item.text}]}
                given["createdAt"] = copy["createdAt"]
            else:
                given = source.contents[item]
            origin = item.message_id if isinstance(item, Summary) else item
            metadata = given.get("metadata", {}) | {"forkedFrom": origin}
            assert copy == {**given, "id": copy["id"], "metadata": metadata}
            talk.append([copy], AUTO)

    @rule(limit=st.integers(1, 4), at=places, text=texts)
    def walk(self, limit: int, at: int, text: str) -> None:
        """Read the pages of a list, and write to a session and delete another between two of them."""
        expected = self.plain.listed()
        page = self.runner.run(self.manager.list(limit=limit))
        seen = [info.id for info in page]
        before = len(self.plain.gone)
        self.append(at, [text])
        self.delete(at + 1)
        while page.next_cursor is not None:
            page = self.runner.run(self.manager.list(limit=limit, cursor=page.next_cursor))
            seen += [info.id for info in page]
        lost = set(self.plain.gone[before:]) - set(seen)
        assert seen == [name for name in expected if name not in lost]

    @precondition(lambda self: self.url != "sqlite://")
    @rule()
    def reopen(self) -> None:
        """Closing and opening again changes nothing."""
        self.runner.run(self.store.close())
        self.store = self.runner.run(self._open())
        self.runner.run(self._compare())

    @precondition(lambda self: self.changed)
    @rule()
    def rebuild_is_live(self) -> None:
        """A rebuild of all projections, or of each alone, changes no row."""
        self.runner.run(check_rebuilds(self.store))
        self.changed = False

    # How both sides are told.

    def _pick(self, at: int) -> str:
        """Pick a session, mostly one that is there; else one that is gone, or that may never have been."""
        known = self.plain.listed()
        others = [*NAMES, *self.plain.gone]
        return known[at % len(known)] if at < 20 and known else others[at % len(others)]

    def _talk(self, name: str) -> Conversation:
        """Return the messages of a session, which may be unknown or gone."""
        return self.plain.known[name].talk if name in self.plain.known else Conversation()

    def _change(self, at: int, call: Callable[[str], Awaitable[Any]], change: Callable[[Conversation], object]) -> Any:
        """Change the messages of some session on both sides."""
        name = self._pick(at)
        return self._agree(call(name), lambda: self.plain.change(name, change))

    def _agree(self, call: Awaitable[Any], model: Callable[[], Any]) -> Any:
        """Do a thing on both sides, which must both succeed or fail in the same way; return what the call gave."""
        refused = None
        try:
            model()
        except RefusedError as error:
            refused = error.kind
        self.changed = True
        if refused is not None:
            with pytest.raises(EventStoreError) as raised:
                self.runner.run(_awaited(call))
            assert type(raised.value).__name__ == refused
            return None
        result = self.runner.run(_awaited(call))
        if not isinstance(result, SessionInfo):
            self.runner.run(self._compare())
        return result

    async def _compare(self) -> None:
        """Compare what is known of every session, and in which order."""
        listed = await self.manager.list()
        assert [info.id for info in listed] == self.plain.listed()
        for info in listed:
            told = self.plain.known[info.id]
            assert await self.manager.get(info.id) == info
            about = (info.name, info.parent_session_id, info.model, info.source, info.end_reason)
            assert about == (told.name, told.parent, told.model, told.source, told.end_reason)
            assert (info.input_tokens, info.output_tokens, info.estimated_cost) == told.used
            assert info.created_at <= info.updated_at
            assert await self.manager.get_message_count(info.id) == len(told.talk.path(told.talk.tip))
        for name in self.plain.gone:
            assert await self.manager.get(name) is None
            assert await self.manager.get_history(name) == []

    async def _check_all(self) -> None:
        await self._compare()
        for name, told in self.plain.known.items():
            assert await self.manager.get_session(name).version() == told.talk.version + told.told
            told.talk.version += told.told
            await compare(self.store, name, told.talk, thoroughly=False)
        talks = {name: told.talk for name, told in self.plain.known.items()}
        talks |= {name: Conversation() for name in self.plain.gone}
        for query in [*WORDS, "fox running", "met"]:
            await check_search(self.store, talks, query)
        assert (await verify(self.store)).problems == []
        await check_rebuilds(self.store)
        await check_redelivery(self.store)


def _said(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call


class TestStories(Stories.TestCase):  # type: ignore[misc, valid-type]
    """Any history of sessions reads as the model says, and rebuilding or opening it again changes nothing."""

    settings = settings(max_examples=15, stateful_step_count=25)


@pytest.mark.soak
class TestManyStories(Stories.TestCase):  # type: ignore[misc, valid-type]
    """The same for many more, and longer, histories."""

    settings = settings(max_examples=400, stateful_step_count=60)
