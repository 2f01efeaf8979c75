from __future__ import annotations

import msgspec
import pytest

from eventstore.events import (
    EVENT_TYPES,
    CompactionAdded,
    ContextBlockRemoved,
    ContextBlockSet,
    ContextEntryRemoved,
    ContextEntrySet,
    Event,
    LeafSelected,
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
    PromptFrozen,
    SessionCreated,
    SessionDeleted,
    SessionEnded,
    SessionForked,
    SessionRenamed,
    SkillLoaded,
    SkillUnloaded,
    UsageAdded,
)
from replay.cli.summaries import SUMMARIES, summary_of
from tests.cli.running import eventstore

RAW = msgspec.Raw(b'{"id":"m","role":"user","parts":[{"type":"text","text":"Where\\nto?"}]}')
EVENTS: list[tuple[Event, str]] = [
    (SessionCreated(name="one\ntwo\x1b[2J"), "one two␛[2J"),
    (SessionRenamed(name="two"), "two"),
    (SessionForked(session_id="s", version=3, message_id="m"), "from s at m"),
    (SessionEnded(reason="split"), "split"),
    (SessionDeleted(), "all of the session"),
    (UsageAdded(input_tokens=1_200, output_tokens=30, cost=0.25), "1,200 tokens in, 30 out, cost 0.25"),
    (UsageAdded(input_tokens=1, output_tokens=0, cost=0.0, model="m"), "1 tokens in, 0 out, cost 0 (m)"),
    (MessageAppended(raw=RAW), "user: Where to?"),
    (MessageUpdated(raw=RAW), "user: Where to?"),
    (MessagesDeleted(message_ids=["a"]), "1 message: a"),
    (MessagesDeleted(message_ids=["a", "b\n", "c", "d", "e"]), "5 messages: a, b , c and 2 more"),
    (MessagesCleared(), "all messages and compactions"),
    (LeafSelected(message_id="m\u202e"), "m\ufffd"),
    (CompactionAdded(id="c", summary="All\nof it.", from_message_id="a", to_message_id="b"), "a to b: All of it."),
    (ContextBlockSet(label="memory", content="Likes\ntea."), "memory: Likes tea."),
    (ContextBlockRemoved(label="memory"), "memory"),
    (ContextEntrySet(key="tea", content="Boil water."), "tea: Boil water."),
    (ContextEntryRemoved(key="tea"), "tea"),
    (PromptFrozen(prompt="Be brief."), "9 characters"),
    (SkillLoaded(label="skills", key="tea"), "skills: tea"),
    (SkillUnloaded(label="skills", key="tea"), "skills: tea"),
]


def test_every_type_has_a_summary() -> None:
    """There is a summary for every type of event, and a case of it below."""
    assert set(SUMMARIES) == set(EVENT_TYPES.values()) == {type(event) for event, _ in EVENTS}


@pytest.mark.parametrize(("event", "expected"), EVENTS, ids=lambda value: getattr(value, "type", None))
def test_summary(event: Event, expected: str) -> None:
    """A summary is one line of what tells an event from others, whatever control characters the event holds."""
    assert summary_of(event) == expected


def test_summaries_of_a_changed_session(changed: str) -> None:
    """The log of a session that was changed says of every event what it is."""
    assert [(record["type"], record["summary"]) for record in eventstore("log", "s", "--store", changed).records] == [
        ("session_created", "Changes"),
        ("message_appended", "user: one"),
        ("message_appended", "assistant: two lines"),
        ("message_appended", "user: three"),
        ("message_appended", "assistant: four"),
        ("message_appended", "user: five"),
        ("message_updated", "assistant: two new lines"),
        ("messages_deleted", "1 message: m3"),
        ("compaction_added", "m1 to m2: What was said at first."),
    ]
