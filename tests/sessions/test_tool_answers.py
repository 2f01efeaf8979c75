"""What tools answer to names that are long or cannot be encoded."""

from __future__ import annotations

from typing import Any

import pytest

from sessions import Session, Store, StoredSearch
from tests.sessions.providers import Entries

NAMES = {"surrogate": "백트래\ud82d", "long": "x" * 1_000_000, "long and not Latin": "깊" * 1_000_000}
GIVEN: dict[str, dict[str, Any]] = {
    "set_context": {"content": "x"},
    "load_context": {"key": "x"},
    "unload_context": {"key": "x"},
    "search_context": {"query": "x"},
}


class Loud:
    """A provider that says in its error what it was given, and in its text what cannot be encoded."""

    def get(self) -> str:
        """Return the text."""
        return "\ud800"

    def set(self, content: str) -> None:
        """Fail."""
        raise ValueError(f"no room for {content}")

    def search(self, query: str) -> str:
        """Return what cannot be encoded."""
        return f"\ud800 {query}"


def session_on(store: Store) -> Session:
    """Return a session with a block of each kind."""
    session = Session.create(store).with_context("memory").with_context("skills", provider=Entries(tea="Boil water."))
    return session.with_context("kb", provider=StoredSearch(store))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tool", GIVEN)
async def test_label_that_nobody_has(store: Store, tool: str, name: str) -> None:
    """An answer about a label that is no block's is a short text that can be encoded (SQL-3, MEM-4)."""
    tools = await session_on(store).tools()
    answer = await tools[tool].execute({"label": NAMES[name], **GIVEN[tool]})
    assert answer.startswith("Error: ")
    assert len(answer.encode()) < 2_000
    assert NAMES[name][:3] in answer


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tool", ["load_context", "unload_context"])
async def test_key_that_nothing_has(store: Store, tool: str, name: str) -> None:
    """An answer about a key that is no skill's is a short text that can be encoded (SQL-3, MEM-4)."""
    tools = await session_on(store).tools()
    answer = await tools[tool].execute({"label": "skills", "key": NAMES[name]})
    assert len(answer.encode()) < 2_000


async def test_skill_with_a_long_key(store: Store) -> None:
    """A skill that only a message names, by a key of any length, is unloaded and told in few words (MEM-4)."""
    key = "x" * 1_000_000
    call = {"type": "tool-load_context", "input": {"label": "skills", "key": key}, "output": "Text."}
    session = session_on(store)
    await session.append_message({"id": "m", "role": "assistant", "parts": [call]})
    unload = (await session.tools())["unload_context"]
    assert len(unload.description) < 2_000
    answer = await unload.execute({"label": "skills", "key": key})
    assert answer.startswith(f'Unloaded "{key[:200]}…"')
    assert len(answer) < 2_000


async def test_labels_are_cleaned_alike(store: Store) -> None:
    """A block is found by the same label that it was given (SQL-3)."""
    tools = await Session.create(store).with_context("a\ud800").tools()
    answer = await tools["set_context"].execute({"label": "a\ud800", "content": "b\udc00"})
    assert answer == "Written to a\ufffd. Usage: 2 tokens"


async def test_what_a_provider_says_can_be_sent(store: Store) -> None:
    """What a provider finds, and what it says when it fails, is answered as a text that can be encoded (SQL-3)."""
    provider = Loud()
    tools = await Session.create(store).with_context("kb", provider=provider).tools()
    assert await tools["search_context"].execute({"label": "kb", "query": "q\udc00"}) == "\ufffd q\ufffd"
    provider_of_text: Any = type("Text", (), {"get": Loud.get, "set": Loud.set})()
    tools = await Session.create(store).with_context("notes", provider=provider_of_text).tools()
    answer = await tools["set_context"].execute({"label": "notes", "content": "\ud800" + "x" * 1_000_000})
    assert answer.startswith("Error: no room for \ufffdx")
    assert len(answer.encode()) < 2_100
