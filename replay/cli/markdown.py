"""A message as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from replay.cli.text import label
from sessions.message import Message

Part = dict[str, Any]

_FENCE: Final = re.compile("`{3,}")
_INLINE_BYTES: Final = 64
"""An address of more characters that holds its own data is named, not printed."""


def to_markdown(message: Message) -> str:
    """A heading with role and time, in this machine's zone, then the parts in their order."""
    about = [label(message.role)]
    if message.created_at is not None:
        about.append(f"{message.created_at.astimezone():%Y-%m-%d %H:%M %z}")
    if isinstance(message.metadata, dict) and message.metadata.get("hidden") is True:
        about.append("hidden")
    blocks = [f"## {' · '.join(about)}"]
    for part in message.parts:
        blocks += _RENDERERS.get(_kind(part), _other)(part)
    return "\n\n".join(block.rstrip() for block in blocks if block.strip()) + "\n"


def _kind(part: Part) -> str:
    kind = str(part["type"])
    return "tool" if kind == "dynamic-tool" or kind.startswith("tool-") else kind


def _text(part: Part) -> Iterator[str]:
    yield _string(part.get("text"))


def _reasoning(part: Part) -> Iterator[str]:
    lines = _string(part.get("text")).split("\n")
    yield "\n".join(f"> {line}".rstrip() for line in ["*reasoning*", "", *lines])


def _tool(part: Part) -> Iterator[str]:
    name = part.get("toolName") or str(part["type"]).removeprefix("tool-")
    yield f"**tool** `{label(str(name))}`"
    if "input" in part:
        yield _fenced(part["input"])
    for name in ("output", "result", "errorText"):
        if name in part:
            yield "*error*" if name == "errorText" else "*output*"
            yield _fenced(part[name])


def _file(part: Part) -> Iterator[str]:
    url = _string(part.get("url"))
    about = label(str(part.get("mediaType") or part.get("mimeType") or "file"))
    name = label(str(part.get("filename") or "file"))
    if url.startswith("data:") and len(url) > _INLINE_BYTES:
        yield f"*{name}* ({about}, {len(url):,} characters inline)"
    else:
        yield f"[{name}](<{url}>) ({about})"


def _source(part: Part) -> Iterator[str]:
    url = _string(part.get("url"))
    yield f"source: [{part.get('title') or url}](<{url}>)"


def _nothing(_part: Part) -> Iterator[str]:
    yield ""


def _other(part: Part) -> Iterator[str]:
    yield f"*{label(str(part['type']))}*"
    rest = {key: value for key, value in part.items() if key != "type"}
    if rest:
        yield _fenced(rest.get("data", rest))


_RENDERERS: Final[dict[str, Callable[[Part], Iterator[str]]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "file": _file,
    "source-url": _source,
    "step-start": _nothing,
}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _fenced(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{'' if isinstance(value, str) else 'json'}\n{text}\n{fence}"
