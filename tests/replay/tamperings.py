"""What somebody with a SQL prompt may do to a store of golden events, and what a verification must call it."""

from __future__ import annotations

CHANGED_EVENTS: dict[str, tuple[str, set[str]]] = {
    "payload": (
        """
        UPDATE events SET payload = replace(payload, 'Hello', 'Hullo') WHERE position = 2
        """,
        {"payload"},
    ),
    "space in payload": (
        "UPDATE events SET payload = payload || ' ' WHERE position = 2",
        {"payload"},
    ),
    "payload cut": (
        "UPDATE events SET payload = substr(payload, 1, 30) WHERE position = 2",
        {"payload"},
    ),
    "payload emptied": (
        "UPDATE events SET payload = '' WHERE position = 2",
        {"payload"},
    ),
    "payload no text": (
        "UPDATE events SET payload = CAST(x'ff00fe' AS TEXT) WHERE position = 17",
        {"payload"},
    ),
    "payload a number": (
        "UPDATE events SET payload = 7.5 WHERE position = 17",
        {"payload"},
    ),
    "salt": (
        "UPDATE events SET salt = x'00' WHERE position = 2",
        {"payload"},
    ),
    "salt gone": (
        "UPDATE events SET salt = NULL WHERE position = 2",
        {"payload"},
    ),
    "salt as text": (
        "UPDATE events SET salt = 'x' WHERE position = 2",
        {"payload"},
    ),
    "digest": (
        "UPDATE events SET payload_digest = zeroblob(32) WHERE position = 2",
        {"chain", "payload"},
    ),
    "digest as text": (
        "UPDATE events SET payload_digest = 'x' WHERE position = 2",
        {"chain", "payload"},
    ),
    "hash": (
        "UPDATE events SET hash = zeroblob(32) WHERE position = 2",
        {"chain"},
    ),
    "hash as text": (
        "UPDATE events SET hash = 'x' WHERE position = 2",
        {"chain"},
    ),
    "hash of the last": (
        "UPDATE events SET hash = zeroblob(32) WHERE position = 17",
        {"chain", "stream"},
    ),
    "event id": (
        "UPDATE events SET event_id = 'other' WHERE position = 2",
        {"chain"},
    ),
    "type": (
        "UPDATE events SET type = 'leaf_selected' WHERE position = 2",
        {"chain"},
    ),
    "unknown type": (
        "UPDATE events SET type = 'odd' WHERE position = 2",
        {"chain"},
    ),
    "schema": (
        "UPDATE events SET schema = 2 WHERE position = 2",
        {"chain"},
    ),
    "negative schema": (
        "UPDATE events SET schema = -1 WHERE position = 17",
        {"chain"},
    ),
    "time": (
        "UPDATE events SET recorded_at = recorded_at + 1 WHERE position = 2",
        {"chain"},
    ),
    "time beyond years": (
        "UPDATE events SET recorded_at = 9000000000000000000 WHERE position = 17",
        {"chain"},
    ),
    "time as text": (
        "UPDATE events SET recorded_at = 'noon' WHERE position = 17",
        {"chain"},
    ),
    "stream": (
        "UPDATE events SET stream_no = 4, version = 7 WHERE position = 2",
        {"chain", "version"},
    ),
    "version": (
        "UPDATE events SET version = 77 WHERE position = 17",
        {"chain", "stream", "version"},
    ),
    "version as text": (
        "UPDATE events SET version = 'x' WHERE position = 17",
        {"chain", "version"},
    ),
    "negative version": (
        "UPDATE events SET version = -1 WHERE position = 17",
        {"chain", "stream", "version"},
    ),
    "dropped first": (
        "DELETE FROM events WHERE position = 1",
        {"chain", "version"},
    ),
    "dropped in the middle": (
        "DELETE FROM events WHERE position = 2",
        {"chain", "version"},
    ),
    "dropped at the end": (
        "DELETE FROM events WHERE position = 17",
        {"stream"},
    ),
    "dropped stream": (
        "DELETE FROM events WHERE stream_no = 1",
        {"stream"},
    ),
    "dropped and closed up": (
        """
        DELETE FROM events WHERE position = 2;
        UPDATE events SET version = version - 1 WHERE stream_no = 1 AND version > 2;
        UPDATE streams SET version = version - 1 WHERE stream_no = 1
        """,
        {"chain"},
    ),
    "swapped versions": (
        """
        UPDATE events SET version = 99 WHERE position = 2;
        UPDATE events SET version = 2 WHERE position = 3;
        UPDATE events SET version = 3 WHERE position = 2
        """,
        {"chain", "version"},
    ),
    "swapped payloads": (
        """
        CREATE TABLE t AS SELECT payload, salt, payload_digest FROM events WHERE position = 2;
        UPDATE events SET (payload, salt, payload_digest) = (SELECT payload, salt, payload_digest FROM
        events WHERE position = 7) WHERE position = 2;
        UPDATE events SET (payload, salt, payload_digest) = (SELECT * FROM t) WHERE position = 7;
        DROP TABLE t
        """,
        {"chain"},
    ),
    "swapped positions": (
        """
        UPDATE events SET position = 99 WHERE position = 2;
        UPDATE events SET position = 2 WHERE position = 3;
        UPDATE events SET position = 3 WHERE position = 99
        """,
        {"chain", "version"},
    ),
    "added at the end": (
        """
        INSERT INTO events SELECT 99, stream_no, 10, 'new', type, schema, recorded_at, salt, payload,
        payload_digest, hash FROM events WHERE stream_no = 1 AND version = 9
        """,
        {"chain", "stream"},
    ),
    "event without a stream": (
        "UPDATE events SET stream_no = 77 WHERE position = 17",
        {"stream"},
    ),
}
"""Changes of the log, and the kinds of problems that they are."""

