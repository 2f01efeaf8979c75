"""Loaded skills: the stored copies of their bodies, and those that were given out and not stored yet.

A skill is loaded while one of its copies, on any branch, was neither deleted nor unloaded, or from when it was given
out until the first copy is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
    union,
    update,
)

from eventstore.envelope import Envelope
from eventstore.events import (
    MessageAppended,
    MessagesCleared,
    MessagesDeleted,
    MessageUpdated,
    SessionDeleted,
    SkillLoaded,
    SkillUnloaded,
)
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import metadata
from projections.base import Projection
from projections.overlay import View
from projections.paths import Range, lies_on
from projections.skill_calls import NAME_IN_JSON, skill_calls, with_marker
from projections.tokens import estimate_parts_tokens
from projections.tree_tables import messages
from projections.versions import Versions

calls = Table(
    "skill_calls",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("message_id", Text, primary_key=True),
    # The place of the part in its message.
    Column("place", Integer, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("key", Text, nullable=False),
    # 1 for a call that unloads, 0 for one whose part is a copy of the body.
    Column("unloads", Integer, nullable=False),
    # Of a copy: 1 once it was unloaded.
    Column("unloaded", Integer, nullable=False),
    # How many tokens fewer the marker has than the body.
    Column("saved_tokens", Integer, nullable=False),
    Index("ix_skill_calls_unloaded", "stream_no", "unloaded"),
)
given = Table(
    "given_skills",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("label", Text, primary_key=True),
    Column("key", Text, primary_key=True),
)
versions = Versions("skill_versions")

_in_calls, _in_given = calls.c.stream_no == bindparam("stream_no"), given.c.stream_no == bindparam("stream_no")
_of_message = (_in_calls, calls.c.message_id == bindparam("message_id"))
_of_skill = (_in_calls, calls.c.label == bindparam("the_label"), calls.c.key == bindparam("the_key"))
_one_given = (_in_given, given.c.label == bindparam("the_label"), given.c.key == bindparam("the_key"))
_live = (calls.c.unloads == 0, calls.c.unloaded == 0)
_unloaded = (_in_calls, calls.c.unloaded == 1)
_INSERT = Statement(insert(calls), *calls.columns.keys())
_CALLS = Statement(
    select(calls.c.label, calls.c.key, calls.c.call_id, calls.c.unloads, calls.c.unloaded).where(*_of_message),
    "stream_no",
    "message_id",
)
_DELETE = Statement(delete(calls).where(*_of_message), "stream_no", "message_id")
_UNLOAD = Statement(
    update(calls).where(*_of_skill, calls.c.unloads == 0).values(unloaded=1), "stream_no", "the_label", "the_key"
)
_GIVE = Statement(insert(given), "stream_no", "label", "key")
_TAKE = Statement(delete(given).where(*_one_given), "stream_no", "the_label", "the_key")
_CLEAR = [
    Statement(delete(table).where(where), "stream_no") for table, where in ((calls, _in_calls), (given, _in_given))
]
_LOADED = Statement(
    union(
        select(calls.c.label, calls.c.key).where(_in_calls, *_live), select(given.c.label, given.c.key).where(_in_given)
    ),
    "stream_no",
)
_COPIES = Statement(select(calls.c.place).where(*_of_skill, *_live), "stream_no", "the_label", "the_key")
_IS_GIVEN = Statement(select(1).where(*_one_given), "stream_no", "the_label", "the_key")
_UNLOADED = Statement(select(calls.c.message_id, calls.c.place, calls.c.key).where(*_unloaded), "stream_no")
_SAVED = Statement(
    select(messages.c.run, messages.c.ordinal, calls.c.saved_tokens)
    .join_from(calls, messages, (messages.c.stream_no == calls.c.stream_no) & (messages.c.id == calls.c.message_id))
    .where(*_unloaded),
    "stream_no",
)

Marks = dict[str, list[tuple[int, str]]]
"""The copies that were unloaded, as places of parts with the skills' keys, by message id."""


