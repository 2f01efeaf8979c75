"""Random trees: rebuilt, grown in one group or event by event, they are the same rows."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from eventstore.statements import Row
from replay import rebuild, verify
from sessions import SessionManager, open_store
from sessions.store import Store
from tests.eventstore.support import NOON
from tests.replay.dumps import dumps

words = st.sampled_from(["alpha", "beta", "Gamma delta", "悬空引用", "running", "é", ""])
actions = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "root", "branch", "select", "create"]),
        st.sampled_from(["s", "t", "u"]),
        st.integers(0, 30),
        words,
    ),
    min_size=1,
    max_size=25,
)


async def act(store: Store, action: tuple[str, str, int, str], known: dict[str, list[str]], count: int) -> None:
    """Take one step of a random story."""
    verb, name, number, text = action
    manager = SessionManager(store)
    session, ids = manager.get_session(name), known.setdefault(name, [])
    message = {"id": f"m{count}", "role": "user", "parts": [{"type": "text", "text": text}]}
    if verb == "create":
        await manager.create(text or "x", id=f"{name}.{count}")
    elif verb == "select":
        if ids:
            await session.select_leaf(ids[number % len(ids)])
    else:
        if verb == "append":
            await session.append_message(message)
        else:
            parent = ids[number % len(ids)] if ids and verb == "branch" else None
            await session.append_message(message, parent)
        ids.append(message["id"])  # type: ignore[arg-type]


@settings(max_examples=40)
@given(story=actions)
def test_any_story_is_rebuilt_equal(story: list[tuple[str, str, int, str]]) -> None:
    """Whatever trees were grown, a rebuild gives the same rows, and the store verifies before and after."""

    async def check() -> None:
        async with open_store("sqlite://", clock=lambda: NOON) as store:
            known: dict[str, list[str]] = {}
            for count, action in enumerate(story):
                await act(store, action, known, count)
            before = await dumps(store)
            await rebuild(store)
            assert await dumps(store) == before
            assert (await verify(store)).problems == []
            for name, ids in known.items():
                session = SessionManager(store).get_session(name)
                for id_ in ids:
                    path = [message.id for message in await session.get_history(id_)]
                    assert path[-1] == id_
                    assert len(path) == await session.get_path_length(id_)

    asyncio.run(check())


@settings(max_examples=15)
@given(story=actions)
def test_any_story_told_at_once_is_the_same(story: list[tuple[str, str, int, str]]) -> None:
    """Appends committed as one group make the same rows as appends committed one by one."""
    plain = [action for action in story if action[0] in {"append", "root"}]

    async def tell(*, together: bool) -> dict[str, list[Row]]:
        async with open_store("sqlite://", clock=lambda: NOON) as store:
            known: dict[str, list[str]] = {}
            steps = [act(store, action, known, count) for count, action in enumerate(plain)]
            if together:
                await asyncio.gather(*steps)
            else:
                for step in steps:
                    await step
            return await dumps(store)

    assert asyncio.run(tell(together=True)) == asyncio.run(tell(together=False))
