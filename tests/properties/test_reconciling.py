"""Lists that clients send back, whatever they have become there: nothing is lost, nothing comes twice."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from replay import verify
from sessions import ReconcileResult, Session, Store, open_store

STATES = ["input-streaming", "input-available", "approval-requested", "output-available", "output-error"]
OUTCOMES = ("output", "errorText")
Draw = Callable[[st.SearchStrategy[Any]], Any]

_text = st.builds(
    lambda words, more: {"type": "text", "text": words, **more},
    st.sampled_from(["", "yes", "yes and", "no"]),
    st.sampled_from([{}, {}, {"state": "done"}, {"state": "streaming"}]),
)


def _tool(call_id: str, state: str, given: int, output: Any) -> dict[str, Any]:
    part = {"type": "tool-look", "toolCallId": call_id, "state": state, "input": {"q": given}}
    if state.startswith("output"):
        part["errorText" if state == "output-error" else "output"] = output
    return part


_call = st.builds(
    _tool,
    st.sampled_from("abc"),
    st.sampled_from(STATES),
    st.integers(1, 2),
    st.sampled_from(["found", "lost", None, 1.0]),
)
_step = st.just({"type": "step-start"})
_parts = {"user": st.lists(_text, max_size=2), "assistant": st.lists(st.one_of(_text, _call, _call, _step), max_size=4)}


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """Return a message without an id."""
    role = draw(st.sampled_from(["user", "assistant"]))
    more = draw(st.sampled_from([{}, {}, {"metadata": {"mood": "good"}}]))
    return {"role": role, "parts": draw(_parts[role]), **more}


async def tell(draw: Draw, store: Store) -> Session:
    """Return a session with branches, deletions and summaries."""
    session = Session.create(store).for_session("chat")
    for number in range(draw(st.integers(0, 9))):
        known = [node.message.id async for node in session.tree()]
        below = draw(st.sampled_from(known[-1:] * 3 + known)) if known else None
        await session.append_message({"id": f"m{number}", **draw(messages())}, below)
    known = [node.message.id async for node in session.tree()]
    if known and draw(st.booleans()):
        await session.delete_messages(draw(st.lists(st.sampled_from(known), max_size=2)))
    for _ in range(draw(st.integers(0, 2))):
        path = [row.id for row in await session.get_history_row_stats()]
        if path:
            ends = sorted(draw(st.tuples(*[st.integers(0, len(path) - 1)] * 2)))
            await session.add_compaction("They met.", path[ends[0]], path[ends[1]])
    return session


async def shown(draw: Draw, session: Session) -> list[dict[str, Any]]:
    """Return what a client has of a session: one of its histories, with or without its summaries."""
    tree = [node async for node in session.tree()]
    if not tree:
        return []
    leaf = draw(st.sampled_from([None, *(node.message.id for node in tree)]))
    if draw(st.booleans()):
        return [message.to_dict() for message in await session.get_history(leaf)]
    path = {row.id for row in await session.get_history_row_stats(leaf)}
    return [node.message.to_dict() for node in tree if node.message.id in path]


def _become(draw: Draw, list_: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a list as a client may have made it: other ids, other states, gaps, copies, news anywhere."""
    became: list[dict[str, Any]] = []
    for number, message in enumerate(list_):
        for _ in range(draw(st.sampled_from([0, 0, 0, 1]))):
            became.append({"id": f"new{number}.{len(became)}", **draw(messages())})
        kept = copy.deepcopy(message)
        what = draw(st.sampled_from(["keep", "keep", "keep", "drop", "rename", "unnamed", "change", "cut", "double"]))
        if what == "drop":
            continue
        if what == "rename" and not message["id"].startswith("compaction_"):
            kept["id"] = f"own{number}"
        if what == "unnamed" and not message["id"].startswith("compaction_"):
            del kept["id"]
        if what == "change" and kept["parts"]:
            at = draw(st.integers(0, len(kept["parts"]) - 1))
            kept["parts"][at] = draw(_call if "toolCallId" in kept["parts"][at] else _text)
        if what == "cut":
            kept["parts"] = kept["parts"][: draw(st.integers(0, 3))]
        became += [kept] * (2 if what == "double" else 1)
    became += [{"id": f"last{number}", **draw(messages())} for number in range(draw(st.integers(0, 3)))]
    return became


