"""What comes to messages that were imported before: records that were not there yet, and summaries."""

from __future__ import annotations

import msgspec

from eventstore.decoding import decode_json
from eventstore.errors import InvalidCompactionError
from eventstore.events import CompactionAdded, Event, MessageUpdated, UsageAdded
from eventstore.heads import Head, WithMetadata
from eventstore.limits import Limits, check_id
from eventstore.ports import Tx
from eventstore.same import same_json
from projections.imports import Holder, find_records, imported
from projections.paths import first_on, path_to
from projections.stored import find_message
from sessions.appending import check_open
from sessions.importers.conversation import Content, Overlay, RecordedMessage, Usage
from sessions.message import accept, checked_title

Events = list[Event | WithMetadata]


class Supplement(msgspec.Struct, frozen=True):
    """A message, the session that holds it, and the records of which it was made there."""

    message: RecordedMessage
    holder: Holder
    known: frozenset[str]


class Late(msgspec.Struct, frozen=True):
    """A summary of the path to a message that is held."""

    overlay: Overlay
    to_message_id: str


def check_beside(message: RecordedMessage, content: Content, limits: Limits) -> None:
    """Check what is stored beside a message; raises InvalidArgumentError or LimitExceededError."""
    for record in (*message.records, *message.results):
        check_id(record, "record", limits)
    if content.usage is not None and content.usage.model is not None:
        checked_title(content.usage.model, "model", limits)


def usage_added(usage: Usage) -> UsageAdded:
    """A usage as an event."""
    return UsageAdded(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost, model=usage.model
    )


def compaction_added(format_name: str, overlay_id: str, summary: str, ends: tuple[str, str]) -> WithMetadata:
    """A summary of the messages between two as an event, entered in the ledger under its own id."""
    added = CompactionAdded(id=overlay_id, summary=summary, from_message_id=ends[0], to_message_id=ends[1])
    return WithMetadata(added, imported(format_name, [overlay_id]))


def complete(format_name: str, supplement: Supplement, limits: Limits) -> CompleteMessage:
    """Read what a message is now; raises what the store says to something that it cannot hold."""
    message = supplement.message
    before, after = message.read(supplement.known), message.read(None)
    # Where its first record was not there yet, it was stored under the id of another.
    stored_id = str(before.message["id"])
    check_beside(message, after, limits)
    json = accept({**after.message, "id": stored_id}, limits).json
    new = [record for record in (*message.records, *message.results) if record not in supplement.known]
    return CompleteMessage(format_name, supplement.holder.session_id, stored_id, before, after, json, new)


class CompleteMessage(msgspec.Struct, frozen=True):
    """Decides to bring a message up to date in its session; one that was edited or deleted there stays as it is."""

    format: str
    session_id: str
    message_id: str
    before: Content
    after: Content
    json: bytes
    new: list[str]

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, None]:
        """Decide inside the write transaction."""
        tx.flush()
        check_open(tx, head)
        stored = find_message(tx, head.stream_no, self.message_id)
        if stored is None or find_records(tx, self.format, self.new):
            return [], None
        if not same_json(decode_json(stored.content).get("parts"), self.before.message["parts"]):
            return [], None
        updated = WithMetadata(MessageUpdated(raw=msgspec.Raw(self.json)), imported(self.format, self.new))
        return [updated, *_used_more(self.before, self.after)], None


class AddOverlay(msgspec.Struct, frozen=True):
    """Decides that a summary stands for all of the path to a message."""

    format: str
    id: str
    to_message_id: str
    summary: str

    def __call__(self, tx: Tx, head: Head) -> tuple[Events, None]:
        """Decide inside the write transaction; raises InvalidCompactionError when the message is not there."""
        tx.flush()
        check_open(tx, head)
        first = first_on(tx, head.stream_no, path_to(tx, head.stream_no, self.to_message_id) or [])
        if first is None:
            raise InvalidCompactionError(head.stream_id, "the message that it ends at is not there")
        if find_records(tx, self.format, [self.id]):
            return [], None
        return [compaction_added(self.format, self.id, self.summary, (first.id, self.to_message_id))], None


def _used_more(before: Content, after: Content) -> Events:
    """What a response used beyond what was told of it before."""
    if after.usage is None:
        return []
    read, written, cost = after.usage.input_tokens, after.usage.output_tokens, after.usage.cost
    if before.usage is not None:
        read -= before.usage.input_tokens
        written -= before.usage.output_tokens
        cost -= before.usage.cost
    if not read and not written and not cost:
        return []
    return [usage_added(Usage(read, written, cost, after.usage.model))]