class Skills(Projection):
    """Which skills a session has loaded, kept up to date by what its messages hold; no history is ever scanned.

    `estimate` gives a text's tokens.
    """

    name = "skills"
    handles = (
        MessageAppended,
        MessageUpdated,
        MessagesDeleted,
        MessagesCleared,
        SessionDeleted,
        SkillLoaded,
        SkillUnloaded,
    )
    tables = (calls, given, versions.table)
    caches = ("saved_tokens",)

    def __init__(self, estimate: Callable[[str], int]) -> None:
        self._estimate = estimate

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Enter the calls that messages hold, and take out those that are gone."""
        has_any: dict[int, bool] = {}
        for envelope in envelopes:
            event, stream_no = envelope.event, envelope.stream_no
            if isinstance(event, MessageAppended | MessageUpdated):
                begins = NAME_IN_JSON in bytes(event.raw)
            else:
                begins = isinstance(event, SkillLoaded)
            if begins:
                has_any[stream_no] = True
            elif isinstance(event, MessageAppended):
                continue
            elif stream_no not in has_any:
                has_any[stream_no] = versions.find(tx, stream_no) > 0
            # Most sessions have no skill, and their messages nothing to look at.
            if has_any[stream_no] and versions.news(tx, [envelope]):
                self._fold(tx, envelope)

    def _fold(self, tx: Tx, envelope: Envelope) -> None:
        event, stream_no = envelope.event, envelope.stream_no
        if isinstance(event, MessageAppended | MessageUpdated):
            self._enter(tx, stream_no, event.message)
        elif isinstance(event, MessagesDeleted):
            tx.executemany(_DELETE, [(stream_no, message_id) for message_id in event.message_ids])
        elif isinstance(event, MessagesCleared | SessionDeleted):
            for statement in _CLEAR:
                tx.execute(statement, (stream_no,))
        elif isinstance(event, SkillLoaded):
            tx.execute(_TAKE, (stream_no, event.label, event.key))
            tx.execute(_GIVE, (stream_no, event.label, event.key))
        elif isinstance(event, SkillUnloaded):
            _unload(tx, stream_no, event.label, event.key)

    def _enter(self, tx: Tx, stream_no: int, message: dict[str, Any]) -> None:
        """Enter the calls of a message; what it held of them before it was edited keeps its effect and has no other."""
        known = {tuple(row[:4]): row[4] for row in tx.fetch(_CALLS, (stream_no, message["id"]))}
        tx.execute(_DELETE, (stream_no, message["id"]))
        for call in skill_calls(message):
            skill = (call.label, call.key)
            before = known.get((*skill, call.call_id, int(call.unloads)))
            if before is None and call.unloads:
                _unload(tx, stream_no, *skill)
            elif before is None:
                tx.execute(_TAKE, (stream_no, *skill))
            part = message["parts"][call.place]
            saved = 0 if call.unloads else self._tokens(part) - self._tokens(with_marker(part, call.key))
            about = (stream_no, message["id"], call.place, call.call_id, *skill)
            tx.execute(_INSERT, (*about, int(call.unloads), before or 0, saved))

    def _tokens(self, part: dict[str, Any]) -> int:
        return estimate_parts_tokens([part], self._estimate)


def loaded_skills(tx: Tx, stream_no: int) -> list[tuple[str, str]]:
    """Label and key of every loaded skill, in order."""
    return sorted((label, key) for label, key in tx.fetch(_LOADED, (stream_no,)))


def is_given(tx: Tx, stream_no: int, label: str, key: str) -> bool:
    """Whether a skill was given out and no copy of it was stored since."""
    return bool(tx.fetch(_IS_GIVEN, (stream_no, label, key)))


def count_copies(tx: Tx, stream_no: int, label: str, key: str) -> int:
    """How many stored copies of a skill show its body."""
    return len(tx.fetch(_COPIES, (stream_no, label, key)))


def unloaded_copies(tx: Tx, stream_no: int) -> Marks:
    """The copies of a session that were unloaded: a marker is shown instead of them."""
    marks: Marks = {}
    for message_id, place, key in tx.fetch(_UNLOADED, (stream_no,)):
        marks.setdefault(message_id, []).append((place, key))
    return marks


def saved_tokens(tx: Tx, stream_no: int, view: Callable[[], View]) -> int:
    """How many tokens fewer a view has for the copies in it that were unloaded; it is made only if there are some."""
    rows: list[Row] = tx.fetch(_SAVED, (stream_no,))
    if not rows:
        return 0
    shown = [part for part in view() if isinstance(part, Range)]
    return sum(saved for run, ordinal, saved in rows if lies_on(shown, run, ordinal))


def _unload(tx: Tx, stream_no: int, label: str, key: str) -> None:
    tx.execute(_UNLOAD, (stream_no, label, key))
    tx.execute(_TAKE, (stream_no, label, key))
