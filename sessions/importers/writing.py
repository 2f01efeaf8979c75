"""Writing a whole conversation of another source as a session, once."""

from __future__ import annotations

import msgspec

from eventstore.errors import ParentNotFoundError
from eventstore.events import Event, LeafSelected, MessageAppended, SessionCreated
from eventstore.heads import Head
from eventstore.ports import Tx
from projections.message import message_text
from projections.stored import find_message, is_spent
from sessions.appending import check_open
from sessions.arguments import checked_session_id
from sessions.importers.compactions import compaction_events
from sessions.importers.conversation import Conversation
from sessions.importers.naming import first_words, session_name
from sessions.message import accept
from sessions.store import Store


async def write_conversation(store: Store, conversation: Conversation) -> int:
    """Store what is not there yet of a conversation, in one transaction; returns the number of new messages.

    The session is named by the title, or else by the beginning of what a user first said. When messages are added, the
    source's current leaf becomes the tip; a conversation without new ones changes nothing, whatever a person has
    selected since. What was deleted stays deleted, and what is new below it hangs on what is left above.
    """
    session_id = checked_session_id(conversation.session_id, store)
    name = session_name(conversation.title or _first_words(conversation), store.limits)
    messages = [(accept(one.message, store.limits), one.parent_id) for one in conversation.messages]

    parents = {message.id: parent_id for message, parent_id in messages}

    def decide(tx: Tx, head: Head) -> tuple[list[Event], int]:
        check_open(tx, head)
        events: list[Event] = []
        added: dict[str, str | None] = {}

        def is_stored(message_id: str) -> bool:
            return head.version > 0 and find_message(tx, head.stream_no, message_id) is not None

        def was_deleted(message_id: str) -> bool:
            return head.version > 0 and is_spent(tx, head.stream_no, message_id)

        if head.version == 0:
            parent_id = conversation.parent_session_id
            events.append(
                SessionCreated(
                    name=name,
                    parent_session_id=parent_id,
                    model=conversation.model,
                    source=conversation.format,
                    created_at=conversation.created_at,
                    metadata=conversation.metadata,
                )
            )
        tip = None
        for message, parent_id in messages:
            if message.id in added or is_stored(message.id) or was_deleted(message.id):
                continue
            under = parent_id
            while under is not None and was_deleted(under):
                under = parents.get(under)
            if under is not None and under not in added and not is_stored(under):
                raise ParentNotFoundError(session_id, under)
            events.append(MessageAppended(raw=msgspec.Raw(message.json), parent_id=under))
            added[message.id] = under
            tip = message.id
        if added and conversation.leaf_id not in (None, tip) and not was_deleted(str(conversation.leaf_id)):
            events.append(LeafSelected(message_id=str(conversation.leaf_id)))
        events += compaction_events(tx, head, conversation.overlays, added)
        return events, len(added)

    committed = await store.log.transact(session_id, decide)
    return int(committed.result)


def _first_words(conversation: Conversation) -> str:
    for one in conversation.messages:
        if one.message["role"] == "user" and (words := first_words(message_text(one.message))):
            return words
    return conversation.source_id
