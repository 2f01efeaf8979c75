"""A conversation as Markdown, for people."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from projections.message import COMPACTION_PREFIX
from sessions.exporters.source import Source
from sessions.exporters.tools import Part, is_bare_result, kind_of, to_call
from sessions.message import Message

_FENCE: Final = re.compile("`{3,}")
FENCE_LINE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_JOINER: Final = "\u200d"
"""Joins characters to one, as in many emoji; the other characters that do not show are no loss in one line."""
_INLINE_BYTES: Final = 64
"""An address of more characters that holds its own data is named, not printed."""


async def export(source: Source) -> AsyncGenerator[str, None]:
    """The path as it is read, with summaries in place of what they cover; times are in UTC."""
    session = source.session
    about = [f"`{label(session.id)}`", *([label(session.model)] if session.model else [])]
    about.append(f"{session.created_at.astimezone(dt.UTC):%Y-%m-%d %H:%M %z}")
    yield f"# {label(' '.join(session.name.split()))}\n\n{' · '.join(about)}\n"
    async for message in source.view():
        yield f"\n{to_markdown(message, zone=dt.UTC)}"


def to_markdown(message: Message, parts: Sequence[Part] | None = None, *, zone: dt.tzinfo | None = None) -> str:
    """A heading with role and time, then the parts in their order, or those that are given.

    The time is in the zone that is given, else in this machine's.
    """
    about = [label(message.role)]
    if message.id.startswith(COMPACTION_PREFIX):
        about.append("summary of what was said before")
    if message.created_at is not None:
        about.append(f"{message.created_at.astimezone(zone):%Y-%m-%d %H:%M %z}")
    if isinstance(message.metadata, dict) and message.metadata.get("hidden") is True:
        about.append("hidden")
    shown = message.parts if parts is None else parts
    return "\n\n".join([f"## {' · '.join(about)}", *parts_to_markdown(shown)]) + "\n"


def parts_to_markdown(parts: Sequence[Part]) -> list[str]:
    """The blocks of parts, in their order."""
    blocks = (block for part in parts for block in _RENDERERS.get(kind_of(part), _other)(part))
    return [block.rstrip() for block in blocks if block.strip()]


def label(text: str) -> str:
    """A name or the like in one line; line breaks, control characters and the like become U+FFFD."""
    return "".join(one if one.isprintable() or one == _JOINER else "\ufffd" for one in text)


def pretty(value: object) -> str:
    """A value as a person reads it: text as it is, else indented JSON."""
    return value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def file_name(part: Part) -> tuple[str, str]:
    """The name and the media type of a file, with words for what is missing."""
    return (
        label(str(part.get("filename") or "file")),
        label(str(part.get("mediaType") or part.get("mimeType") or "file")),
    )


def data_of(part: Part) -> Any:
    """What a part says beside its type: its data alone, if it has some."""
    rest = {key: value for key, value in part.items() if key != "type"}
    return rest.get("data", rest)


def _text(part: Part) -> Iterator[str]:
    yield _closed(_string(part.get("text")))


def _reasoning(part: Part) -> Iterator[str]:
    lines = _string(part.get("text")).split("\n")
    yield "\n".join(f"> {line}".rstrip() for line in ["*reasoning*", "", *lines])


def _tool(part: Part) -> Iterator[str]:
    call = to_call(part)
    name = f" `{label(call.name)}`" if call.name else ""
    yield f"**{'tool result' if is_bare_result(part) else 'tool'}**{name}"
    if "input" in call.given:
        yield _fenced(call.given["input"])
    for word, value in call.results():
        yield f"*{word}*"
        yield _fenced(value)


def _file(part: Part) -> Iterator[str]:
    url = _string(part.get("url"))
    name, about = file_name(part)
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
    if len(part) > 1:
        yield _fenced(data_of(part))


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
    text = pretty(value)
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{'' if isinstance(value, str) else 'json'}\n{text}\n{fence}"


def _closed(text: str) -> str:
    """The text with a fence that it leaves open closed, so that it does not take in what follows."""
    fence = ""
    for line in text.split("\n"):
        found = FENCE_LINE.fullmatch(line.rstrip("\r"))
        if found is None:
            continue
        marks, rest = found[1], found[2]
        if not fence:
            # Behind backticks, but not behind tildes, other backticks make it a code span.
            fence = marks if marks[0] == "~" or "`" not in rest else ""
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text
