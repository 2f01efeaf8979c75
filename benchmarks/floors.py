"""The floors: what plain `sqlite3` needs for the same durable rows, without any layer of ours.

The one thing of ours in here is the analysis of text into tokens, so that the index holds the same words.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from uuid_utils import uuid7

from benchmarks.corpus import JsonMessage, text_of
from projections.analysis import analyse

SCHEMA = """
CREATE TABLE event (
    position INTEGER PRIMARY KEY, stream TEXT NOT NULL, version INTEGER NOT NULL, event_id TEXT NOT NULL,
    type TEXT NOT NULL, schema INTEGER NOT NULL, recorded_at INTEGER NOT NULL,
    payload TEXT, salt BLOB, digest BLOB NOT NULL, hash BLOB NOT NULL, UNIQUE (stream, version));
CREATE TABLE message (
    id TEXT NOT NULL, session_id TEXT NOT NULL, parent_id TEXT, role TEXT NOT NULL, content TEXT NOT NULL,
    created_at INTEGER NOT NULL, ordinal INTEGER NOT NULL, UNIQUE (session_id, id));
CREATE INDEX message_path ON message (session_id, ordinal);
CREATE VIRTUAL TABLE message_text USING fts5(tokens, content='', tokenize='ascii');
CREATE TABLE directory (
    session_id TEXT PRIMARY KEY, updated_at INTEGER NOT NULL, message_count INTEGER NOT NULL);
"""
TYPE = "message_appended"
INSERT_EVENT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_MESSAGE = (
    "INSERT INTO message (rowid, id, session_id, parent_id, role, content, created_at, ordinal)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_TEXT = "INSERT INTO message_text (rowid, tokens) VALUES (?, ?)"
TOUCH_SESSION = (
    "INSERT INTO directory VALUES (?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
    " updated_at = excluded.updated_at, message_count = message_count + excluded.message_count"
)
READ_PATH = "SELECT content FROM message WHERE session_id = ? AND ordinal BETWEEN 1 AND ? ORDER BY ordinal"
SEARCH = (
    "SELECT m.id, m.session_id, m.role, m.content, m.created_at"
    " FROM message_text JOIN message AS m ON m.rowid = message_text.rowid"
    " WHERE message_text MATCH ? AND m.session_id = ? ORDER BY {order} LIMIT 20"
)
SEARCH_RANKED = SEARCH.format(order="message_text.rank")
SEARCH_NEWEST = SEARCH.format(order="message_text.rowid DESC")


class StoredMessage(msgspec.Struct):
    """What a reader gets of a message."""

    id: str
    role: str
    parts: list[dict[str, Any]]


Row = tuple[Any, ...]


@dataclass(slots=True)
class Head:
    """Where a stream stands; kept in memory, as any single writer may."""

    version: int = 0
    hash: bytes = bytes(32)
    last_id: str | None = None


@dataclass(slots=True)
class Rows:
    """The rows of one append but for the directory's."""

    recorded_at: int
    event: Row
    message: Row
    text: Row


class Floor:
    """One database file: a connection that writes, and commits to the disk, and one that reads.

    Settings and cache sizes are those of our store.
    """

    def __init__(self, path: Path) -> None:
        self._writer = _connect(path, cache_mib=32)
        self._writer.executescript(SCHEMA)
        self._reader = _connect(path, cache_mib=16)
        self._position = 0
        self._heads: dict[str, Head] = {}
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(StoredMessage)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
        self._writer.close()

    def append(self, session_id: str, message: JsonMessage) -> None:
        """Floor F1: one append, one commit."""
        rows = self._rows(session_id, message)
        execute = self._writer.execute
        execute("BEGIN IMMEDIATE")
        execute(INSERT_EVENT, rows.event)
        execute(INSERT_MESSAGE, rows.message)
        execute(INSERT_TEXT, rows.text)
        execute(TOUCH_SESSION, (session_id, rows.recorded_at, 1))
        execute("COMMIT")

    def append_group(self, appends: Iterable[tuple[str, JsonMessage]]) -> None:
        """Floor F2: many appends, one commit; a session's directory row is touched once."""
        rows = []
        touched: dict[str, int] = {}
        for session_id, message in appends:
            rows.append(self._rows(session_id, message))
            touched[session_id] = touched.get(session_id, 0) + 1
        recorded_at = rows[-1].recorded_at
        executemany = self._writer.executemany
        self._writer.execute("BEGIN IMMEDIATE")
        executemany(INSERT_EVENT, [row.event for row in rows])
        executemany(INSERT_MESSAGE, [row.message for row in rows])
        executemany(INSERT_TEXT, [row.text for row in rows])
        executemany(TOUCH_SESSION, [(session_id, recorded_at, count) for session_id, count in touched.items()])
        self._writer.execute("COMMIT")

    def read(self, session_id: str, count: int) -> list[StoredMessage]:
        """Floor R: the rows of a path by an index range, decoded."""
        decode = self._decoder.decode
        return [decode(content) for (content,) in self._reader.execute(READ_PATH, (session_id, count))]

    def search(self, session_id: str, word: str, *, newest_first: bool = False) -> list[tuple[Row, StoredMessage]]:
        """Floor S: the 20 best or newest messages with a word, with what a list of hits shows of them."""
        query = " ".join(f'"{token}"' for token in analyse(word))
        rows = self._reader.execute(SEARCH_NEWEST if newest_first else SEARCH_RANKED, (query, session_id))
        return [(row, self._decoder.decode(row[3])) for row in rows]

    def _rows(self, session_id: str, message: JsonMessage) -> Rows:
        head = self._heads.setdefault(session_id, Head())
        self._position += 1
        position = self._position
        version = head.version + 1
        event_id = str(uuid7())
        recorded_at = time.time_ns() // 1000
        content = self._encoder.encode(message)
        payload = self._encoder.encode(
            {"event": {"message": msgspec.Raw(content), "parent_id": head.last_id}, "metadata": {}}
        )
        salt = os.urandom(16)
        digest = sha256(salt + payload).digest()
        header = f"{session_id}\n{version}\n{event_id}\n{TYPE}\n1\n{recorded_at}".encode()
        link = sha256(head.hash + header + digest).digest()
        event = (position, session_id, version, event_id, TYPE, 1, recorded_at, payload.decode(), salt, digest, link)
        message_id, role = message["id"], message["role"]
        row = (position, message_id, session_id, head.last_id, role, content.decode(), recorded_at, version)
        text = (position, " ".join(analyse(text_of(message))))
        head.version, head.hash, head.last_id = version, link, message_id
        return Rows(recorded_at, event, row, text)


def _connect(path: Path, *, cache_mib: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;"
        f"PRAGMA cache_size = -{cache_mib * 1024};"
    )
    return connection


def append_in_groups(floor: Floor, session_id: str, messages: Sequence[JsonMessage], *, size: int) -> None:
    """Append all messages to one session, so many to a commit."""
    for start in range(0, len(messages), size):
        floor.append_group((session_id, message) for message in messages[start : start + size])
