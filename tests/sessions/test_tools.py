from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from replay import verify
from sessions import Limits, Session, SessionManager, StaticContext, Store, StoredSearch, Tool
from tests.sessions.providers import Entries


@pytest.fixture
async def tools(store: Store) -> dict[str, Tool]:
    """Return the tools of a session with a block of each kind."""
    session = Session.create(store).with_context("soul", provider=StaticContext("calm"))
    session.with_context("memory", description="Facts", max_tokens=10)
    session.with_context("skills", provider=Entries(tea="Boil water."))
    session.with_context("kb", provider=StoredSearch(store))
    return await session.tools()


async def test_each_tool_is_there_for_its_blocks(store: Store, tools: dict[str, Tool]) -> None:
    """There is a tool for what can be done, and none for what cannot."""
    assert list(tools) == ["set_context", "load_context", "unload_context", "search_context"]
    assert await Session.create(store).tools() == {}
    only_read = Session.create(store).with_context("soul", provider=StaticContext("calm"))
    assert await only_read.tools() == {}
    assert list(await SessionManager(store).tools()) == ["session_search"]


def test_tools_in_the_shapes_of_apis(tools: dict[str, Tool]) -> None:
    """A tool is given to an API in its own shape, as plain JSON with the same name, description and schema."""
    for tool in tools.values():
        openai, anthropic = json.loads(json.dumps([tool.to_openai(), tool.to_anthropic()]))
        assert openai["type"] == "function"
        assert openai["function"]["parameters"] == anthropic["input_schema"] == tool.input_schema
        assert openai["function"]["name"] == anthropic["name"] == tool.name
        assert openai["function"]["description"] == anthropic["description"] == tool.description


BAD: list[Any] = [
    *(None, 1, "x", b"{", [], {}, '{"label": 1}', "[" * 100_000),
    *({"label": "memory"}, {"label": 1, "content": 1, "key": 1, "query": 1}),
    *({"label": label, "content": None, "key": None, "query": None} for label in ("memory", "skills", "kb")),
    *({"label": "nope", "content": "x", "key": "x", "query": "x"},),
    *(
        {"label": "skills", "content": "x", "metadata": metadata, "key": "a\0b", "query": "x"}
        for metadata in (1, {"title": 1})
    ),
]


@pytest.mark.parametrize("given", BAD, ids=range(len(BAD)))
async def test_bad_input_is_answered(tools: dict[str, Tool], given: Any) -> None:
    """Whatever a model gives a tool, the answer is a text."""
    for tool in tools.values():
        assert isinstance(await tool.execute(given), str)


HOSTILE: dict[str, Any] = {
    "nested": "[" * 100_000 + "]" * 100_000,
    "long": "x" * (Limits().block_bytes + 1),
    "lone surrogate": "백트래\ud82d",
    "NUL": "a\0b",
}


@pytest.mark.parametrize("place", ["label", "content", "key", "query", "metadata"])
@pytest.mark.parametrize("hostile", HOSTILE)
async def test_hostile_input_is_answered_and_harms_nothing(
    store: Store, tools: dict[str, Tool], hostile: str, place: str
) -> None:
    """What is too large or too strange for a store is answered with a text, and everything works afterwards (MEM-4)."""
    value = HOSTILE[hostile]
    for label, (name, tool) in itertools.product(("memory", "kb", "skills"), tools.items()):
        given = {"label": label, "content": "x", "key": "x", "query": "x", "metadata": {"title": "t"}}
        given[place] = {"title": value, "description": value} if place == "metadata" else value
        answer = await tool.execute(given)
        assert isinstance(answer, str), name
    answer = await tools["set_context"].execute({"label": "memory", "content": "tea"})
    assert answer == "Written to memory. Usage: 20% (2/10 tokens)"
    assert (await verify(store)).problems == []


async def test_input_as_json_text(tools: dict[str, Tool]) -> None:
    """A tool takes its input as JSON too, as some APIs give it."""
    answer = await tools["set_context"].execute(json.dumps({"label": "memory", "content": "one two"}))
    assert answer == "Written to memory. Usage: 30% (3/10 tokens)"
    assert await tools["load_context"].execute(b'{"label": "skills", "key": "tea"}') == "Boil water."


async def test_label_without_a_block_is_told_with_those_there_are(tools: dict[str, Tool]) -> None:
    """A model that names the wrong block is told which ones it may name."""
    for name, labels in (("load_context", "skills"), ("unload_context", "skills"), ("search_context", "kb")):
        answer = await tools[name].execute({"label": "nope", "key": "x", "query": "x"})
        assert answer.startswith("Error: ")
        assert answer.endswith(f"blocks: {labels}")


async def test_writing_promises_no_other_conversation(tools: dict[str, Tool]) -> None:
    """What the tool for writing says of a block holds of one that a session has for itself, too."""
    assert "conversation" not in tools["set_context"].description


async def test_tools_see_blocks_that_came_later(store: Store) -> None:
    """Tools work on the blocks as they are when they are called, and name those that there were when they were made."""
    session = Session.create(store).with_context("memory")
    tool = (await session.tools())["set_context"]
    await session.add_context("notes")
    assert await tool.execute({"label": "notes", "content": "x"}) == "Written to notes. Usage: 2 tokens"
    assert '"notes"' not in tool.description
    assert '"notes"' in (await session.tools())["set_context"].description


async def test_session_search_finds_messages_of_all_sessions(store: Store) -> None:
    """The manager's tool, and the block for a searchable history, find what was said in any session."""
    manager = SessionManager(store).with_searchable_history("history")
    tool = (await manager.tools())["session_search"]
    assert await tool.execute({"query": "lantern"}) == "No results found."
    session = manager.get_session("two")
    assert (await session.get_context_blocks())[0].content == ""
    parts = [{"type": "text", "text": "a lantern"}]
    await manager.append("one", {"id": "m", "role": "user", "parts": parts})
    assert await tool.execute({"query": "lantern"}) == "[user] a lantern"
    found = await (await session.tools())["search_context"].execute({"label": "history", "query": "lanterns"})
    assert found == "[user] a lantern"