CHANGED_STREAMS = {
    "version up": "UPDATE streams SET version = version + 1 WHERE stream_no = 1",
    "version down": "UPDATE streams SET version = 1 WHERE stream_no = 1",
    "hash": "UPDATE streams SET hash = zeroblob(32) WHERE stream_no = 1",
    "name": "UPDATE streams SET stream_id = 'other' WHERE stream_no = 1",
    "swapped names": """
        UPDATE streams SET stream_id = 'x' WHERE stream_no = 1;
        UPDATE streams SET stream_id = 'chat-1' WHERE stream_no = 2;
        UPDATE streams SET stream_id = 'grüße/中 1' WHERE stream_no = 1
        """,
    "dropped": "DELETE FROM streams WHERE stream_no = 1",
    "added": "INSERT INTO streams VALUES (99, 'ghost', 3, zeroblob(32), 0)",
}
"""Changes of the streams' own rows."""

CHANGED_PROJECTIONS = {
    "content": (
        "message_tree",
        """
        UPDATE assistant_messages SET content = replace(content, 'thanks', 'no') WHERE id = 'u2'
        """,
    ),
    "role": (
        "message_tree",
        "UPDATE assistant_messages SET role = 'tool' WHERE id = 'a1'",
    ),
    "parent": (
        "message_tree",
        "UPDATE assistant_messages SET parent_id = 'a1' WHERE id = 'u2'",
    ),
    "no parent": (
        "message_tree",
        "UPDATE assistant_messages SET parent_id = NULL WHERE id = 'u2'",
    ),
    "time": (
        "message_tree",
        """
        UPDATE assistant_messages SET created_at = '2020-01-01T00:00:00.000000Z' WHERE id = 'u2'
        """,
    ),
    "place": (
        "message_tree",
        "UPDATE assistant_messages SET ordinal = ordinal + 50 WHERE id = 'a2'",
    ),
    "row lost": (
        "message_tree",
        "DELETE FROM assistant_messages WHERE id = 'a2'",
    ),
    "row added": (
        "message_tree",
        """
        CREATE TABLE t AS SELECT * FROM assistant_messages WHERE id = 'a2';
        UPDATE t SET row_id = row_id + 90, id = 'ghost', ordinal = ordinal + 90;
        INSERT INTO assistant_messages SELECT * FROM t;
        DROP TABLE t
        """,
    ),
    "all lost": (
        "message_tree",
        "DELETE FROM assistant_messages",
    ),
    "run": (
        "message_tree",
        "UPDATE message_runs SET fork_ordinal = fork_ordinal + 1 WHERE run = 3",
    ),
    "run lost": (
        "message_tree",
        "DELETE FROM message_runs WHERE stream_no = 1",
    ),
    "tip": (
        "message_tree",
        "UPDATE message_trees SET tip = tip - 1 WHERE stream_no = 1",
    ),
    "count": (
        "message_tree",
        "UPDATE message_trees SET messages = messages + 1 WHERE stream_no = 1",
    ),
    "title": (
        "directory",
        "UPDATE assistant_sessions SET name = 'Other' WHERE id = 'chat-1'",
    ),
    "updated": (
        "directory",
        "UPDATE assistant_sessions SET updated_position = 0 WHERE id = 'chat-1'",
    ),
    "usage": (
        "directory",
        "UPDATE assistant_sessions SET input_tokens = 5 WHERE id = 'chat-1'",
    ),
    "session lost": (
        "directory",
        "DELETE FROM assistant_sessions WHERE id = 'empty'",
    ),
    "session added": (
        "directory",
        """
        INSERT INTO assistant_sessions (stream_no, id, name, created_at, updated_at, updated_position)
        VALUES (99, 'ghost', 'Ghost', '', '', 0)
        """,
    ),
    "token lost": (
        "search_index",
        """
        INSERT INTO assistant_fts (assistant_fts, rowid, terms) SELECT 'delete', doc, term FROM
        assistant_fts_vocabulary WHERE term = 'hello' LIMIT 1
        """,
    ),
    "token added": (
        "search_index",
        "INSERT INTO assistant_fts (rowid, terms) VALUES (77, 'ghost')",
    ),
    "index emptied": (
        "search_index",
        "INSERT INTO assistant_fts (assistant_fts) VALUES ('delete-all')",
    ),
}
"""Changes of projections, each with the projection's name."""
