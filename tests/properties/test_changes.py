from __future__ import annotations

import asyncio
import datetime as dt
import itertools
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
from sessions import AUTO, Session, SessionManager, Store, open_store
from tests.properties.always import check_codec, check_rebuilds, check_redelivery, check_search
from tests.properties.comparing import compare
from tests.properties.forest import RefusedError
from tests.properties.model import Conversation

SESSIONS = ["a", "b"]
WORDS = ["fox", "Fôxes", "running", "北京", "C++"]
LONG_AGO = dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=dt.UTC)

# Most steps take place in one session.
sessions = st.sampled_from(["a", "a", "a", "b"])
names = st.sampled_from([f"m{number}" for number in range(16)])
texts = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
roles = st.sampled_from(["user", "assistant"])
places = st.integers(0, 15)
summaries = st.sampled_from(["they met", "they met again"])

stretches = st.lists(st.tuples(places, places, st.integers(1, 5)), max_size=3)


def message_of(name: str, text: str, role: str) -> dict[str, Any]:
    """Return a message with one text part."""
    return {"id": name, "role": role, "parts": [{"type": "text", "text": text}]}


messages = st.builds(message_of, names, texts, roles)
# Messages whose id is given when it is known which there are.
unnamed = st.builds(message_of, st.just(""), texts, roles)


