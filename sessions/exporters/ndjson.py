"""NDJSON: a message on each line, with its parent."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from projections.message import wire_time
from sessions.exporters.source import Node, Source


async def export(source: Source) -> AsyncGenerator[str, None]:
    """The messages in log order, one a line."""
    async for node in source.nodes():
        yield to_line(node) + "\n"


def to_line(node: Node) -> str:
    """A message in one line: its parent's id, its time, and the message as it is stored, to the letter."""
    about = {"parent_id": node.parent_id, "created_at": wire_time(node.created_at), "message": msgspec.Raw(node.json)}
    return msgspec.json.encode(about).decode()
