from __future__ import annotations

import tracemalloc
from contextlib import aclosing

import msgspec
import pytest

from eventstore import InvalidArgumentError, MessageNotFoundError, SessionNotFoundError
from sessions import Store, StoredSession
from sessions.exporters import FORMATS, export_session
from tests.sessions.exporters.exports import branching, exported
from tests.sessions.talk import said

TREES = ("json", "ndjson", "html")


@pytest.mark.parametrize("name", ["", "pdf", None, ["md"]])
async def test_unknown_format_names_the_known(store: Store, name: str) -> None:
    """An unknown format is refused with an error that lists all there are, before the session is looked for."""
    with pytest.raises(InvalidArgumentError, match="one of md, html, json, ndjson, ai-sdk, openai"):
        await exported(store, "nobody", name)


@pytest.mark.parametrize("name", FORMATS)
async def test_what_is_unknown_is_not_found(store: Store, name: str) -> None:
    """An unknown session, the id of something that is no session, and an unknown leaf are not found in any format."""
    await branching(store)
    for nobody in ("nobody", "context:walk", ""):
        with pytest.raises(SessionNotFoundError):
            await exported(store, nobody, name)
    for nothing in ("gone", ""):
        with pytest.raises(MessageNotFoundError):
            await exported(store, "walk", name, nothing)


@pytest.mark.parametrize("name", FORMATS)
async def test_whole_tree_where_it_fits(store: Store, name: str) -> None:
    """Formats that can hold a tree have every branch; the others have the path to the current leaf."""
    await branching(store)
    text = await exported(store, "walk", name)
    assert "Then." in text
    assert [word in text for word in ("Why?", "Anew.")] == [name in TREES] * 2


@pytest.mark.parametrize("name", FORMATS)
async def test_named_leaf_gives_its_path(store: Store, name: str) -> None:
    """With a leaf every format has the path to it and nothing else."""
    await branching(store)
    text = await exported(store, "walk", name, "u3")
    assert [word in text for word in ("Where?", "There.", "Why?", "When?", "Then.", "Anew.")] == [True] * 3 + [
        False
    ] * 3


@pytest.mark.parametrize("name", FORMATS)
async def test_session_without_messages(store: Store, name: str) -> None:
    """A session of which nothing is left has an export too, whole and well-formed."""
    session = await branching(store)
    await session.clear_messages()
    text = await exported(store, "walk", name)
    assert "Where?" not in text
    if name in {"json", "ai-sdk", "openai"}:
        msgspec.json.decode(text)


@pytest.mark.parametrize("name", FORMATS)
async def test_deleted_messages_are_not_exported(store: Store, name: str) -> None:
    """A deleted message is in no export, and what hung below it hangs where it does in the store."""
    session = await branching(store)
    await session.delete_messages(["u2"])
    text = await exported(store, "walk", name)
    assert "When?" not in text
    if name == "ndjson":
        lines = [msgspec.json.decode(line) for line in text.splitlines()]
        assert [(line["message"]["id"], line["parent_id"]) for line in lines] == [
            ("u1", None),
            ("a1", "u1"),
            ("a2", "a1"),
            ("u3", "a1"),
            ("r2", None),
        ]


@pytest.mark.parametrize("name", ["ai-sdk", "openai", "json", "ndjson", "html"])
async def test_summaries_stand_for_nothing_in_data(store: Store, name: str) -> None:
    """Only Markdown has a summary in place of messages: in all other formats the messages themselves are there."""
    await branching(store)
    assert "There." in await exported(store, "walk", name)
    assert "There." not in await exported(store, "walk", "md")


@pytest.mark.parametrize("name", FORMATS)
async def test_memory_is_bounded(store: Store, name: str) -> None:
    """Much more text than a page goes through an export without being held."""
    session = StoredSession(store, "long")
    # Two branches of 20 MB together: most of it can not be in memory at a time.
    for start in (0, 1_000):
        await session.append_messages([said(f"m{start + at}", "x" * 10_000) for at in range(1_000)], None)
    size = 0
    tracemalloc.start()
    try:
        async with aclosing(export_session(store, "long", format=name)) as pieces:
            async for piece in pieces:
                size += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 10_000_000
    assert peak < 8_000_000


@pytest.mark.parametrize("name", FORMATS)
async def test_writers_in_between_leave_it_whole(store: Store, name: str) -> None:
    """While a session is exported others may delete and append: what is named in the export is in it."""
    session = StoredSession(store, "busy")
    await session.append_messages([said(f"m{at}", "x" * 3_000) for at in range(1_000)])
    await session.add_compaction("Middle.", "m500", "m998")
    pieces = []
    async with aclosing(export_session(store, "busy", format=name)) as found:
        async for piece in found:
            pieces.append(piece)
            if len(pieces) == 5:
                await session.delete_messages(["m700", "m998", "m999"])
                await session.append_message(said("later"))
                await session.append_message(said("other root"), None)
    text = "".join(pieces)
    if name == "json":
        tree = msgspec.json.decode(text)
        seen: set[str | None] = {None}
        for node in tree["messages"]:
            assert node["parent_id"] in seen
            seen.add(node["message"]["id"])
        assert tree["current_leaf"] == "other root"
        assert {tree["compactions"][0]["from_message_id"], tree["compactions"][0]["to_message_id"]} <= seen
    elif name in {"ai-sdk", "openai"}:
        msgspec.json.decode(text)