class Changes(RuleBasedStateMachine):
    """Random histories of two sessions in which everything that is said may be changed, deleted and summarised."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.talks = {name: Conversation() for name in SESSIONS}
        self.stores: list[Store] = []
        self.turn = 0
        self.shown_once: dict[str, list[str]] = {name: [] for name in SESSIONS}
        self.order: list[str] = []
        self.changed = True

    @initialize(in_file=st.booleans(), parents=st.lists(places, max_size=10), message=unnamed, stretches=stretches)
    def open(
        self,
        in_file: bool,  # noqa: FBT001 - drawn by name
        parents: list[int],
        message: dict[str, Any],
        stretches: list[tuple[int, int, int]],
    ) -> None:
        """Open a store in a file or in memory, and grow a tree in it with summaries."""
        self.url = f"sqlite:///{Path(self.folder.name) / 'chats.db'}" if in_file else "sqlite://"
        self.runner.run(self._open())
        for at in parents:
            self.append_below("a", message, at)
        for leaf, first, length in stretches:
            self.compact("a", "they met", leaf, first, length)

    async def _open(self) -> None:
        # Two on one file, as two processes have them, which write in turn.
        for _ in range(1 if self.url == "sqlite://" else 2):
            self.stores.append(await open_store(self.url, synchronous="normal"))

    async def _close(self) -> None:
        while self.stores:
            await self.stores.pop().close()

    @property
    def store(self) -> Store:
        """The store whose turn it is."""
        return self.stores[self.turn % len(self.stores)]

    def teardown(self) -> None:
        """Check everything a last time, and close."""
        try:
            if self.stores:
                self.runner.run(self._check_all())
        finally:
            self.runner.run(self._close())
            self.runner.close()
            self.folder.cleanup()

    # What is done to them.

    @rule(name=sessions, chain=st.lists(unnamed, min_size=1, max_size=5))
    def append(self, name: str, chain: list[dict[str, Any]]) -> None:
        """Append new messages where the last one was."""
        self._append(name, self._named(name, chain), AUTO)

    @rule(name=sessions, message=unnamed, at=places)
    def append_below(self, name: str, message: dict[str, Any], at: int) -> None:
        """Append a new message below some message, or as a root."""
        self._append(name, self._named(name, [message]), self._pick(name, at - 1) if at else None)

    @rule(name=sessions, message=unnamed, number=st.integers(-1, 3))
    def append_below_a_summary(self, name: str, message: dict[str, Any], number: int) -> None:
        """Append a new message below what a history shows in place of others, or may have shown once."""
        known = self.shown_once[name]
        parent = known[number % len(known)] if known and number >= 0 else "compaction_unknown"
        self._append(name, self._named(name, [message]), parent)

    @rule(name=sessions, chain=st.lists(messages, max_size=3), parent=st.one_of(st.just(AUTO), st.none(), names))
    def append_anything(self, name: str, chain: list[dict[str, Any]], parent: Any) -> None:
        """Append messages that may be known or gone, below one that may be unknown or gone."""
        self._append(name, chain, parent)

    @rule(name=sessions, at=places, now=st.booleans())
    def append_again(self, name: str, at: int, now: bool) -> None:  # noqa: FBT001 - drawn by name
        """Append a message again, as it was first or as it is now, below the parent that it was first given."""
        talk, message = self.talks[name], self._pick(name, at)
        if message is not None:
            self._append(name, [(talk.contents if now else talk.first)[message]], talk.parents[message])

    @rule(name=sessions, message=messages, new=st.booleans())
    def import_one(self, name: str, message: dict[str, Any], new: bool) -> None:  # noqa: FBT001 - drawn by name
        """Import a message with a time of its own."""
        talk, inserted = self.talks[name], [False]
        if new:
            (message,) = self._named(name, [message])
        timed = {**message, "createdAt": LONG_AGO.isoformat().replace("+00:00", "Z")}
        call, tip = self._session(name).import_message(message, talk.tip, LONG_AGO), talk.tip
        result = self._agree(name, call, lambda: inserted.__setitem__(slice(None), talk.append([timed], tip)))
        if result is not None:
            assert [result.inserted] == inserted
            assert result.message.created_at == LONG_AGO

    @rule(name=sessions, message=messages)
    def update_anything(self, name: str, message: dict[str, Any]) -> None:
        """Give a message, which may be unknown or gone, a new content."""
        found = [False]
        call = self._session(name).update_message(message)
        updated = self._agree(name, call, lambda: found.__setitem__(0, self.talks[name].update(message)))
        assert (updated and updated.to_dict()) == (message if found[0] else None)

    @rule(name=sessions, at=places, text=texts)
    def update(self, name: str, at: int, text: str) -> None:
        """Give a message that is there a new text, or the one it has."""
        message = self._pick(name, at)
        if message is not None:
            changed = {**self.talks[name].contents[message], "parts": [{"type": "text", "text": text}]}
            self.update_anything(name, changed)

    @rule(name=sessions, message=messages, at=places)
    def upsert(self, name: str, message: dict[str, Any], at: int) -> None:
        """Update a message, or append it below another."""
        talk, new = self.talks[name], [False]
        parent = self._pick(name, at - 1) if at else AUTO
        call = self._session(name).upsert_message(message, parent)
        result = self._agree(name, call, lambda: new.__setitem__(0, talk.upsert(message, parent)))
        if result is not None:
            assert [result.inserted] == new
            assert result.message.to_dict() == message

    @rule(name=sessions, some=st.lists(names, max_size=3))
    def delete_anything(self, name: str, some: list[str]) -> None:
        """Delete a few messages, unknown and repeated ones among them."""
        self._delete(name, some)

    @rule(name=sessions, some=st.lists(places, min_size=1, max_size=3))
    def delete(self, name: str, some: list[int]) -> None:
        """Delete messages that are there."""
        self._delete(name, [message for at in some if (message := self._pick(name, at)) is not None])

    @rule(name=sessions, at=places, what=st.sampled_from(["tip", "below", "path"]))
    def delete_many(self, name: str, at: int, what: str) -> None:
        """Delete the latest leaf, a message with everything below it, or the end of a path."""
        talk, top = self.talks[name], self._pick(name, at)
        below = [message for message in talk.contents if top in talk.path(message)]
        gone = {"tip": talk.path(talk.tip)[-1:], "below": below[:6], "path": talk.path(top)[-3:]}
        self._delete(name, gone[what])

    @rule(name=sessions, at=places, more=st.booleans())
    def delete_the_chosen(self, name: str, at: int, more: bool) -> None:  # noqa: FBT001 - drawn by name
        """Choose a branch, and then delete it where it ends, and perhaps the message above too."""
        self.select(name, at)
        talk = self.talks[name]
        self._delete(name, talk.path(talk.tip)[-2 if more else -1 :])

    @rule(name=sessions, really=st.integers(0, 4))
    def clear(self, name: str, really: int) -> None:
        """Clear a session, once in a while."""
        if really == 4:
            self._agree(name, self._session(name).clear_messages(), self.talks[name].clear)

    @rule(name=sessions, at=places)
    def select(self, name: str, at: int) -> None:
        """Choose a branch."""
        self.select_anything(name, self._pick(name, at) or "")

    @rule(name=sessions, message=names)
    def select_anything(self, name: str, message: str) -> None:
        """Choose a message that may be unknown or gone."""
        self._agree(name, self._session(name).select_leaf(message), lambda: self.talks[name].select(message))

    @rule(name=sessions, text=st.sampled_from(["", " \n", "S"]), first=names, last=names)
    def compact_anything(self, name: str, text: str, first: str, last: str) -> None:
        """Put a summary between two ids that may be unknown, gone, on two branches or in the wrong order."""
        self._compact(name, text, first, last)

    @rule(name=sessions, text=summaries, leaf=places, first=places, length=st.integers(1, 5))
    def compact(self, name: str, text: str, leaf: int, first: int, length: int) -> None:
        """Put a summary over a stretch of some path."""
        talk = self.talks[name]
        path = talk.path(self._pick(name, leaf - 6) if leaf > 5 else talk.tip)
        if path:
            stretch = path[first % len(path) :][:length]
            self._compact(name, text, stretch[0], stretch[-1])

    @precondition(lambda self: self.url != "sqlite://")
    @rule()
    def reopen(self) -> None:
        """Closing and opening again changes nothing."""
        self.runner.run(self._close())
        self.runner.run(self._open())

    @precondition(lambda self: self.changed)
    @rule()
    def rebuild_is_live(self) -> None:
        """A rebuild of all projections, or of each alone, changes no row."""
        self.runner.run(check_rebuilds(self.store))
        self.changed = False

    # How both sides are told.

    def _session(self, name: str) -> Session:
        self.turn += 1
        return Session.create(self.store).for_session(name)

    def _pick(self, name: str, at: int) -> str | None:
        """Pick one of the messages that are there, if there is any."""
        known = list(self.talks[name].contents)
        return known[at % len(known)] if known else None

    def _named(self, name: str, chain: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give messages ids that were never used in a session."""
        free = (f"m{number}" for number in itertools.count() if f"m{number}" not in self.talks[name].parents)
        return [{**message, "id": id} for message, id in zip(chain, free, strict=False)]

    def _append(self, name: str, chain: list[dict[str, Any]], parent: Any) -> None:
        talk, new = self.talks[name], [False]
        session = self._session(name)
        call = session.append_message(chain[0], parent) if len(chain) == 1 else session.append_messages(chain, parent)
        results = self._agree(name, call, lambda: new.__setitem__(slice(None), talk.append(chain, parent)))
        if results is not None:
            assert [one.inserted for one in (results if isinstance(results, list) else [results])] == new

    def _delete(self, name: str, some: list[str]) -> None:
        count = [0]
        call = self._session(name).delete_messages(some)
        assert self._agree(name, call, lambda: count.__setitem__(0, self.talks[name].delete(some))) == count[0]

    def _compact(self, name: str, text: str, first: str, last: str) -> None:
        talk = self.talks[name]
        call = self._session(name).add_compaction(text, first, last)
        compaction = self._agree(name, call, lambda: talk.compact(text, first, last))
        if compaction is not None:
            talk.summaries[-1].id = compaction.id
            self.shown_once[name].append(talk.summaries[-1].message_id)
            assert (compaction.summary, compaction.stale) == (text, False)
            assert (compaction.from_message_id, compaction.to_message_id) == (first, last)
            self.runner.run(compare(self.store, name, talk, thoroughly=False))

    def _agree(self, name: str, call: Awaitable[Any], model: Callable[[], Any]) -> Any:
        """Do a thing on both sides, which must both succeed or fail in the same way; return what the call gave."""
        talk = self.talks[name]
        before = talk.version
        refused = None
        try:
            model()
        except RefusedError as error:
            refused = error.kind
        if refused is not None:
            with pytest.raises(EventStoreError) as raised:
                self.runner.run(_awaited(call))
            assert type(raised.value).__name__ == refused
            return None
        result = self.runner.run(_awaited(call))
        if talk.version > before:
            self.order = [*(one for one in self.order if one != name), name]
            self.changed = True
        if not (talk.summaries and talk.summaries[-1].id == ""):
            self.runner.run(compare(self.store, name, talk, thoroughly=False))
        return result

    async def _check_all(self) -> None:
        for name, talk in self.talks.items():
            await compare(self.store, name, talk, thoroughly=True)
        assert [info.id for info in await SessionManager(self.store).list()] == self.order[::-1]
        for query in [*WORDS, "fox running", '"fox 北京"', "met"]:
            await check_search(self.store, self.talks, query)
        assert (await verify(self.store)).problems == []
        await check_rebuilds(self.store)
        await check_redelivery(self.store)
        await check_codec(self.store)


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call


class TestChanges(Changes.TestCase):  # type: ignore[misc, valid-type]
    """Any history of changes reads as the model says, and rebuilding or opening it again changes nothing."""

    settings = settings(max_examples=30, stateful_step_count=25)


@pytest.mark.soak
class TestManyChanges(Changes.TestCase):  # type: ignore[misc, valid-type]
    """The same for many more, and longer, histories."""

    settings = settings(max_examples=500, stateful_step_count=60)
