"""The messages of one path as OpenAI's chat completions take them: calls of tools and their results are messages."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, Final

import msgspec

from sessions.exporters.pairing import paired
from sessions.exporters.source import Source
from sessions.exporters.tools import Part, ToolCall, kind_of, text_of, to_call

NO_RESULT: Final = "(no result)"
"""What stands for the result of a call that has none: without an answer the call would be refused."""
_SOUNDS: Final = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}

Chat = dict[str, Any]


async def export(source: Source) -> AsyncGenerator[str, None]:
    """A JSON array of the messages themselves, one a line; summaries do not stand for any."""
    yield "["
    between = "\n"
    unnamed = (f"call_{number}" for number in itertools.count(1))
    async for message in paired(source):
        for chat in to_chat(message["role"], message["parts"], unnamed):
            yield between + msgspec.json.encode(chat).decode()
            between = ",\n"
    yield "\n]\n"


def to_chat(role: str, parts: Sequence[Part], unnamed: Iterator[str]) -> Iterator[Chat]:
    """The chat messages that a message becomes; `unnamed` gives ids for calls without one of their own.

    What stands behind a call and its result begins a new message. Reasoning, sources and data have no place.
    """
    if role == "assistant":
        yield from _assistant(parts, unnamed)
        return
    role = "system" if role in {"system", "developer"} else "user"
    pieces = [piece for part in parts for piece in _piece(part, only_text=role == "system")]
    # A call that no assistant made is still one that was made.
    calls = [part for part in parts if kind_of(part) == "tool"]
    if pieces or not calls:
        yield {"role": role, "content": _content(pieces)}
    if calls:
        yield from _assistant(calls, unnamed)


def _assistant(parts: Sequence[Part], unnamed: Iterator[str]) -> Iterator[Chat]:
    pieces: list[Chat] = []
    calls: dict[str, ToolCall] = {}
    told = False
    for part in parts:
        if kind_of(part) == "tool":
            call = to_call(part)
            # Its result is told by its id alone, so that no other call of the message may have it.
            ids = itertools.chain([call.id] if call.id else [], unnamed)
            calls[next(one for one in ids if one not in calls)] = call
            continue
        piece = list(_piece(part, only_text=True))
        if calls and (piece or part["type"] == "step-start"):
            yield from _turn(pieces, calls)
            pieces, calls, told = [], {}, True
        pieces += piece
    if pieces or calls or not told:
        yield from _turn(pieces, calls)


def _turn(pieces: list[Chat], calls: dict[str, ToolCall]) -> Iterator[Chat]:
    if not calls:
        yield {"role": "assistant", "content": _content(pieces)}
        return
    made = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": text_of(call.given.get("input", {}))},
        }
        for call_id, call in calls.items()
    ]
    yield {"role": "assistant", "content": _content(pieces) if pieces else None, "tool_calls": made}
    for call_id, call in calls.items():
        answer = call.answer
        content = NO_RESULT if answer is msgspec.UNSET else text_of(answer)
        yield {"role": "tool", "tool_call_id": call_id, "content": content}


def _content(pieces: list[Chat]) -> str | list[Chat]:
    """The texts as one, unless a file stands among them."""
    if all(piece["type"] == "text" for piece in pieces):
        return "\n".join(piece["text"] for piece in pieces)
    return pieces


def _piece(part: Part, *, only_text: bool) -> Iterator[Chat]:
    if part["type"] == "text" and isinstance(part.get("text"), str):
        yield {"type": "text", "text": part["text"]}
    elif part["type"] == "file":
        yield _file(part, only_text=only_text)


def _file(part: Part, *, only_text: bool) -> Chat:
    url = str(part.get("url") or "")
    media_type = str(part.get("mediaType") or part.get("mimeType") or "")
    name = str(part.get("filename") or media_type or "file")
    inline = url.startswith("data:")
    if not only_text and media_type.startswith("image/") and (inline or url.startswith(("http://", "https://"))):
        return {"type": "image_url", "image_url": {"url": url}}
    data = url.partition(";base64,")[2] if inline else ""
    if not only_text and media_type in _SOUNDS and data:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _SOUNDS[media_type]}}
    if not only_text and inline:
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    return {"type": "text", "text": f"[{name}]" if inline or not url else f"[{name}]({url})"}
