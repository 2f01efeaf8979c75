from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions import Session, SessionManager, StoredSession, open_store
from sessions.importers import Conversation, Problem, import_file
from sessions.importers.conversation import RecordedConversation
from sessions.importers.formats import choose_formats, conversations
from sessions.importers.report import ImportedSession
from sessions.store import Store
from tests.sessions.importers.counting import FIXTURES, count, expected_of, export_in, matched, path_to

FOLDERS = sorted(folder for format_folder in FIXTURES.iterdir() for folder in format_folder.iterdir())
Parsed = Conversation | RecordedConversation


def name_of(folder: Path) -> str:
    """Return the name of a fixture, with its format."""
    return f"{folder.parent.name}/{folder.name}"


def parsed(export: Path) -> tuple[list[Parsed], list[Problem]]:
    """Return what stands in an export."""
    found = list(conversations(str(export), choose_formats("auto")))
    return (
        [item for item in found if not isinstance(item, Problem)],
        [item for item in found if isinstance(item, Problem)],
    )


def numbers_of(conversation: Parsed) -> dict[str, Any]:
    """Return the numbers of a conversation as it was parsed."""
    messages = [(item.message, item.parent_id) for item in conversation.messages]
    parents = {item.id: item.parent_id for item in conversation.messages}
    return {
        "source_id": conversation.source_id,
        "title": conversation.title,
        "parent_source_id": conversation.parent_source_id,
        "repaired_links": conversation.repaired_links,
        **count(messages, conversation.leaf_id, path_to(conversation.leaf_id, parents)),
    }


async def stored_numbers(store: Store, imported: ImportedSession) -> dict[str, Any]:
    """Return the numbers of a session as the public API reads it back."""
    session = Session.create(store).for_session(imported.session_id)
    messages = [(node.message.to_dict(), node.parent_id) async for node in session.tree()]
    leaf = await session.get_latest_leaf()
    stored = StoredSession(store, imported.session_id)
    path = [message.id async for message in stored.history(overlays=False)]
    info = await SessionManager(store).get(imported.session_id)
    assert info is not None
    parent = info.parent_session_id
    return {
        "source_id": imported.session_id.partition(":")[2],
        "title": imported.title,
        "parent_source_id": None if parent is None else parent.partition(":")[2],
        "repaired_links": imported.repaired_links,
        **count(messages, leaf.id if leaf else None, path),
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_parsed_export_has_the_promised_numbers(folder: Path) -> None:
    """Every export parses to exactly the conversations, trees, parts and times that it is known to hold."""
    expected = expected_of(folder)
    found, problems = parsed(export_in(folder))
    assert matched([numbers_of(conversation) for conversation in found], expected) == expected["per_conversation"]
    assert sum(problem.skipped for problem in problems) == expected["skipped"]
    assert sum(problem.line is not None for problem in problems) == expected["bad_lines"]


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
async def test_stored_export_has_the_promised_numbers(folder: Path) -> None:
    """Every export, imported, reads back with exactly the numbers that it is known to hold."""
    expected = expected_of(folder)
    async with open_store("sqlite://") as store:
        report = await import_file(store, export_in(folder))
        read_back = [await stored_numbers(store, imported) for imported in report.sessions]
    assert matched(read_back, expected) == expected["per_conversation"]
    assert (report.conversations, report.skipped) == (expected["conversations"], expected["skipped"])
    assert report.messages == sum(promised["messages"] for promised in expected["per_conversation"])
    assert report.overlays == expected["overlays"]


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
async def test_importing_again_changes_nothing(folder: Path) -> None:
    """A second import of an export finds everything known and leaves the log as it was."""
    export = export_in(folder)
    async with open_store("sqlite://") as store:
        first = await import_file(store, export)
        head = await store.log.high_water()
        again = await import_file(store, export)
        assert await store.log.high_water() == head
    assert [imported.inserted for imported in first.sessions] == [imported.messages for imported in first.sessions]
    assert [imported.inserted for imported in again.sessions] == [0] * len(first.sessions)
    assert (again.messages, again.problems) == (first.messages, first.problems)


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
async def test_messages_read_back_as_parsed(folder: Path) -> None:
    """What is stored of an export is what was parsed, message for message, in the same order."""
    found, _ = parsed(export_in(folder))
    async with open_store("sqlite://") as store:
        await import_file(store, export_in(folder))
        for conversation in found:
            session = Session.create(store).for_session(conversation.session_id)
            stored = [(node.message.to_dict(), node.parent_id) async for node in session.tree()]
            assert stored == [(item.message, item.parent_id) for item in conversation.messages]


@pytest.mark.soak
@pytest.mark.parametrize("name", ["chatgpt", "claude-code"])
async def test_large_export_has_the_promised_numbers(soak_fixtures: Path, name: str) -> None:
    """A large export parses, and reads back after its import, with exactly the numbers that it is known to hold."""
    folder = soak_fixtures / name
    expected = expected_of(folder)
    found, problems = parsed(export_in(folder))
    assert [numbers_of(conversation) for conversation in found] == expected["per_conversation"]
    assert problems == []
    async with open_store("sqlite://") as store:
        report = await import_file(store, folder)
        assert [await stored_numbers(store, imported) for imported in report.sessions] == expected["per_conversation"]
        assert report.overlays == expected["overlays"]
        head = await store.log.high_water()
        again = await import_file(store, folder)
        assert await store.log.high_water() == head
    assert sum(imported.inserted for imported in again.sessions) == 0
