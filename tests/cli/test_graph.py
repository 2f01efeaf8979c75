from __future__ import annotations

from collections.abc import Callable

from sessions import SessionManager
from tests.cli.running import Fill, eventstore, said


def test_graph_is_drawn(url: str) -> None:
    """The graph shows each message with its id, role and first words, branches aside, and marks the current leaf."""
    assert eventstore("graph", "walk", "--store", url, "--table").lines == [
        "A walk by the sea (5 messages, 2 branches)",
        "● m1  user       Where to?",
        "● m2  assistant  Along the cliffs.",
        "├─○ m5  user       By bus?",
        "● m3  user       How far?",
        "◉ m4  assistant  Ten miles.  ← current leaf",
    ]


def test_nodes_in_a_pipe(url: str) -> None:
    """In a pipe the graph is a record per message, in log order: parent, role, depth, and whether it is a leaf."""
    nodes = eventstore("graph", "walk", "--store", url).records
    assert [(node["id"], node["parent_id"], node["role"], node["depth"]) for node in nodes] == [
        ("m1", None, "user", 1),
        ("m2", "m1", "assistant", 2),
        ("m3", "m2", "user", 3),
        ("m4", "m3", "assistant", 4),
        ("m5", "m2", "user", 3),
    ]
    assert [node["id"] for node in nodes if node["leaf"]] == ["m4", "m5"]
    assert [node["id"] for node in nodes if node["current"]] == ["m4"]
    assert [node["id"] for node in nodes if node["on_path"]] == ["m1", "m2", "m3", "m4"]


def test_compacted_span_is_marked(changed: str) -> None:
    """A line before the first message of a compaction names its ends, whether it is stale, and its summary."""
    assert eventstore("graph", "s", "--store", changed, "--table").lines == [
        "Changes (4 messages, 1 branch)",
        "≡ m1 to m2 compacted: What was said at first.",
        "◍ m1  user       one",
        "◍ m2  assistant  two new lines",
        "● m4  assistant  four",
        "◉ m5  user       five  ← current leaf",
    ]
    nodes = eventstore("graph", "s", "--store", changed).records
    assert [node["compaction"] is None for node in nodes] == [False, False, True, True]


def test_compactions_of_branches(make_store: Callable[[Fill], str]) -> None:
    """Of overlapping compactions the newest is drawn, one off the current branch too, in lines that fit."""

    async def fill(manager: SessionManager) -> None:
        session = manager.get_session("s")
        messages = said(*map(str, range(1, 13)))
        await session.append_messages(messages)
        await session.append_message({**messages[0], "id": "aside"}, "m1")
        await session.select_leaf("m12")
        await session.add_compaction("Older.", "m2", "m4")
        await session.add_compaction("Newer, in many words: " + "word " * 50, "m2", "m8")
        await session.add_compaction("Beside.", "m1", "aside")
        await session.update_message({**messages[6], "parts": []})

    url = make_store(fill)
    lines = eventstore("graph", "s", "--store", url, "--table").lines
    assert [line for line in lines if "≡" in line or "┊" in line] == [
        "≡ m1 to aside compacted: Beside.",
        "≡ m2 to m8 compacted, stale: Newer, in many words: word word word word word wor…",
        "┊ 4 messages",
    ]
    assert max(map(len, lines)) == 80
    nodes = {node["id"]: node["compaction"] for node in eventstore("graph", "s", "--store", url).records}
    # The first message is covered on the other branch alone.
    assert [name for name, compaction in nodes.items() if compaction is None] == ["m1", "m9", "m10", "m11", "m12"]
    assert nodes["m2"] == nodes["m8"] != nodes["aside"]


def test_session_without_messages(url: str) -> None:
    """A session without messages has a graph of its name alone, and no nodes."""
    assert eventstore("graph", "empty", "--store", url, "--table").lines == ["Nothing yet (0 messages, 0 branches)"]
    assert eventstore("graph", "empty", "--store", url, "--json").value == []


def test_deep_session(make_store: Callable[[Fill], str]) -> None:
    """A conversation of 12,000 messages without a branch is five lines, and with --full one for each message."""

    async def fill(manager: SessionManager) -> None:
        await manager.get_session("deep").append_messages(said(*map(str, range(12_000))))

    url = make_store(fill)
    lines = eventstore("graph", "deep", "--store", url, "--table").lines
    assert lines[0] == "deep (12,000 messages, 1 branch)"
    assert lines[3] == "┊ 11,996 messages"
    assert len(lines) == 6
    assert len(eventstore("graph", "deep", "--store", url, "--table", "--full").lines) == 12_001
    assert eventstore("graph", "deep", "--store", url).records[-1]["depth"] == 12_000


def test_words_fit_the_terminal(make_store: Callable[[Fill], str]) -> None:
    """Long and wide text is cut so that no line is wider than the terminal, and the mark of the leaf stays."""

    async def fill(manager: SessionManager) -> None:
        await manager.get_session("s").append_messages(said("word " * 100, "京都の紅葉" * 40))

    lines = eventstore("graph", "s", "--store", make_store(fill), "--table").lines
    assert len(lines[1]) == 80
    # Every character of the second message takes two columns.
    assert lines[2].endswith("…  ← current leaf")
    assert len(lines[2]) < 60


def test_message_without_text(make_store: Callable[[Fill], str]) -> None:
    """A message without text is shown by what else is in it."""

    async def fill(manager: SessionManager) -> None:
        parts = [{"type": "step-start"}, {"type": "dynamic-tool", "toolName": "search"}, {"type": "reasoning"}]
        session = manager.get_session("s")
        await session.append_message({"id": "a", "role": "assistant", "parts": parts})
        await session.append_message({"id": "b", "role": "user", "parts": [{"type": "text", "text": " "}]})

    lines = eventstore("graph", "s", "--store", make_store(fill), "--table").lines
    assert lines[1:] == ["● a  assistant  [search] [reasoning]", "◉ b  user       [empty]  ← current leaf"]
