"""What comes to messages that were imported before: records that were not there yet, and summaries."""

from __future__ import annotations

import asyncio

import msgspec

from eventstore.decoding import decode_json
from eventstore.events import CompactionAdded, Event, MessageUpdated, UsageAdded
from eventstore.heads import Head, WithMetadata
from eventstore.ports import Tx
from eventstore.same import same_json
from projections.imports import Holder, find_records, imported
from projections.paths import first_on, path_to
from projections.stored import find_message
from sessions.appending import check_open
from sessions.importers.conversation import Content, RecordedConversation, RecordedMessage, Usage
from sessions.message import accept
from sessions.store import Store

Events = list[Event | WithMetadata]


class Supplement(msgspec.Struct, frozen=True):
    """A message, the session that holds it, and the records of which it was made there."""

    message: RecordedMessage
    holder: Holder
    known: frozenset[str]


class Late(msgspec.Struct, frozen=True):
    """A summary of the path to a message that is stored."""

    id: str
    to_message_id: str
    summary: str


def usage_added(usage: Usage) -> UsageAdded:
    """A usage as an event."""
    return UsageAdded(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost, model=usage.model
    )


def compaction_added(format_name: str, overlay_id: str, summary: str, ends: tuple[str, str]) -> WithMetadata:
    """A summary of the messages between two as an event, entered in the ledger under its own id."""
    added = CompactionAdded(id=overlay_id, summary=summary, from_message_id=ends[0], to_message_id=ends[1])
    return WithMetadata(added, imported(format_name, [overlay_id]))


async def update_message(store: Store, format_name: str, supplement: Supplement) -> None:
    """Bring a message up to date in the session that holds it; one that was edited or deleted there stays as it is."""
    message = supplement.message
    before, after = await asyncio.to_thread(lambda: (message.read(supplement.known), message.read(None)))
    # Where its first record was not there yet, it was stored under the id of another.
    stored_id = str(before.message["id"])
    now = accept({**after.message, "id": stored_id}, store.limits).json
    new = [record for record in (*message.records, *message.results) if record not in supplement.known]

    def decide(tx: Tx, head: Head) -> tuple[Events, None]:
        check_open(tx, head)
        stored = find_message(tx, head.stream_no, stored_id)
        if stored is None or find_records(tx, format_name, new):
            return [], None
        if not same_json(decode_json(stored.content).get("parts"), before.message["parts"]):
            return [], None
        updated = WithMetadata(MessageUpdated(raw=msgspec.Raw(now)), imported(format_name, new))
        return [updated, *_used_more(before, after)], None

    await store.log.transact(supplement.holder.session_id, decide)


async def add_overlay(store: Store, conversation: RecordedConversation, late: Late) -> None:
    """Let a summary stand for all of the path to a message, if both are there."""

    def decide(tx: Tx, head: Head) -> tuple[Events, None]:
        check_open(tx, head)
        path = path_to(tx, head.stream_no, late.to_message_id)
        first = first_on(tx, head.stream_no, path or [])
        if first is None or find_records(tx, conversation.format, [late.id]):
            return [], None
        ends = first.id, late.to_message_id
        return [compaction_added(conversation.format, late.id, late.summary, ends)], None

    await store.log.transact(conversation.session_id, decide)


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
