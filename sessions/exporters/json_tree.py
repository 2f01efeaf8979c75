"""JSON of a whole session, to be imported again: the messages of every branch, the current leaf, the compactions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from projections.compactions import Compaction
from projections.message import wire_time
from sessions.exporters.ndjson import to_line
from sessions.exporters.source import Source

FORMAT: Final = "session-eventstore/tree"
"""What a file of this format says that it is."""
VERSION: Final = 1
"""The version of the format: another one cannot be read by whoever reads this one."""


async def export(source: Source) -> AsyncGenerator[str, None]:
    """One object: the session, its messages in log order, one a line, and what holds of them."""
    yield f'{{"format":{_json(FORMAT)},"version":{VERSION},\n"session":{_json(_session(source))},\n"messages":['
    between = "\n"
    async for node in source.nodes():
        yield between + to_line(node)
        between = ",\n"
    ending = source.ending
    yield f'\n],\n"current_leaf":{_json(ending.leaf_id)},\n"compactions":['
    between = "\n"
    for compaction in ending.compactions:
        yield between + _json(_compaction(compaction))
        between = ",\n"
    yield "\n]}\n"


def _session(source: Source) -> dict[str, Any]:
    session = source.session
    return {
        **msgspec.structs.asdict(session),
        "created_at": wire_time(session.created_at),
        "updated_at": wire_time(session.updated_at),
        "metadata": source.metadata,
    }


def _compaction(compaction: Compaction) -> dict[str, Any]:
    return {**msgspec.structs.asdict(compaction), "created_at": wire_time(compaction.created_at)}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
