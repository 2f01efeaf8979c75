from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from eventstore import EventStoreError
from replay import rebuild, verify
from sessions import COMPACTION_PREFIX, CompactResult, Message, Session, Store, StoredSession, open_store
from tests.sessions.talk import collect, said

STEPS = 25
EXPECTED = {"message_not_found", "parent_not_found", "message_deleted"}
"""What may be raised because of what the others have done meanwhile."""

Seen = dict[str, dict[str, set[str]]]
"""For each summary the messages that it has seen, by itself or by another summary, with what they said then."""


class Witness:
    """A compaction function that summarises any stretch, after any time, and remembers what it was given."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.seen: Seen = {}

    async def __call__(self, messages: list[Message], _context: object) -> CompactResult | None:
        """Give a summary of a stretch."""
        told: dict[str, set[str]] = {}
        for one in messages:
            for name, texts in self.seen.get(one.text, {one.id: {one.text}}).items():
                told.setdefault(name, set()).update(texts)
        for _ in range(self.dice.randrange(20)):
            await asyncio.sleep(self.dice.choice([0, 0.001]))
        first = self.dice.randrange(len(messages))
        last = self.dice.randrange(first, len(messages))
        summary = f"S{len(self.seen)}"
        self.seen[summary] = told
        return CompactResult(messages[first].id, messages[last].id, summary)


async def write(session: Session, name: str, dice: random.Random) -> None:
    """Do anything that can be done to a session, and again."""
    for step in range(STEPS):
        at = dice.choice([node.message.id async for node in session.tree()] or ["none"])
        message = said(f"{name}-{step}")
        calls: dict[Callable[[], Awaitable[Any]], int] = {
            partial(session.append_message, message): 50,
            partial(session.append_message, message, at): 10,
            partial(session.update_message, said(at, f"edited by {name} {step}")): 10,
            partial(session.delete_messages, [at]): 8,
            partial(session.select_leaf, at): 6,
            partial(session.compact, at): 6,
            session.compact: 7,
            session.clear_messages: 3,
        }
        try:
            await dice.choices([*calls], [*calls.values()])[0]()
        except EventStoreError as error:
            if error.code not in EXPECTED:
                raise


async def check_shown(store: Store, seen: Seen) -> None:
    """Check on every path that what is not shown was seen by the summary that stands there, as it is now."""
    session = StoredSession(store, "chat")
    compactions = {one.id: one for one in await session.get_compactions()}
    for node in await collect(session.tree()):
        raw = await collect(session.history(node.message.id, overlays=False))
        ids = [one.id for one in raw]
        shown: list[str] = []
        for one in await session.get_history(node.message.id):
            if not one.id.startswith(COMPACTION_PREFIX):
                shown.append(one.id)
                continue
            compaction = compactions[one.id.removeprefix(COMPACTION_PREFIX)]
            covered = raw[ids.index(compaction.from_message_id) : ids.index(compaction.to_message_id) + 1]
            shown += [each.id for each in covered]
            for each in covered:
                assert each.id in seen[one.text]
                assert compaction.stale or each.text in seen[one.text][each.id]
        assert shown == ids


@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_hidden_unseen(url: str, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is written to a session by two processes at once, no summary hides what it has not seen."""
    caplog.set_level(logging.ERROR)
    witness = Witness(random.Random(seed))
    async with open_store(url, synchronous="normal") as store, open_store(url, synchronous="normal") as other:
        sessions = [
            Session.create(one).for_session("chat").on_compaction(witness).compact_after(60)
            for one in (store, store, other)
        ]
        await asyncio.gather(
            *(write(session, f"w{n}", random.Random(f"{seed} {n}")) for n, session in enumerate(sessions))
        )
        await check_shown(store, witness.seen)
        tokens = await StoredSession(store, "chat").token_estimate()
        assert (await verify(store)).ok
        await rebuild(store)
        await check_shown(store, witness.seen)
        assert await StoredSession(store, "chat").token_estimate() == tokens
