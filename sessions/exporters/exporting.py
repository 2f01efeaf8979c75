"""The export itself: a session in one of the formats, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import MappingProxyType
from typing import Final

from eventstore.errors import InvalidArgumentError
from sessions.exporters import ai_sdk, html, json_tree, markdown, ndjson, openai
from sessions.exporters.source import Source, open_source
from sessions.store import Store

Export = Callable[[Source], AsyncGenerator[str, None]]

FORMATS: Final = MappingProxyType[str, Export](
    {
        "md": markdown.export,
        "html": html.export,
        "json": json_tree.export,
        "ndjson": ndjson.export,
        "ai-sdk": ai_sdk.export,
        "openai": openai.export,
    }
)
"""What writes each format, by the format's name."""


async def export_session(
    store: Store,
    session_id: str,
    *,
    format: str,  # noqa: A002 - the name that the command line and the importers use too
    leaf_id: str | None = None,
) -> AsyncGenerator[str, None]:
    """The text of a session in a format, piece by piece, in bounded memory.

    `json`, `ndjson` and `html` hold the whole tree, or the path to `leaf_id` when one is given; `md`, `ai-sdk` and
    `openai` hold one path, to the latest leaf unless another is named. Raises InvalidArgumentError for an unknown
    format, SessionNotFoundError, and MessageNotFoundError for an unknown leaf, at the first piece.
    """
    export = next((known for name, known in FORMATS.items() if name == format), None)
    if export is None:
        raise InvalidArgumentError("format", f"must be one of {', '.join(FORMATS)}, not {format!r}")
    source = await open_source(store, session_id, leaf_id)
    async with aclosing(export(source)) as pieces:
        async for piece in pieces:
            yield piece
