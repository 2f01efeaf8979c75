from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import inspect
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventstore import ANY, NO_STREAM, EventStoreError, UnreadableEvent
from replay import verify
from sessions import AUTO, Message, Session, SessionManager, Store, StoredSession, open_store

Values = tuple[Any, ...]


class Odd(str):
    """A text that says something else when it is asked for its text."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return another text."""
        return "other"


class Surroundings:
    """A store in memory that stays open, and the loop it runs on."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.store: Store = self.runner.run(self._opened())

    async def _opened(self) -> Store:
        store = await open_store("sqlite://")
        for name in ("1", "chat"):
            await (
                Session.create(store)
                .for_session(name)
                .append_messages(
                    [
                        {"id": id_, "role": "user", "parts": [{"type": "text", "text": "a"}]}
                        for id_ in ("0", "1", "True")
                    ]
                )
            )
        return store

    def session(self) -> Session:
        """Return a session that has messages, one of them with the id "1"."""
        return Session.create(self.store).for_session("chat")

    def manager(self) -> SessionManager:
        """Return a manager of the store."""
        return SessionManager(self.store)

    def close(self) -> None:
        """Close the store and the loop."""
        self.runner.run(self.store.close())
        self.runner.close()


@pytest.fixture(scope="module")
def around() -> Iterator[Surroundings]:
    """Return surroundings that all examples share."""
    surroundings = Surroundings()
    yield surroundings
    surroundings.close()


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**63, -(2**63) - 1, 2**100]),
    # Too long to be written down, also in an error.
    st.sampled_from([1, -1]).map(lambda sign: sign * 10**5_000),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(["", "0", "1", "chat", "\ud800", "a\0b", "x" * 600, "context:a", "compaction_1", "user", "text"]),
    st.binary(max_size=3),
)
odd = st.sampled_from(
    [
        object(),
        object,
        ...,
        AUTO,
        ANY,
        NO_STREAM,
        Odd("1"),
        dt.datetime(2025, 1, 1),  # noqa: DTZ001 - on purpose
        dt.datetime.now(dt.UTC),
        1j,
        range(2),
    ]
)
hashable = st.one_of(plain, odd)
anything: st.SearchStrategy[Any] = st.recursive(
    st.one_of(hashable, st.sets(plain, max_size=2), st.builds(bytearray)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.one_of(st.text(max_size=3), plain), inner, max_size=3),
    ),
    max_leaves=6,
)
part = st.one_of(
    anything,
    st.fixed_dictionaries(
        {"type": st.one_of(st.just("text"), anything)}, optional={"text": anything, "input": anything}
    ),
)
message_like = st.fixed_dictionaries(
    {},
    optional={
        "id": st.one_of(st.text(max_size=3), anything),
        "role": st.one_of(st.just("user"), anything),
        "parts": st.one_of(st.lists(part, max_size=2), st.lists(part, max_size=2).map(tuple), anything),
        "createdAt": st.one_of(st.just("2025-01-01T00:00:00Z"), anything),
        "metadata": anything,
        "other": anything,
    },
)
good_message = st.builds(lambda text: {"id": f"m{text}", "role": "user", "parts": []}, st.text(max_size=3))
message = st.one_of(message_like, anything, good_message)

CALLS: dict[str, tuple[Callable[..., Any], list[st.SearchStrategy[Any]]]] = {
    "append_message": (lambda a, m, p: a.session().append_message(m, p), [message, anything]),
    "append_message: parent": (lambda a, m, p: a.session().append_message(m, p), [good_message, anything]),
    "append_message: expected": (
        lambda a, m, e: a.session().append_message(m, expected_version=e),
        [good_message, anything],
    ),
    "append_message: metadata": (lambda a, m, d: a.session().append_message(m, metadata=d), [good_message, anything]),
    "append_messages": (
        lambda a, m, p: a.session().append_messages(m, p),
        [st.one_of(anything, st.lists(message, max_size=2)), anything],
    ),
    "get_message": (lambda a, i: a.session().get_message(i), [anything]),
    "get_history": (lambda a, i: a.session().get_history(i), [anything]),
    "history": (lambda a, i: a.session().history(i), [anything]),
    "get_path_length": (lambda a, i: a.session().get_path_length(i), [anything]),
    "get_branches": (lambda a, i: a.session().get_branches(i), [anything]),
    "select_leaf": (lambda a, i: a.session().select_leaf(i), [anything]),
    "search": (lambda a, q: a.session().search(q), [anything]),
    "search: limit": (lambda a, n: a.session().search("a", limit=n), [anything]),
    "search: order": (lambda a, o: a.session().search("a", order=o), [anything]),
    "events": (lambda a, v: a.session().events(v), [anything]),
    "subscribe": (lambda a, v: a.session().subscribe(v), [anything]),
    "for_session": (lambda a, i: Session.create(a.store).for_session(i).get_history(), [anything]),
    "Session.create": (lambda _, o: Session.create(o).get_history(), [anything]),
    "Session": (lambda _, o: Session(o).get_history(), [anything]),
    "StoredSession": (lambda a, i: StoredSession(a.store, i).get_history(), [anything]),
    "StoredSession: store": (lambda _, o: StoredSession(o, "chat").get_history(), [anything]),
    "SessionManager": (lambda _, o: SessionManager(o).list(), [anything]),
    "manager.create": (lambda a, n: a.manager().create(n), [anything]),
    "manager.create: id": (lambda a, i: a.manager().create("n", id=i), [anything]),
    "manager.create: parent": (lambda a, i: a.manager().create("n", parent_session_id=i), [anything]),
    "manager.create: model": (lambda a, t: a.manager().create("n", model=t, source=t), [anything]),
    "manager.get": (lambda a, i: a.manager().get(i), [anything]),
    "manager.get_session": (lambda a, i: a.manager().get_session(i).version(), [anything]),
    "manager.search": (lambda a, q, n: a.manager().search(q, limit=n), [anything, anything]),
    "Message": (lambda _, r, p: looked_at(Message(role=r, parts=p)), [anything, st.one_of(anything, st.lists(part))]),
    "Message: others": (
        lambda _, i, c, d, x: looked_at(Message(role="r", parts=[], id=i, created_at=c, metadata=d, x=x)),
        [anything, anything, anything, anything],
    ),
    "open_store": (lambda _, u: entered(open_store(u)), [anything]),
    "open_store: options": (
        lambda _, s, li, c, e, p, j: entered(
            open_store("sqlite://", synchronous=s, limits=li, clock=c, estimate_tokens=e, publisher=p, projections=j)
        ),
        [anything] * 6,
    ),
}


def looked_at(built: Message) -> object:
    """Look at everything that a message has."""
    return (
        built.id,
        built.role,
        built.parts,
        built.metadata,
        built.created_at,
        built.text,
        built.to_dict(),
        repr(built),
    )


async def entered(opening: Any) -> None:
    """Open a store, append to it and close it."""
    async with opening as store:
        await Session.create(store).append_message({"role": "user", "parts": []})


async def finished(call: Callable[[], Any]) -> bool:
    """Make a call to its end, and tell whether it succeeded; only typed errors may come out of it."""
    try:
        result = call()
        if inspect.isawaitable(result):
            await result
        elif inspect.isasyncgen(result):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.001), contextlib.aclosing(result):
                    async for _ in result:
                        pass
    except EventStoreError:
        return False
    return True


async def checked(around: Surroundings, call: Callable[[], Any]) -> None:
    """Make a call; what fails must write nothing, and what is written must be readable."""
    before = await around.store.log.high_water()
    succeeded = await finished(call)
    written = [envelope async for envelope in around.store.log.read_all(after=before)]
    assert succeeded or not written
    assert not [envelope for envelope in written if isinstance(envelope.event, UnreadableEvent)]


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_wrong_types_raise_typed_errors_alone(around: Surroundings, name: str, data: st.DataObject) -> None:
    """Whatever is given to a call, only typed errors come out of it, and then nothing was written."""
    function, arguments = CALLS[name]
    values: Values = tuple(data.draw(argument) for argument in arguments)
    check: Coroutine[Any, Any, None] = checked(around, lambda: function(around, *values))
    around.runner.run(check)


def test_store_is_whole_after_all_of_it(around: Surroundings) -> None:
    """After all wrong calls everything that was stored still verifies and reads."""
    assert around.runner.run(verify(around.store)).ok
    assert around.runner.run(around.session().get_history("1"))
