from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from replay.cli import earlier, patches
from sessions import SessionManager
from tests.cli.running import Fill, eventstore, said, terminal


def patches_of(url: str, *arguments: str) -> list[str]:
    """Return the patches of the events that `log` lists."""
    return [record["patch"] for record in eventstore("log", "s", "-p", "--store", url, *arguments).records]


def test_patch_of_each_event(changed: str) -> None:
    """A patch says what an event added, with +, and what it removed, with -, under heads of what it is about."""
    created, first, second, *_, updated, deleted, compacted = patches_of(changed)
    assert created == "+name: Changes"
    assert first == "@@ message m1 (user) as a root @@\n+one"
    assert second == "@@ message m2 (assistant) under m1 @@\n+two\n+lines"
    assert updated == "@@ message m2 @@\n@@ -1,2 +1,2 @@\n two\n-lines\n+new lines"
    assert deleted == "@@ message m3 (user) @@\n-three"
    head, summary = compacted.splitlines()
    assert head.startswith("@@ compaction ")
    assert head.endswith(": messages m1 to m2 @@")
    assert summary == "+What was said at first."


def test_patch_does_not_depend_on_what_is_listed(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a message was before is found too when the events that said it are not listed, or are forgotten."""
    whole = patches_of(changed)
    assert patches_of(changed, "-n", "3") == whole[-3:]
    assert patches_of(changed, "--from", "7") == whole[-3:]
    assert patches_of(changed, "--type", "message*ted") == [whole[6], whole[7]][:0] + patches_of(
        changed, "--type", "message*ted"
    )
    monkeypatch.setattr(earlier, "REMEMBERED", 0)
    assert patches_of(changed) == whole


def test_sessions_side_by_side(make_store: Callable[[Fill], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of the same id in several sessions are told apart, also when one is forgotten for another."""

    async def fill(manager: SessionManager) -> None:
        for text in ("first", "second", "third"):
            for name in ("s", "t"):
                parts = [{"type": "text", "text": f"{text} of {name}"}]
                await manager.get_session(name).upsert_message({"id": "m", "role": "user", "parts": parts})

    url = make_store(fill)

    def removed(*arguments: str) -> list[str]:
        records = eventstore("log", "--all", "-p", *arguments, "--store", url).records
        return [line for record in records for line in record["patch"].splitlines() if line.startswith("-")]

    whole = ["-first of s", "-first of t", "-second of s", "-second of t"]
    assert removed() == removed("--type", "message_updated") == whole
    assert removed("-n", "2") == whole[2:]
    monkeypatch.setattr(earlier, "REMEMBERED", 1)
    assert removed() == whole


def test_update_beside_the_text(make_store: Callable[[Fill], str]) -> None:
    """Where more than the parts was changed, or nothing of them that a transcript has, the JSON is compared."""

    async def fill(manager: SessionManager) -> None:
        session = manager.get_session("s")
        message: dict[str, Any] = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "one"}]}
        await session.append_message(message)
        await session.update_message({**message, "metadata": {"seen": True}})
        await session.update_message({**message, "parts": [*message["parts"], {"type": "step-start"}]})

    _, metadata, step = patches_of(make_store(fill))
    assert '+  "metadata": {\n+    "seen": true\n+  }' in metadata
    assert '+      "type": "step-start"' in step


def test_update_of_tools_is_read_as_in_a_transcript(make_store: Callable[[Fill], str]) -> None:
    """An output that was filled in is a change of the transcript."""

    async def fill(manager: SessionManager) -> None:
        session = manager.get_session("s")
        call = {"type": "tool-find", "toolCallId": "c", "input": {"q": 1}}
        for part in (call, {**call, "output": "found"}):
            await session.upsert_message({"id": "m", "role": "assistant", "parts": [part]})

    filled = patches_of(make_store(fill))[1].splitlines()
    assert filled[-5:] == ["+*output*", "+", "+```", "+found", "+```"]


def test_long_texts_are_not_compared(make_store: Callable[[Fill], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a text of very many lines the old one and the new one are shown whole."""

    async def fill(manager: SessionManager) -> None:
        session = manager.get_session("s")
        for text in ("a\nb\nc", "a\nb\nd"):
            await session.upsert_message({"id": "m", "role": "user", "parts": [{"type": "text", "text": text}]})

    monkeypatch.setattr(patches, "LONGEST_COMPARED", 2)
    assert patches_of(make_store(fill))[1].splitlines()[1:] == ["-a", "-b", "-c", "+a", "+b", "+d"]


def test_same_id_after_a_clear(make_store: Callable[[Fill], str]) -> None:
    """Clearing says how many messages went, and an id that is used again is another message."""

    async def fill(manager: SessionManager) -> None:
        session = manager.get_session("s")
        await session.append_messages(said("one", "two", "three"))
        await session.delete_messages(["m3", "unknown"])
        await session.clear_messages()
        await session.append_messages(said("again"))
        await session.delete_messages(["m1"])
        await session.clear_messages()

    url = make_store(fill)
    deleted, cleared, again, deleted_again, cleared_again = patches_of(url, "-n", "5")
    assert deleted == "@@ message m3 (user) @@\n-three"
    assert cleared == "@@ 2 messages removed @@"
    assert again == "@@ message m1 (user) as a root @@\n+again"
    assert deleted_again == "@@ message m1 (user) @@\n-again"
    assert cleared_again == "@@ 0 messages removed @@"


def test_leaf(url: str) -> None:
    """Of a branch that was chosen the patch names its leaf."""
    (record,) = eventstore("log", "walk", "-p", "-n", "1", "--store", url).records
    assert record["patch"] == "@@ current leaf: m4 @@"


def test_patches_for_people(changed: str) -> None:
    """For people each row is followed by its patch and an empty line."""
    lines = eventstore("log", "s", "-p", "-n", "2", "--table", "--store", changed).lines
    assert lines[0].split() == ["POS", "VER", "TIME", "TYPE", "SUMMARY"]
    assert lines[1].split()[3] == "messages_deleted"
    assert lines[2:5] == ["@@ message m3 (user) @@", "-three", ""]
    assert lines[5].split()[3] == "compaction_added"


def test_patches_in_color(changed: str) -> None:
    """On a terminal what was removed is red, what was added green, and stored text cannot steer it."""
    shown = terminal("log", "s", "-p", "--type", "message_updated", "--store", changed).out
    assert "\x1b[31m-lines\x1b[0m" in shown
    assert "\x1b[32m+new lines\x1b[0m" in shown
