"""Search blocks that a store keeps: entries under keys, for all sessions that have a block with the label."""

from __future__ import annotations

from eventstore.errors import InvalidArgumentError
from eventstore.events import ContextEntryRemoved, ContextEntrySet, Event
from eventstore.heads import Head
from eventstore.limits import check_id
from eventstore.ports import Tx
from eventstore.rows import find_stream
from projections.context_entries import PREFIX, count_entries, find_entry, search_entries
from sessions.arguments import checked_store
from sessions.context import checked_content
from sessions.store import Store

MOST_HITS = 10
"""How many entries a search gives."""


class StoredSearch:
    """A search block in a store; it is named by the label of the block that it is given to."""

    def __init__(self, store: Store) -> None:
        self._store = checked_store(store)
        self._stream: str | None = None

    def init(self, label: str) -> None:
        """Name the block; raises InvalidArgumentError when it has another label already."""
        limits = self._store.limits
        stream_id = check_id(PREFIX + check_id(label, "label", limits), "label", limits)
        if self._stream not in (None, stream_id):
            raise InvalidArgumentError("label", "this search block has another label already")
        self._stream = stream_id

    async def get(self) -> str | None:
        """How many entries there are, in words; None when there are none."""
        count = await self._store.log.read(lambda tx: count_entries(tx, find_stream(tx, self._stream_id)[0]))
        return f"{count} entries indexed." if count else None

    async def search(self, query: str) -> str | None:
        """The entries that hold all words of the query, best first, as text; None when none does."""
        if not isinstance(query, str):
            raise InvalidArgumentError("query", f"must be a string, not {type(query).__name__}")

        def found(tx: Tx) -> list[tuple[str, str]]:
            return search_entries(tx, find_stream(tx, self._stream_id)[0], query, most=MOST_HITS)

        hits = await self._store.log.read(found)
        return "\n\n".join(f"[{key}]\n{content}" for key, content in hits) or None

    async def set(self, key: str, content: str) -> None:
        """Write an entry, new or in the place of the one with its key; the same again writes nothing."""
        name = check_id(key, "key", self._store.limits)
        text = checked_content(content, self._store.limits, name)

        def decide(tx: Tx, head: Head) -> tuple[list[Event], None]:
            tx.flush()
            is_known = find_entry(tx, head.stream_no, name) == text
            return ([] if is_known else [ContextEntrySet(key=name, content=text)]), None

        await self._store.log.transact(self._stream_id, decide)

    async def remove(self, key: str) -> bool:
        """Remove an entry; returns whether there was one."""
        name = check_id(key, "key", self._store.limits)

        def decide(tx: Tx, head: Head) -> tuple[list[Event], bool]:
            tx.flush()
            is_there = find_entry(tx, head.stream_no, name) is not None
            return ([ContextEntryRemoved(key=name)] if is_there else []), is_there

        return bool((await self._store.log.transact(self._stream_id, decide)).result)

    @property
    def _stream_id(self) -> str:
        if self._stream is None:
            raise InvalidArgumentError("label", "the search block has none yet: call init(label) first")
        return self._stream
