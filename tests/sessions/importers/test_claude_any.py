from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from replay import verify
from sessions import import_file, open_store
from sessions.importers.conversation import RecordedConversation
from tests.sessions.importers.claude import lines, read_file, write

names = st.sampled_from("abcdefgh")
parents = st.one_of(st.none(), names, st.just("phantom"))
tools = st.sampled_from(["t1", "t2", "t3", None])
texts = st.sampled_from(["Said.", "<command-name>/x</command-name>", "", " "])
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda tool: {"type": "tool_use", "id": tool, "name": "T", "input": {}}, tools),
    st.builds(lambda tool: {"type": "tool_result", "tool_use_id": tool, "content": "R"}, tools),
    st.sampled_from(["bare", None, 7, {"type": "odd"}]),
)
contents = st.one_of(texts, st.none(), st.lists(blocks, max_size=4))
messages = st.one_of(
    st.builds(lambda content, response: {"content": content, "id": response}, contents, st.sampled_from("rs")),
    st.sampled_from([None, "text", 7]),
)
records = st.fixed_dictionaries(
    {"uuid": names, "parentUuid": parents, "sessionId": st.sampled_from("sz"), "message": messages},
    optional={
        "type": st.sampled_from(["user", "assistant", "system", "progress", None]),
        "isSidechain": st.booleans(),
        "agentId": st.sampled_from(["g1", "g2"]),
        "isMeta": st.booleans(),
        "isCompactSummary": st.booleans(),
        "subtype": st.sampled_from(["compact_boundary", "turn_duration"]),
        "supersedesUuids": st.lists(names, max_size=1),
        "timestamp": st.sampled_from(["2025-07-01T10:00:00Z", "never", 0]),
    },
)
typed = st.one_of(
    records,
    st.builds(lambda one: {**one, "type": "user"}, records),
    st.builds(lambda one: {**one, "type": "assistant"}, records),
)
files = st.lists(typed, min_size=1, max_size=14)


def parsed(folder: str, records: list[dict[str, Any]]) -> list[RecordedConversation]:
    """Return the conversations of a file."""
    found = read_file(write(Path(folder) / "s.jsonl", *records))
    return [item for item in found if isinstance(item, RecordedConversation)]


@given(files)
def test_any_records_make_trees(records: list[dict[str, Any]]) -> None:
    """Whatever stands in the records, each conversation is a tree in log order, and no record is in two messages."""
    with tempfile.TemporaryDirectory() as folder:
        for found in parsed(folder, records):
            seen: set[str] = set()
            for message in found.messages:
                assert message.parent_id is None or message.parent_id in seen
                assert found.messages.parent_of(message.id) == message.parent_id
                seen.add(message.id)
            assert len(seen) == len(found.messages)
            assert found.leaf_id is None or found.leaf_id in seen
        entered = Counter(
            one
            for found in parsed(folder, records)
            for message in found.messages
            for one in (*message.records, *message.results)
        )
        assert all(number == 1 for number in entered.values())


def is_malformed(one: dict[str, Any]) -> bool:
    """Tell whether a record of a message has none that can be read."""
    message = one["message"]
    spoken = one.get("type") in {"user", "assistant"}
    return spoken and not (isinstance(message, dict) and isinstance(message["content"], str | list))


def winners(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the record that counts of each uuid."""
    found: dict[str, dict[str, Any]] = {}
    for one in records:
        if one["uuid"] not in found or (is_malformed(found[one["uuid"]]) and not is_malformed(one)):
            found[one["uuid"]] = one
    return found


@given(files)
def test_every_record_of_a_message_is_in_one(records: list[dict[str, Any]]) -> None:
    """Every record that tells a message is in one, or is the summary of a path or of nothing."""
    told = {
        name: one
        for name, one in winners(records).items()
        if one.get("type") in {"user", "assistant"} and isinstance(one["message"], dict)
    }
    found: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for conversation in parsed(folder, records):
            found |= {one["uuid"] for one in conversation.metadata["claude-code"].get("summaries", ())}
            for message in conversation.messages:
                found |= {name.split(" ")[0] for name in (*message.records, *message.results)}
                found |= {overlay.id for overlay in message.overlays}
    # A sidechain that is nothing but a summary is none.
    alone = {name for name in told if name not in found}
    assert found <= told.keys()
    assert all(told[name].get("isSidechain") and told[name].get("isCompactSummary") for name in alone)


@given(files, st.integers(0, 14))
@settings(max_examples=40)
async def test_any_file_is_imported_once(records: list[dict[str, Any]], start: int) -> None:
    """A file that grows is imported once, whatever stands in it, and the store is whole."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        async with open_store("sqlite://") as store:
            for part in (records[:start], records):
                path.write_bytes(lines(part))
                await import_file(store, path)
            settled = await import_file(store, path)
            assert sum(one.inserted for one in settled.sessions) == 0
            head = await store.log.high_water()
            await import_file(store, path)
            assert await store.log.high_water() == head
            assert (await verify(store)).problems == []
