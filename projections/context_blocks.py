"""What stands before a conversation: the content of its blocks, shared ones too, and the system prompt as frozen."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, Column, Table, Text, bindparam, delete, insert, select

from eventstore.dialect import BigKey
from eventstore.envelope import Envelope
from eventstore.events import ContextBlockRemoved, ContextBlockSet, PromptFrozen, SessionDeleted
from eventstore.ports import Tx
from eventstore.statements import Row, Statement
from eventstore.tables import metadata
from projections.base import Projection
from projections.versions import Versions

blocks = Table(
    "cf_agents_context_blocks",
    metadata,
    Column("stream_no", BigInteger, primary_key=True),
    Column("label", Text, primary_key=True),
    Column("updated_at", Text, nullable=False),
    Column("content", Text, nullable=False),
)
prompts = Table(
    "frozen_prompts",
    metadata,
    Column("stream_no", BigKey, primary_key=True, autoincrement=False),
    Column("frozen_at", Text, nullable=False),
    Column("prompt", Text, nullable=False),
)
versions = Versions("context_block_versions")

_of_stream = blocks.c.stream_no == bindparam("stream_no")
_one = (_of_stream, blocks.c.label == bindparam("the_label"))
_FIND = Statement(select(blocks.c.content).where(*_one), "stream_no", "the_label")
_LIST = Statement(select(blocks.c.label, blocks.c.content).where(_of_stream).order_by(blocks.c.label), "stream_no")
_INSERT = Statement(insert(blocks), "stream_no", "label", "updated_at", "content")
_DELETE = Statement(delete(blocks).where(*_one), "stream_no", "the_label")
_DELETE_ALL = Statement(delete(blocks).where(_of_stream), "stream_no")
_of_prompt = prompts.c.stream_no == bindparam("stream_no")
_FIND_PROMPT = Statement(select(prompts.c.prompt).where(_of_prompt), "stream_no")
_INSERT_PROMPT = Statement(insert(prompts), "stream_no", "frozen_at", "prompt")
_DELETE_PROMPT = Statement(delete(prompts).where(_of_prompt), "stream_no")


class ContextBlocks(Projection):
    """The blocks that a store keeps, and the prompt of each session that was frozen."""

    name = "context_blocks"
    handles = (ContextBlockSet, ContextBlockRemoved, PromptFrozen, SessionDeleted)
    tables = (blocks, prompts, versions.table)

    def apply(self, tx: Tx, envelopes: Sequence[Envelope]) -> None:
        """Write what each block and prompt is after these events, and nothing of what it was in between."""
        contents: dict[tuple[int, str], Row | None] = {}
        frozen: dict[int, Row | None] = {}
        for envelope in versions.news(tx, envelopes):
            event, stream_no = envelope.event, envelope.stream_no
            time = tx.dialect.time(envelope.recorded_at)
            if isinstance(event, ContextBlockSet):
                contents[stream_no, event.label] = (stream_no, event.label, time, event.content)
            elif isinstance(event, ContextBlockRemoved):
                contents[stream_no, event.label] = None
            elif isinstance(event, PromptFrozen):
                frozen[stream_no] = (stream_no, time, event.prompt)
            elif isinstance(event, SessionDeleted):
                tx.execute(_DELETE_ALL, (stream_no,))
                contents = {key: row for key, row in contents.items() if key[0] != stream_no}
                frozen[stream_no] = None
        tx.executemany(_DELETE, list(contents))
        tx.executemany(_INSERT, [row for row in contents.values() if row is not None])
        tx.executemany(_DELETE_PROMPT, [(stream_no,) for stream_no in frozen])
        tx.executemany(_INSERT_PROMPT, [row for row in frozen.values() if row is not None])


def find_block(tx: Tx, stream_no: int, label: str) -> str | None:
    """The content of a block; None for one that was never set."""
    rows = tx.fetch(_FIND, (stream_no, label))
    return str(rows[0][0]) if rows else None


def list_blocks(tx: Tx, stream_no: int) -> list[tuple[str, str]]:
    """Label and content of every block of a stream, by label."""
    return [(label, content) for label, content in tx.fetch(_LIST, (stream_no,))]


def find_prompt(tx: Tx, stream_no: int) -> str | None:
    """The prompt that a session's was frozen to; None when it was not."""
    rows = tx.fetch(_FIND_PROMPT, (stream_no,))
    return str(rows[0][0]) if rows else None
