"""What messages were before an event: found by reading back, and no event of a stream is read back twice."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from eventstore.envelope import Envelope, UnreadableEvent
from eventstore.events import Event, MessageAppended, MessagesCleared, MessageUpdated
from eventstore.rows import find_position

if TYPE_CHECKING:
    from eventstore.log import EventLog

Said = dict[str, Any]

REMEMBERED: Final = 200_000
"""Of about how many messages it is remembered which event said them last."""


class _Named(msgspec.Struct):
    """A message of which nothing but the id is decoded."""

    id: str


_named = msgspec.json.Decoder(_Named)


class _Stream:
    """Which events said the messages of a stream last, as far as its versions from `low` to before `high` tell."""

    def __init__(self, version: int) -> None:
        self.low = self.high = version
        self.said_at: dict[str, int] = {}

    def add(self, envelope: Envelope) -> None:
        """Take in the event at `high`."""
        if isinstance(envelope.event, MessagesCleared):
            # The same ids are other messages from here on.
            self.said_at.clear()
            self.low = 1
        elif (message_id := said_by(envelope.event)) is not None:
            self.said_at[message_id] = envelope.position
        self.high = envelope.version + 1

    def add_earlier(self, envelope: Envelope) -> None:
        """Take in the event before `low`."""
        self.low = envelope.version
        if isinstance(envelope.event, MessagesCleared):
            self.low = 1
        elif (message_id := said_by(envelope.event)) is not None:
            self.said_at.setdefault(message_id, envelope.position)


class Earlier:
    """Looks up what messages were before events, which are best asked for in the order of the log."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._streams: dict[str, _Stream] = {}

    async def messages(self, envelope: Envelope, message_ids: Collection[str]) -> dict[str, Said]:
        """What messages were before an event, by their ids; without those of which nothing can be read."""
        stream = await self._up_to(envelope)
        missing = set(message_ids) - stream.said_at.keys()
        if missing and stream.low > 1:
            async with aclosing(self._back(envelope.stream_id, stream.low - 1)) as events:
                async for earlier in events:
                    stream.add_earlier(earlier)
                    missing.discard(said_by(earlier.event) or "")
                    if not missing or stream.low == 1:
                        break
        found: dict[str, Said] = {}
        for message_id in message_ids:
            position = stream.said_at.get(message_id)
            said = None if position is None else await self._log.read(partial(find_position, position=position))
            if said is not None and isinstance(said.event, (MessageAppended, MessageUpdated)):
                found[message_id] = said.event.message
        return found

    async def take_in(self, envelope: Envelope) -> None:
        """Remember an event that was told."""
        stream = await self._up_to(envelope)
        stream.add(envelope)
        if sum(len(one.said_at) for one in self._streams.values()) > REMEMBERED:
            self._streams = {envelope.stream_id: stream}

    async def before(self, envelope: Envelope) -> AsyncGenerator[Envelope, None]:
        """The events of a stream before one, the last first, back to where its messages were cleared."""
        async with aclosing(self._back(envelope.stream_id, envelope.version - 1)) as events:
            async for earlier in events:
                if isinstance(earlier.event, MessagesCleared):
                    return
                yield earlier

    async def _up_to(self, envelope: Envelope) -> _Stream:
        stream = self._streams.setdefault(envelope.stream_id, _Stream(envelope.version))
        if stream.high > envelope.version:
            stream = self._streams[envelope.stream_id] = _Stream(envelope.version)
        if stream.high < envelope.version:
            events = self._log.read_stream(
                envelope.stream_id, from_version=stream.high, to_version=envelope.version - 1
            )
            async with aclosing(events):
                async for between in events:
                    stream.add(between)
        return stream

    def _back(self, stream_id: str, version: int) -> AsyncGenerator[Envelope, None]:
        return self._log.read_stream(stream_id, to_version=version, backwards=True)


def said_by(event: Event | UnreadableEvent) -> str | None:
    """The id of the message that an event holds as a whole."""
    if not isinstance(event, (MessageAppended, MessageUpdated)):
        return None
    try:
        return _named.decode(event.raw).id
    except msgspec.DecodeError:
        return str(event.message["id"])