def outcomes(messages: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the message and the call id of every call that has come to something."""
    for name, message in messages.items():
        for part in message["parts"]:
            if any(part.get(outcome) is not None for outcome in OUTCOMES):
                yield name, part["toolCallId"]


async def state(session: Session) -> tuple[dict[str, dict[str, Any]], dict[str, str | None]]:
    """Return the messages of a session and their parents."""
    nodes = [node async for node in session.tree()]
    contents = {node.message.id: node.message.to_dict() for node in nodes}
    return contents, {node.message.id: node.parent_id for node in nodes}


@given(st.data())
def test_whatever_comes_back(data: st.DataObject) -> None:
    """Of any list the counts add up, no message and no output is lost, and once more it changes nothing (CON-4)."""

    async def check() -> None:
        async with open_store("sqlite://") as store:
            session = await tell(data.draw, store)
            list_ = _become(data.draw, await shown(data.draw, session))
            before, parents = await state(session)
            version = await session.version()
            result = await session.reconcile(list_)
            assert result.inserted + result.updated + result.unchanged == len(list_)
            after, parents_after = await state(session)
            assert parents.items() <= parents_after.items()
            assert len(after) - len(before) == result.inserted
            assert sum(after[name] != message for name, message in before.items()) == result.updated
            assert set(outcomes(before)) <= set(outcomes(after))
            assert not any(name.startswith("compaction_") for name in after)
            assert await session.version() - version - result.inserted - result.updated in {0, 1}
            history, version = await session.get_history(), await session.version()
            assert await session.reconcile(list_) == ReconcileResult(0, 0, len(list_))
            assert await session.version() == version
            assert await session.get_history() == history
            assert (await verify(store)).problems == []

    asyncio.run(check())


@given(st.data())
def test_history_with_news(data: st.DataObject) -> None:
    """A history that comes back with outputs, other ids and news is the history from then on (TREE-6, CMP-1)."""

    async def check() -> None:
        async with open_store("sqlite://") as store:
            session = await tell(data.draw, store)
            for row in await session.get_history_row_stats():
                found = await session.get_message(row.id)
                assert found is not None
                await session.update_message(_told_apart(found.to_dict()))
            history = [message.to_dict() for message in await session.get_history()]
            expected = [_filled(message) if data.draw(st.booleans()) else message for message in history]
            own = data.draw(st.sets(st.integers(0, 9)))
            seen = [
                {**message, "id": f"own{number}"} if number in own and not _is_summary(message) else message
                for number, message in enumerate(expected)
            ]
            news = [
                _told_apart({"id": f"new{number}", **data.draw(messages())})
                for number in range(data.draw(st.integers(0, 3)))
            ]
            result = await session.reconcile([*seen, *news])
            changed = sum(new != old for new, old in zip(expected, history, strict=True))
            assert result == ReconcileResult(len(news), changed, len(history) - changed)
            assert [message.to_dict() for message in await session.get_history()] == [*expected, *news]

    asyncio.run(check())


def _told_apart(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message that says something else than all others, and calls other tools."""
    parts = [
        part | {"toolCallId": f"{message['id']}.{n}"} if "toolCallId" in part else part for n, part in _at(message)
    ]
    return {**message, "parts": [{"type": "text", "text": message["id"]}, *parts]}


def _filled(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose calls have come to something."""
    parts = [
        _tool(part["toolCallId"], "output-available", part["input"]["q"], "filled in")
        if "toolCallId" in part and not any(part.get(outcome) is not None for outcome in OUTCOMES)
        else part
        for _, part in _at(message)
    ]
    return {**message, "parts": parts}


def _at(message: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    return enumerate(message["parts"])


def _is_summary(message: dict[str, Any]) -> bool:
    return bool(message["id"].startswith("compaction_"))
