from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eventstore.codec import decode
from eventstore.envelope import NO_HASH, chain_hash, digest_of, header_of
from eventstore.events import Event
from sessions import SessionManager, open_store
from tests.docs.pages import REFERENCE, blocks, codes, rows, sections

PAGE = REFERENCE / "hash-chain.md"
Verifier = Callable[[str], Iterator[str]]


@pytest.fixture
def verifier() -> Verifier:
    """Return the page's own verifier."""
    namespace: dict[str, Any] = {"__name__": "verify_chain"}
    exec("".join(block.text for block in blocks(PAGE) if block.language == "python"), namespace)  # noqa: S102 - the page's
    found: Verifier = namespace["verify_chain"]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of a store of two sessions, whose triggers are gone."""
    path = tmp_path / "store.db"

    async def fill() -> None:
        async with open_store(f"sqlite:///{path}") as store:
            manager = SessionManager(store)
            await manager.create("Grüße", id="ä")
            for name in ("ä", "b"):
                said = [{"id": f"m{n}", "role": "user", "parts": [{"type": "text", "text": "Grüße"}]} for n in range(3)]
                await manager.get_session(name).append_messages(said)

    asyncio.run(fill())
    change(path, "DROP TRIGGER events_no_update", "DROP TRIGGER events_no_delete")
    return path


def change(path: Path, *statements: str) -> None:
    """Change a store behind its back."""
    database = sqlite3.connect(path)
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()


def test_worked_example() -> None:
    """The bytes of the worked example are those that the code makes, and its payloads are events."""
    table = {cells[0]: [codes(cell)[0] for cell in cells[1:]] for cells in rows(sections(PAGE, 2)["A worked example"])}
    previous = NO_HASH
    for at in range(2):
        of = {name: values[at] for name, values in table.items()}
        event, _ = decode(of["type"], int(of["schema"]), of["payload"])
        assert isinstance(event, Event)
        digest = digest_of(bytes.fromhex(of["salt"]), of["payload"].encode())
        numbers = (int(of[name]) for name in ("version", "schema", "recorded_at"))
        version, schema, recorded_at = numbers
        header = header_of(of["stream_id"], version, of["event_id"], of["type"], schema, recorded_at)
        previous = chain_hash(previous, header, digest)
        assert [of["payload digest"], of["header"], of["hash"]] == [digest.hex(), header.hex(), previous.hex()]


def test_verifier_finds_nothing_in_a_whole_store(verifier: Verifier, file: Path) -> None:
    """The page's verifier finds a store that nobody has changed to be whole."""
    assert list(verifier(str(file))) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "UPDATE events SET payload = replace(payload, 'm1', 'm7') WHERE position = 3",
            ["ä 3: the payload is not what was hashed"],
        ),
        ("UPDATE events SET recorded_at = recorded_at + 1 WHERE position = 6", ["b 2: the hash does not follow"]),
        ("UPDATE events SET salt = NULL, payload = NULL WHERE position = 2", []),
        ("DELETE FROM events WHERE position = 2", ["ä 3: follows version 1", "ä 3: the hash does not follow"]),
        ("DELETE FROM events WHERE position = 7", ["b: the stream does not end with its last event"]),
        ("UPDATE streams SET version = 9 WHERE stream_id = 'b'", ["b: the stream does not end with its last event"]),
    ],
    ids=["payload", "time", "erased", "hole", "cut off", "head"],
)
def test_verifier_finds_what_was_changed(verifier: Verifier, file: Path, statement: str, found: list[str]) -> None:
    """The page's verifier finds what was changed behind the log's back, and takes an erased payload as it is."""
    change(file, statement)
    assert list(verifier(str(file))) == found
