"""A session as one HTML file that needs nothing else: every branch is in it, and the current one is shown first."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncGenerator
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from projections.compactions import Compaction
from sessions.exporters.html_parts import attribute, clock, parts_to_html, text_to_html
from sessions.exporters.markdown import label
from sessions.exporters.source import Node, Source

_POLICY: Final = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src data:; base-uri 'none'; form-action 'none'"
)
"""Nothing is fetched, and no script runs but the one of the page, which is told by its hash."""
_ROLES: Final = frozenset({"user", "assistant", "system", "tool"})


class Page(msgspec.Struct, frozen=True):
    """What every file has: its style, its script, and the policy that lets these two in."""

    style: str
    script: str
    policy: str


async def export(source: Source) -> AsyncGenerator[str, None]:
    """The messages in log order, all of them as HTML; those that are not on the path to the current leaf are hidden.

    A path is a part of the log's order, so the script only has to show and to hide.
    """
    page = load_page()
    yield _head(source, page)
    starting = _by_start(source)
    number = off_path = 0
    async for node in source.nodes(marked=True):
        number += 1
        off_path += not node.on_path
        message_id = node.message.id
        # The parents of later messages have been here by then: a summary begins where its first message does.
        for compaction in starting.pop(message_id, ()):
            yield _summary(compaction, number, shown=compaction.id in source.shown)
        yield _article(node, number)
    yield _foot(page, off_path=off_path)


@cache
def load_page() -> Page:
    """The style and the script of a page, from the files beside this one."""
    folder = files("sessions.exporters")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return Page(style, script, _POLICY.format(script=_hash(script), style=_hash(style)))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _by_start(source: Source) -> dict[str, list[Compaction]]:
    found: dict[str, list[Compaction]] = {}
    for compaction in source.compactions:
        found.setdefault(compaction.from_message_id, []).append(compaction)
    return found


def _head(source: Source, page: Page) -> str:
    session = source.session
    name = attribute(label(" ".join(session.name.split())) or session.id)
    about = [f"<code>{attribute(label(session.id))}</code>"]
    if session.model:
        about.append(attribute(label(session.model)))
    about.append(clock(session.created_at))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{page.policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{name}</title>
<style>{page.style}</style>
</head>
<body>
<header>
<h1 dir="auto">{name}</h1>
<p>{" · ".join(about)}</p>
</header>
<main>
"""


def _article(node: Node, number: int) -> str:
    message = node.message
    role = label(message.role)
    kind = message.role if message.role in _ROLES else "other"
    parent = "" if node.parent_id is None else f' data-parent="{attribute(node.parent_id)}"'
    hidden = "" if node.on_path else " hidden"
    unseen = isinstance(message.metadata, dict) and message.metadata.get("hidden") is True
    tag = ' <span class="tag">hidden</span>' if unseen else ""
    return f"""<article id="m{number}" class="{kind}" data-id="{attribute(message.id)}"{parent}{hidden}>
<header><h2>{attribute(role)}</h2> <a href="#m{number}">#{number}</a> {clock(node.created_at)}{tag}</header>
{parts_to_html(message.parts)}
</article>
"""


def _summary(compaction: Compaction, number: int, *, shown: bool) -> str:
    ends = f'data-from="{attribute(compaction.from_message_id)}" data-to="{attribute(compaction.to_message_id)}"'
    stale = ' <span class="tag">something in it was edited since</span>' if compaction.stale else ""
    return f"""<aside {ends}{"" if shown else " hidden"}>
<details open><summary>Summary from #{number}<span> on</span> · {clock(compaction.created_at)}{stale}</summary>
{text_to_html(compaction.summary)}
</details>
</aside>
"""


def _foot(page: Page, *, off_path: int) -> str:
    more = "is one more message" if off_path == 1 else f"are {off_path:,} more messages"
    note = f"<noscript><p>On other branches there {more}: JavaScript shows them.</p></noscript>\n" if off_path else ""
    return f"""</main>
<footer>
{note}</footer>
<script>{page.script}</script>
</body>
</html>
"""
