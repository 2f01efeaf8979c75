"""The tables of the message tree.

A run is an unbranched stretch: the first child of a message continues its parent's run, every further child starts a
run of its own, and so does a root. A message's ordinal is the depth at which it was appended, 1 for a root; ordinals
are never given twice and never change, so that a message that is deleted leaves a hole and no other row is touched. A
run is named by the version of its first message. A row is numbered by the position of the event that appended its
message, so that rows are always added at the end of the table: grouped by session they would touch twice as many
pages per append.

A session's row in `message_trees` is written when its tree takes a turn. While messages are only appended one behind
the other nothing of it is touched: the tip is then the last message of the run that the row's tip is in.

What a path adds up to (`path_tokens`, `path_bytes`) is what it was when the message was appended; what came of later
updates and deletions above it stands in the corrections.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    FromClause,
    Index,
    Integer,
    Join,
    Table,
    Text,
    UniqueConstraint,
    func,
    select,
)

from eventstore.dialect import BigKey
from eventstore.tables import metadata

messages = Table(
    "assistant_messages",
    metadata,
    Column("row_id", BigKey, primary_key=True, autoincrement=False),
    Column("stream_no", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("parent_id", Text),
    Column("role", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("run", BigInteger, nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    # 1 once ordinals behind it in its run were given to messages that are gone: its next child starts a run.
    Column("sealed", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("path_tokens", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("path_bytes", BigInteger, nullable=False),
    # The last one, so that what stands before it is read without it, however long it is.
    Column("content", Text, nullable=False),
    UniqueConstraint("stream_no", "id"),
    UniqueConstraint("stream_no", "run", "ordinal"),
)

runs = Table(
    "message_runs",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("run", BigInteger, primary_key=True),
    Column("parent_run", BigInteger, nullable=False),
    Column("fork_ordinal", BigInteger, nullable=False),
    Index("ix_message_runs_fork", "stream_no", "parent_run", "fork_ordinal"),
)

trees = Table(
    "message_trees",
    metadata,
    Column("stream_no", BigKey, primary_key=True, autoincrement=False),
    # The row of the tip when this row was written; 0 when there were no messages.
    Column("tip", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("leaves", BigInteger, nullable=False),
    # How many ids are spent.
    Column("spent", BigInteger, nullable=False),
    # 1 once the session was deleted: nothing is written to it again.
    Column("deleted", Integer, nullable=False),
    # That of the event that it was written for; later ones have appended to the tip's run.
    Column("position", BigInteger, nullable=False),
    Column("estimator", Text, nullable=False),
)

spent_ids = Table(
    "spent_message_ids",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("id", Text, primary_key=True),
)

_marked = messages.alias("marked")
_last, _behind = messages.alias("last"), messages.alias("behind")
_in_its_run = (_behind.c.stream_no == _marked.c.stream_no) & (_behind.c.run == _marked.c.run)
_is_last = (
    (_last.c.stream_no == _marked.c.stream_no)
    & (_last.c.run == _marked.c.run)
    & (_last.c.ordinal == select(func.max(_behind.c.ordinal)).where(_in_its_run).scalar_subquery())
    & (_last.c.row_id > trees.c.position)
)


def with_tips(origin: FromClause) -> Join:
    """Rows of trees, by themselves or behind others, with what their tip is now in the columns below.

    One join after the other: a join that stands on the right of another one is worked out for all trees.
    """
    return origin.outerjoin(_marked, _marked.c.row_id == trees.c.tip).outerjoin(_last, _is_last)


tip = func.coalesce(_last.c.row_id, trees.c.tip)
tip_run = func.coalesce(_last.c.run, _marked.c.run)
tip_ordinal = func.coalesce(_last.c.ordinal, _marked.c.ordinal)
message_count = trees.c.messages + func.coalesce(_last.c.ordinal - _marked.c.ordinal, 0)
# The last event that the tree shows, so that one that comes again changes nothing.
position = func.coalesce(_last.c.row_id, trees.c.position)

_next = messages.alias("next")
# Whether a message of the same run stands right behind a message.
continues = (
    select(1)
    .where(
        _next.c.stream_no == messages.c.stream_no,
        _next.c.run == messages.c.run,
        _next.c.ordinal == messages.c.ordinal + 1,
    )
    .exists()
)

# What an append has to know of the message that it hangs on.
place_columns = (
    messages.c.row_id,
    messages.c.run,
    messages.c.ordinal,
    messages.c.path_tokens,
    messages.c.path_bytes,
    messages.c.sealed,
    continues,
)
