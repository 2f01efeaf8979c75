"""Writing a whole conversation of another source as a session, once."""

from __future__ import annotations

from collections.abc import Mapping, Set

import msgspec

from eventstore.events import Event, LeafSelected, MessageAppended
from eventstore.heads import Head
from eventstore.ports import Tx
from projections.message import message_text
from projections.stored import find_message, is_spent
from sessions.appending import check_open
from sessions.arguments import checked_session_id
from sessions.importers.beginning import session_created
from sessions.importers.compactions import Compactions
from sessions.importers.conversation import Conversation, Problem
from sessions.importers.naming import first_words
from sessions.importers.report import Written
from sessions.message import accept
from sessions.store import Store


class Added(msgspec.Struct, frozen=True):
    """What is added to a session: its messages with their parents, the ids of compactions; and what is left out."""

    parents: Mapping[str, str | None] = {}
    compactions: Set[str] = frozenset()
    problems: tuple[Problem, ...] = ()


NOTHING = Added()
# What stands in stored text for lone surrogates.
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


async def write_conversation(store: Store, conversation: Conversation, *, strict: bool = False) -> Written:
    """Store what is not there yet of a conversation, in one transaction.

    The session is named by the title, or else by the beginning of what a user first said. When messages are added, the
    source's current leaf becomes the tip; a conversation without new ones changes nothing, whatever a person has
    selected since. What was deleted stays deleted, and what is new below it hangs on what is left above. A compaction
    that cannot be stored is left out and told, or raised when `strict`; of anything else the whole is refused.
    """
    writing = WriteConversation(store, conversation, strict=strict)
    return writing.written((await store.log.transact(writing.session_id, writing)).result)


class WriteConversation:
    """Decides the events that are not there yet of a conversation; the result is what they add.

    `before` is what is added by others that were decided and will not be written, as in a dry run; the result has it
    too.
    """

    def __init__(self, store: Store, conversation: Conversation, *, strict: bool, before: Added = NOTHING) -> None:
        self.session_id = checked_session_id(conversation.session_id, store)
        self._conversation = conversation
        self._before = before
        self._created = session_created(
            store,
            conversation,
            conversation.title or _first_words(conversation),
            parent_session_id=conversation.parent_session_id,
            metadata=conversation.metadata,
        )
        self._messages = [(accept(one.message, store.limits), one) for one in conversation.messages]
        self._parents = {message.id: one.parent_id for message, one in self._messages}
        self._compactions = Compactions(conversation, store.limits, strict=strict)

    def __call__(self, tx: Tx, head: Head) -> tuple[list[Event], Added]:
        """Decide inside the write transaction; raises SessionDeletedError."""
        check_open(tx, head)
        events: list[Event] = [] if head.version > 0 else [self._created]
        added = dict(self._before.parents)

        def was_deleted(message_id: str) -> bool:
            return head.version > 0 and is_spent(tx, head.stream_no, message_id)

        tip = None
        for message, one in self._messages:
            is_stored = head.version > 0 and find_message(tx, head.stream_no, message.id) is not None
            if message.id in added or is_stored or was_deleted(message.id):
                continue
            under = one.parent_id
            while under is not None and was_deleted(under):
                under = self._parents.get(under)
            appended = MessageAppended(raw=msgspec.Raw(message.json), parent_id=under)
            if _REPLACEMENT not in message.json:
                # What it would be decoded to again: nothing was replaced in it.
                vars(appended)["message"] = one.message
            events.append(appended)
            added[message.id] = under
            tip = message.id
        leaf_id = self._conversation.leaf_id
        if tip is not None and leaf_id is not None and leaf_id != tip and not was_deleted(leaf_id):
            events.append(LeafSelected(message_id=leaf_id))
        compactions, problems = self._compactions.events(tx, head, added, self._before.compactions)
        ids = self._before.compactions | {one.id for one in compactions}
        return [*events, *compactions], Added(added, ids, tuple(problems))

    def written(self, added: Added) -> Written:
        """What became of the conversation."""
        inserted = len(added.parents) - len(self._before.parents)
        parent_id = self._conversation.parent_session_id
        return Written(inserted, parent_id, added.problems, left_out=len(added.problems))


def _first_words(conversation: Conversation) -> str:
    for one in conversation.messages:
        if one.message["role"] == "user" and (words := first_words(message_text(one.message))):
            return words
    return conversation.source_id
