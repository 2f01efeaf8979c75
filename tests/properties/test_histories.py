from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from eventstore import EventStoreError
from eventstore.statements import Row
from replay import rebuild, verify
from sessions import AUTO, Session, SessionManager, Store, open_store
from tests.properties.forest import RefusedError, Tree
from tests.sessions.talk import collect, ids

SESSIONS = ["", "a", "A"]
WORDS = ["fox", "foxes", "the", "Fôx", "run", "running", "北京", "京", "日本語", "x", "C++", '"']

names = st.sampled_from([f"m{number}" for number in range(9)])
texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
messages = st.builds(
    lambda name, text, role: {"id": name, "role": role, "parts": [{"type": "text", "text": text}]},
    names,
    texts,
    st.sampled_from(["user", "assistant"]),
)
parents = st.one_of(st.just(AUTO), st.none(), names)
sessions = st.sampled_from(SESSIONS)


class Histories(RuleBasedStateMachine):
    """Random appends and selections on a few sessions of a file, beside a model of plain dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'chats.db'}"
        self.store: Store = self.runner.run(self._open())
        self.trees = {name: Tree() for name in SESSIONS}
        self.order: list[str] = []
        self.changed = True

    async def _open(self) -> Store:
        return await open_store(self.url, synchronous="normal")

    def teardown(self) -> None:
        """Check a last time, and close everything."""
        try:
            assert self.runner.run(verify(self.store)).ok
        finally:
            self.runner.run(self.store.close())
            self.runner.close()
            self.folder.cleanup()

    def session(self, name: str) -> Session:
        """Return a session by a handle of its own."""
        return Session.create(self.store).for_session(name)

    def agree(self, name: str, call: Awaitable[Any], model: Callable[[], Any]) -> Any:
        """Do a thing on both sides, which must both succeed or fail in the same way; return what the call gave."""
        before = self.trees[name].version
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
        if self.trees[name].version > before:
            self.order = [*(one for one in self.order if one != name), name]
        self.changed = True
        return result

    @rule(name=sessions, message=messages, parent=parents)
    def append(self, name: str, message: dict[str, Any], parent: Any) -> None:
        """Append one message."""
        tree, new = self.trees[name], [False]
        append = self.session(name).append_message(message, parent)
        result = self.agree(name, append, lambda: new.__setitem__(slice(None), tree.append([message], parent)))
        if result is not None:
            assert [result.inserted] == new
            assert result.message.to_dict() == message
            assert not result.inserted or result.version == tree.version

    @rule(name=sessions, chain=st.lists(messages, max_size=4), parent=parents)
    def append_chain(self, name: str, chain: list[dict[str, Any]], parent: Any) -> None:
        """Append a few messages as a chain."""
        tree, new = self.trees[name], [False]
        append = self.session(name).append_messages(chain, parent)
        results = self.agree(name, append, lambda: new.__setitem__(slice(None), tree.append(chain, parent)))
        if results is not None:
            assert [result.inserted for result in results] == new

    @rule(name=sessions, message=messages, behind=st.integers(0, 2))
    def append_expecting(self, name: str, message: dict[str, Any], behind: int) -> None:
        """Append one message, expecting the version that the session is at or an earlier one."""
        tree = self.trees[name]
        expected = max(tree.version - behind, 0)

        def model() -> None:
            if message["id"] not in tree.messages and expected != tree.version:
                raise RefusedError("VersionConflictError")
            if message["id"] in tree.messages and message != tree.messages[message["id"]]:
                raise RefusedError("VersionConflictError" if expected != tree.version else "DuplicateMessageError")
            tree.append([message], AUTO)

        self.agree(name, self.session(name).append_message(message, expected_version=expected), model)

    @rule(name=sessions, message=names)
    def select(self, name: str, message: str) -> None:
        """Choose a branch."""
        self.agree(name, self.session(name).select_leaf(message), lambda: self.trees[name].select(message))

    @precondition(lambda self: self.changed)
    @rule()
    def rebuild_is_live(self) -> None:
        """A rebuild changes no row of any projection."""
        before = self.dumps()
        self.runner.run(rebuild(self.store))
        assert self.dumps() == before
        self.changed = False

    @rule()
    def reopen(self) -> None:
        """Closing and opening again changes nothing."""
        before = self.dumps()
        self.runner.run(self.store.close())
        self.store = self.runner.run(self._open())
        assert self.dumps() == before

    @rule(query=st.one_of(texts, texts.map(lambda text: f'"{text}"')))
    def search(self, query: str) -> None:
        """A search finds exactly the messages that hold all of its words and phrases, in one session and in all."""
        found: set[tuple[str, str]] = set()
        for name, tree in self.trees.items():
            expected = list(tree.holding(query))
            newest = self.runner.run(self.session(name).search(query, order="newest", limit=100))
            assert [hit.id for hit in newest] == expected
            best = self.runner.run(self.session(name).search(query, limit=100))
            assert sorted(hit.id for hit in best) == sorted(expected)
            found |= {(name, message) for message in expected}
        everywhere = self.runner.run(SessionManager(self.store).search(query, limit=1_000))
        assert {(hit.session_id, hit.id) for hit in everywhere} == found
        assert len(everywhere) == len(found)

    @invariant()
    def reads_agree(self) -> None:
        """Everything that can be read of every session is as the model says."""
        self.runner.run(self._compare())

    async def _compare(self) -> None:
        for name, tree in self.trees.items():
            session = self.session(name)
            assert await session.version() == tree.version == len(await collect(session.events()))
            latest = await session.get_latest_leaf()
            assert (latest and latest.id) == tree.tip
            nodes = await collect(session.tree())
            assert [(node.message.id, node.parent_id) for node in nodes] == list(tree.parents.items())
            assert {node.message.id: node.message.to_dict() for node in nodes} == tree.messages
            for leaf in [None, *tree.messages]:
                path = tree.path(tree.tip if leaf is None else leaf)
                assert ids(await session.get_history(leaf)) == path
                assert await session.get_path_length(leaf) == len(path)
                if leaf is not None:
                    assert ids(await session.get_branches(leaf)) == tree.children(leaf)
            assert ids([message async for message in session.history()]) == tree.path(tree.tip)
        assert [info.id for info in await SessionManager(self.store).list()] == self.order[::-1]

    def dumps(self) -> list[list[Row]]:
        """Return every row of every projection."""
        projections: list[Any] = list(self.store.log.projections)
        return self.runner.run(self.store.log.read(lambda tx: [list(one.dump(tx)) for one in projections]))


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call


class TestHistories(Histories.TestCase):  # type: ignore[misc, valid-type]
    """Any history reads as the model says, and rebuilding or opening it again changes nothing."""

    settings = settings(max_examples=30, stateful_step_count=25)


@pytest.mark.soak
class TestManyHistories(Histories.TestCase):  # type: ignore[misc, valid-type]
    """The same for many more, and longer, histories."""

    settings = settings(max_examples=500, stateful_step_count=60)
