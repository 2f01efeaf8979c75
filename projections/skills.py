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
from projections.skill_calls import (
    CALL_ID_IN_JSON,
    NAME_IN_JSON,
    SkillAnswer,
    SkillCall,
    holds_answer,
    skill_calls,
    with_marker,
)
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
asked = Table(
    "skill_call_ids",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("message_id", Text, primary_key=True),
    # The place of the part in its message.
    Column("place", Integer, primary_key=True),
    Column("call_id", Text, nullable=False),
    # The version at which the message had the call first: of calls with one id the newest is meant.
    Column("version", BigInteger, nullable=False),
    # NULL for a call of another tool, under an id that a call of these had before.
    Column("label", Text, nullable=True),
    Column("key", Text, nullable=True),
    Column("unloads", Integer, nullable=False),
    Index("ix_skill_call_ids", "stream_no", "call_id"),
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
_in_asked = asked.c.stream_no == bindparam("stream_no")
_of_message = (_in_calls, calls.c.message_id == bindparam("message_id"))
_asked_by_message = (_in_asked, asked.c.message_id == bindparam("message_id"))
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
_ASK = Statement(insert(asked), *asked.columns.keys())
_ASKED = Statement(
    select(asked.c.message_id, asked.c.label, asked.c.key, asked.c.unloads)
    .where(_in_asked, asked.c.call_id == bindparam("the_call"))
    .order_by(asked.c.version.desc(), asked.c.place.desc()),
    "stream_no",
    "the_call",
)
_ASKED_AT = Statement(select(asked.c.call_id, asked.c.version).where(*_asked_by_message), "stream_no", "message_id")
_FORGET = Statement(delete(asked).where(*_asked_by_message), "stream_no", "message_id")
_UNLOAD = Statement(
    update(calls).where(*_of_skill, calls.c.unloads == 0).values(unloaded=1), "stream_no", "the_label", "the_key"
)
_GIVE = Statement(insert(given), "stream_no", "label", "key")
_TAKE = Statement(delete(given).where(*_one_given), "stream_no", "the_label", "the_key")
_CLEAR = [
    Statement(delete(table).where(where), "stream_no")
    for table, where in ((calls, _in_calls), (asked, _in_asked), (given, _in_given))
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

Known = dict[tuple[Any, ...], int]
"""Whether an answer was unloaded, by its skill's label and key, its call's id and whether that unloads."""
Marks = dict[str, list[tuple[int, str]]]
"""The copies that were unloaded, as places of parts with the skills' keys, by message id."""


class Skills(Projection):
    """Which skills a session has loaded, kept up to date by what its messages hold; no history is ever scanned.

    `estimate` gives a text's tokens.
    """

    name = "skills"
    revision = 2
    handles = (
        MessageAppended,
        MessageUpdated,
        MessagesDeleted,
        MessagesCleared,
        SessionDeleted,
        SkillLoaded,
        SkillUnloaded,
    )
    tables = (calls, asked, given, versions.table)
    caches = ("saved_tokens",)

    def __init__(self, estimate: Callable[[str], int]) -> None:
        self._estimate = estimate

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Enter the calls and answers that messages hold, and take out those that are gone."""
        has_any: dict[int, bool] = {}
        for envelope in envelopes:
            event, stream_no = envelope.event, envelope.stream_no
            if isinstance(event, MessageAppended | MessageUpdated):
                raw = bytes(event.raw)
                begins = NAME_IN_JSON in raw
                if not begins and isinstance(event, MessageAppended) and CALL_ID_IN_JSON not in raw:
                    continue
            else:
                begins = isinstance(event, SkillLoaded)
            if begins:
                has_any[stream_no] = True
            elif stream_no not in has_any:
                has_any[stream_no] = versions.find(tx, stream_no) > 0
            # Most sessions have no skill, and their messages nothing to look at.
            if has_any[stream_no] and versions.news(tx, [envelope]):
                self._fold(tx, envelope)

    def _fold(self, tx: Tx, envelope: Envelope) -> None:
        event, stream_no = envelope.event, envelope.stream_no
        if isinstance(event, MessageAppended):
            self._enter(tx, envelope, event.message, event.parent_id)
        elif isinstance(event, MessageUpdated):
            self._enter(tx, envelope, event.message, None)
        elif isinstance(event, MessagesDeleted):
            for statement in (_DELETE, _FORGET):
                tx.executemany(statement, [(stream_no, message_id) for message_id in event.message_ids])
        elif isinstance(event, MessagesCleared | SessionDeleted):
            for statement in _CLEAR:
                tx.execute(statement, (stream_no,))
        elif isinstance(event, SkillLoaded):
            tx.execute(_TAKE, (stream_no, event.label, event.key))
            tx.execute(_GIVE, (stream_no, event.label, event.key))
        elif isinstance(event, SkillUnloaded):
            _unload(tx, stream_no, event.label, event.key)

    def _enter(self, tx: Tx, envelope: Envelope, message: dict[str, Any], parent_id: str | None) -> None:
        """Enter what a message holds; what it held of that before it was edited keeps its effect and has no other."""
        of_message = (envelope.stream_no, message["id"])
        known: Known = {tuple(row[:4]): row[4] for row in tx.fetch(_CALLS, of_message)}
        asked_at: dict[str | None, int] = dict(tx.fetch(_ASKED_AT, of_message))
        for statement in (_DELETE, _FORGET):
            tx.execute(statement, of_message)
        for found in skill_calls(message):
            if isinstance(found, SkillCall):
                call: SkillCall | None = found
                _ask(tx, of_message, found, asked_at.get(found.call_id, envelope.version))
            else:
                call = _answered(tx, of_message, found, known, parent_id)
            if call is not None and call.skill is not None:
                self._enter_answer(tx, of_message, message["parts"][call.place], call, call.skill, known)

    def _enter_answer(
        self, tx: Tx, of_message: Row, part: dict[str, Any], call: SkillCall, skill: tuple[str, str], known: Known
    ) -> None:
        if not holds_answer(part, skill[1]):
            return
        call_id = f"#{call.place}" if call.call_id is None else call.call_id
        before = known.get((*skill, call_id, int(call.unloads)))
        if before is None and call.unloads:
            _unload(tx, of_message[0], *skill)
        elif before is None:
            tx.execute(_TAKE, (of_message[0], *skill))
        saved = 0 if call.unloads else self._tokens(part) - self._tokens(with_marker(part, skill[1]))
        tx.execute(_INSERT, (*of_message, call.place, call_id, *skill, int(call.unloads), before or 0, saved))

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


def _ask(tx: Tx, of_message: Row, call: SkillCall, version: int) -> None:
    """Remember a call, to tell later which skill an answer is of; of another tool's only that it has the id now."""
    stream_no, message_id = of_message
    if call.call_id is None or (call.skill is None and not tx.fetch(_ASKED, (stream_no, call.call_id))):
        return
    skill = call.skill or (None, None)
    tx.execute(_ASK, (stream_no, message_id, call.place, call.call_id, version, *skill, int(call.unloads)))


def _answered(tx: Tx, of_message: Row, answer: SkillAnswer, known: Known, parent_id: str | None) -> SkillCall | None:
    """The call that a part answers, as if it stood there: one right before it, else the newest of its id."""
    stream_no, message_id = of_message
    for label, key, call_id, unloads in known:
        if call_id == answer.call_id and answer.unloads in (None, bool(unloads)):
            return SkillCall(answer.place, call_id, (label, key), bool(unloads))
    rows = tx.fetch(_ASKED, (stream_no, answer.call_id))
    near = [row for row in rows if row[0] in (message_id, parent_id)]
    for _, label, key, unloads in (near or rows)[:1]:
        if label is not None and answer.unloads in (None, bool(unloads)):
            return SkillCall(answer.place, answer.call_id, (label, key), bool(unloads))
    return None


def _unload(tx: Tx, stream_no: int, label: str, key: str) -> None:
    tx.execute(_UNLOAD, (stream_no, label, key))
    tx.execute(_TAKE, (stream_no, label, key))
