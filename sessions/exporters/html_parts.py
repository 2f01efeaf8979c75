"""The parts of a message as HTML, all of them escaped: nothing that was said can be more than text."""

from __future__ import annotations

import datetime as dt
import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from projections.message import wire_time
from sessions.exporters.markdown import FENCE_LINE, data_of, file_name, label, pretty
from sessions.exporters.tools import Part, is_bare_result, kind_of, to_call

_NO_TEXT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINK: Final = re.compile(r"https?://", re.IGNORECASE)
_IMAGE: Final = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)[;,]", re.IGNORECASE)
"""Images that the file itself holds, as kinds that can do nothing but be seen."""


def escape(text: str) -> str:
    """Text for HTML; characters that HTML cannot hold become U+FFFD."""
    return html.escape(_NO_TEXT.sub("\ufffd", text), quote=True)


def attribute(text: str) -> str:
    """Text for an attribute in quotes, in which a parser would not keep a carriage return."""
    return escape(text).replace("\r", "&#13;").replace("\n", "&#10;")


def clock(time: dt.datetime) -> str:
    """A time in UTC."""
    return f'<time datetime="{wire_time(time)}">{time.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC</time>'


def parts_to_html(parts: Sequence[Part]) -> str:
    """The blocks of parts, in their order."""
    return "\n".join(block for part in parts for block in _RENDERERS.get(kind_of(part), _other)(part))


def text_to_html(text: str) -> str:
    """What was said, line for line, with fenced blocks as code."""
    return "\n".join(_blocks(text))


def _blocks(text: str) -> Iterator[str]:
    lines: list[str] = []
    fence = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        found = FENCE_LINE.fullmatch(line)
        opens = not fence and found is not None and (found[1][0] == "~" or "`" not in found[2])
        closes = bool(fence) and found is not None and found[1].startswith(fence) and not found[2].strip()
        if not opens and not closes:
            lines.append(line)
            continue
        yield from _code(lines) if closes else _prose(lines)
        lines = []
        fence = found[1] if opens and found is not None else ""
    yield from _code(lines) if fence else _prose(lines)


def _prose(lines: list[str]) -> Iterator[str]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield f'<p dir="auto">{escape(text)}</p>'


def _code(lines: list[str]) -> Iterator[str]:
    yield _pre("\n".join(lines))


def _pre(text: str) -> str:
    # A line break right behind <pre> would be lost, one behind <code> is not; it can be scrolled, so by keys too.
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def _folded(kind: str, title: str, *content: str) -> str:
    inside = "\n".join(content)
    return f'<details class="{kind}"><summary>{title}</summary>\n{inside}\n</details>'


def _text(part: Part) -> Iterator[str]:
    yield text_to_html(_string(part.get("text")))


def _reasoning(part: Part) -> Iterator[str]:
    # Of hidden reasoning a source may have no more than that it was there.
    if text := text_to_html(_string(part.get("text"))):
        yield _folded("reasoning", "reasoning", text)


def _tool(part: Part) -> Iterator[str]:
    call = to_call(part)
    blocks = [_pre(pretty(call.given["input"]))] if "input" in call.given else []
    for word, value in call.results():
        blocks += [f"<h3>{word}</h3>", _pre(pretty(value))]
    name = f" <code>{escape(label(call.name))}</code>" if call.name else ""
    yield _folded("tool", f"{'tool result' if is_bare_result(part) else 'tool'}{name}", *blocks)


def _file(part: Part) -> Iterator[str]:
    url = _string(part.get("url"))
    name, about = (escape(one) for one in file_name(part))
    if _IMAGE.match(url):
        yield f'<img src="{attribute(url)}" alt="{name}">'
    elif url.startswith("data:"):
        yield f'<p class="file">{name} ({about}, {len(url):,} characters)</p>'
    else:
        yield f'<p class="file">{_link(url, name)} ({about})</p>'


def _source(part: Part) -> Iterator[str]:
    url = _string(part.get("url"))
    title = part.get("title")
    yield f'<p class="file">source: {_link(url, escape(title if isinstance(title, str) and title else url))}</p>'


def _link(url: str, name: str) -> str:
    """A link to the web; any other address is text, since it could do something."""
    if _LINK.match(url):
        return f'<a href="{attribute(url)}" rel="noopener noreferrer">{name}</a>'
    return f"{name} <code>{escape(url)}</code>" if url and escape(url) != name else name


def _nothing(_part: Part) -> Iterator[str]:
    yield from ()


def _other(part: Part) -> Iterator[str]:
    kind = escape(label(str(part["type"])))
    yield _folded("data", kind, *([_pre(pretty(data_of(part)))] if len(part) > 1 else []))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


_RENDERERS: Final[dict[str, Callable[[Part], Iterator[str]]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "file": _file,
    "source-url": _source,
    "step-start": _nothing,
}
