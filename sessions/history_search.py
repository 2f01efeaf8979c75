"""The messages of all sessions as a block that a model can search, and as a tool."""

from __future__ import annotations

from projections.directory import count_sessions
from projections.search import search
from sessions.store import Store
from sessions.tools import NO_RESULTS, Input, Tool, schema, string

MOST_HITS = 10
"""How many messages a search gives."""

DESCRIPTION = "Cross-session conversation history"


class HistorySearch:
    """Searches the messages of every session of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self) -> str | None:
        """How many sessions there are, in words; None when there are none."""
        count = await self._store.log.read(count_sessions)
        return f"{count} sessions available for search." if count else None

    async def search(self, query: str) -> str | None:
        """The messages that hold all words of the query, best first, as text; None when none does."""
        hits = await self._store.log.read(
            lambda tx: search(tx, query, stream_no=None, limit=MOST_HITS, order="relevance")
        )
        return "\n---\n".join(f"[{hit.role}] {hit.content}" for hit in hits) or None


def session_search(store: Store) -> Tool:
    """The tool that searches the messages of every session."""
    history = HistorySearch(store)

    async def run(given: Input) -> str:
        return await history.search(given["query"]) or NO_RESULTS

    about = "Search the messages of all earlier conversations for all words of a query."
    return Tool("session_search", about, schema({"query": string("the words to search for")}), run)
