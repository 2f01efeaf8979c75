"""What holds of every store, whatever was done to it: checks that need no model of how it came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from eventstore import codec
from eventstore.envelope import Envelope
from eventstore.events import Event
from eventstore.group import apply
from eventstore.ports import Projection, Tx
from replay import rebuild
from sessions import SessionManager, Store, StoredSession
from tests.properties.model import Conversation
from tests.replay.dumps import dumps

COME_AGAIN = (1, 5, 1_000)


async def check_search(store: Store, talks: Mapping[str, Conversation], query: str) -> None:
    """Check that a search finds what holds all of its words and phrases, as it is now, in one session and in all."""
    everywhere = set()
    for name, talk in talks.items():
        session, expected = StoredSession(store, name), list(talk.holding(query))
        hits = await session.search_messages(query, order="newest", limit=1_000)
        assert [hit.id for hit in hits] == expected
        assert [(hit.role, hit.content) for hit in hits] == [_role_and_text(talk.contents[id]) for id in expected]
        best = await session.search_messages(query, limit=1_000)
        assert sorted(hit.id for hit in best) == sorted(expected)
        everywhere |= {(name, message) for message in expected}
    found = await SessionManager(store).search(query, limit=1_000)
    assert {(hit.session_id, hit.id) for hit in found} == everywhere
    assert len(found) == len(everywhere)


async def check_rebuilds(store: Store) -> None:
    """Check that a rebuild of all projections, or of each alone, changes no row."""
    before = await dumps(store)
    for projection in before:
        await rebuild(store, [projection])
        assert await dumps(store) == before
    await rebuild(store)
    assert await dumps(store) == before


async def check_redelivery(store: Store) -> None:
    """Check that events which come to a projection a second time change nothing."""
    before = await dumps(store)
    log = [envelope async for envelope in store.log.read_all()]
    for count in COME_AGAIN:
        for projection in store.log.projections:
            await store.log.database.write(_again(projection, log[-count:]))
        assert await dumps(store) == before


def _again(projection: Projection, envelopes: list[Envelope]) -> Callable[[Tx], None]:
    return lambda tx: apply(tx, projection, envelopes)


async def check_codec(store: Store) -> None:
    """Check that every event is read back as it was written."""
    async for envelope in store.log.read_all():
        assert isinstance(envelope.event, Event)
        payload = codec.encode(envelope.event, envelope.metadata).decode()
        event, metadata = codec.decode(envelope.type, envelope.schema, payload)
        assert type(event) is type(envelope.event)
        assert msgspec.json.encode(event) == msgspec.json.encode(envelope.event)
        assert metadata == envelope.metadata


def _role_and_text(message: dict[str, Any]) -> tuple[str, str]:
    return message["role"], "\n".join(part["text"] for part in message["parts"])
