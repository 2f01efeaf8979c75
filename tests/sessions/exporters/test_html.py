from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions import Session, Store, StoredSession, open_store
from sessions.exporters.html_parts import parts_to_html
from tests.sessions.exporters.exports import branching, exported, grow
from tests.sessions.talk import said

numbers = st.integers(0, 20)

HOSTILE = "</script></article><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;<!--"


class Page(HTMLParser):
    """What a browser would find in a page: its tags with their attributes, and what is shown of each article."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.articles: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag == "article":
            self.articles.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.texts.append(data)

    def shown(self) -> list[str | None]:
        """Return the ids of the messages that are shown without a script."""
        return [article["data-id"] for article in self.articles if "hidden" not in article]


async def test_current_path_is_shown_first(store: Store) -> None:
    """The messages of every branch are in the file in log order, and those off the current path are hidden."""
    await branching(store)
    page = Page(await exported(store, "walk", "html"))
    parents = [(article["data-id"], article.get("data-parent")) for article in page.articles]
    assert parents == [("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("u3", "a1"), ("r2", None)]
    assert page.shown() == ["u1", "a1", "u2", "a2"]


async def test_current_path_through_runs_and_holes(store: Store) -> None:
    """What is shown is the history, wherever the path branches and whatever was deleted from it."""
    session = Session.create(store).for_session("s")
    await session.append_messages([said(f"m{at}") for at in range(6)])
    await session.append_message(said("n1"), "m3")
    await session.append_messages([said("n2"), said("n3")])
    await session.append_message(said("o1"), "n2")
    await session.delete_messages(["m2", "n1"])
    page = Page(await exported(store, "s", "html"))
    assert page.shown() == [message.id for message in await session.get_history()]


@given(parents=st.lists(numbers, max_size=14), leaf=numbers, gone=numbers)
def test_any_current_path_is_shown(parents: list[int], leaf: int, gone: int) -> None:
    """In whatever tree, the messages of the current path are shown in their order, and all others are there."""

    async def check() -> None:
        async with open_store("sqlite://") as store:
            body = {"role": "user", "parts": []}
            session = await grow(store, "s", [(parent, body) for parent in parents], leaf, [], gone)
            page = Page(await exported(store, "s", "html"))
            assert page.shown() == [message.id for message in await session.get_history()]
            tree = [(node.message.id, node.parent_id) async for node in session.tree()]
            assert [(found["data-id"], found.get("data-parent")) for found in page.articles] == tree

    asyncio.run(check())


async def test_nothing_is_fetched_and_nothing_else_runs(store: Store) -> None:
    """The policy lets in the page's one script and one style, by their hashes, and nothing in the file is elsewhere."""
    session = await branching(store)
    await session.append_message(said("h", HOSTILE), "a2")
    text = await exported(store, "walk", "html")
    page = Page(text)
    (policy,) = (found["content"] for _, found in page.tags if found.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for _, found in page.tags:
        assert not {name for name in found if name.startswith("on") or name == "style"}
        assert not (found.get("src") or "data:").partition("data:")[0]
    assert [found.get("href") for tag, found in page.tags if tag == "link"] == ["data:,"]


def test_result_on_its_own() -> None:
    """A result that stands apart from its call is called one, of the tool that it names; it is no tool "result"."""
    bare = {"type": "tool-result", "toolCallId": "c", "result": "y"}
    assert "<summary>tool result</summary>" in parts_to_html([bare])
    assert "<summary>tool result <code>find</code></summary>" in parts_to_html([bare | {"toolName": "find"}])
    assert "<summary>tool <code>result</code></summary>" in parts_to_html([bare | {"input": {}}])


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": HOSTILE},
        {"type": "text", "text": f"```{HOSTILE}\n{HOSTILE}\n```"},
        {"type": "reasoning", "text": HOSTILE},
        {"type": f"tool-{HOSTILE}", "input": {HOSTILE: HOSTILE}, "output": HOSTILE},
        {"type": "dynamic-tool", "toolName": HOSTILE, "errorText": HOSTILE},
        {"type": "file", "mediaType": HOSTILE, "filename": HOSTILE, "url": HOSTILE},
        {"type": "file", "mediaType": "image/png", "filename": HOSTILE, "url": f"data:image/png,{HOSTILE}"},
        {"type": "file", "mediaType": "image/png", "filename": HOSTILE, "url": f"https://example.org/{HOSTILE}"},
        {"type": "file", "mediaType": "text/html", "url": f"data:text/html,{HOSTILE}"},
        {"type": "source-url", "title": HOSTILE, "url": f"javascript:{HOSTILE}"},
        {"type": HOSTILE, "data": HOSTILE},
    ],
    ids=lambda part: part["type"][:12] if isinstance(part, dict) else None,
)
def test_whatever_is_said_is_text(part: dict[str, Any]) -> None:
    """No text of a part becomes a tag or an address that does something."""
    page = Page(parts_to_html([part]))
    assert {tag for tag, _ in page.tags} <= {"p", "pre", "code", "details", "summary", "h3", "a", "img"}
    for _, found in page.tags:
        assert (found.get("href") or "https://").startswith("https://")
        assert (found.get("src") or "data:image/").startswith("data:image/")
        assert {*found} <= {"href", "src", "alt", "class", "rel", "dir", "tabindex"}


async def test_names_and_ids_are_escaped(store: Store) -> None:
    """Ids, roles and summaries are text too, and an id reads back from the page as it is."""
    session = StoredSession(store, "s" + HOSTILE)
    hostile = HOSTILE + "\r\n\t"
    await session.append_message({"id": hostile, "role": HOSTILE, "parts": []})
    await session.append_message(said("child"))
    await session.add_compaction(HOSTILE, hostile, hostile)
    page = Page(await exported(store, session.session_id, "html"))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert [article["data-id"] for article in page.articles] == [hostile, "child"]
    assert page.articles[1]["data-parent"] == hostile
    (summary,) = (found for tag, found in page.tags if tag == "aside")
    assert (summary["data-from"], summary["data-to"]) == (hostile, hostile)


async def test_summaries_of_shown_messages_are_shown(store: Store) -> None:
    """A summary stands before the messages it is of, and is shown when they are."""
    session = await branching(store)
    await session.add_compaction("Elsewhere.", "u3", "u3")
    page = Page(await exported(store, "walk", "html"))
    places = [found for tag, found in page.tags if tag in {"article", "aside"}]
    assert [(at, found["data-to"], "hidden" in found) for at, found in enumerate(places) if "data-to" in found] == [
        (1, "u2", False),
        (5, "u3", True),
    ]


async def test_one_path_has_its_own_summaries_alone(store: Store) -> None:
    """In the file of one path there is no summary of what lies elsewhere."""
    session = await branching(store)
    await session.add_compaction("Elsewhere.", "u1", "u3")
    assert "Elsewhere." not in await exported(store, "walk", "html", "a2")
    assert "Elsewhere." in await exported(store, "walk", "html", "u3")


def test_text_keeps_its_lines_and_code() -> None:
    """Text is shown line for line, and fenced code as code, whether or not its fence is closed."""
    text = "one\n  two\n\n````py\nif a:\n```\n\n````\nthree\n~~~\n<b>"
    assert parts_to_html([{"type": "text", "text": text}]) == (
        '<p dir="auto">one\n  two</p>\n<pre tabindex="0"><code>if a:\n```\n</code></pre>\n'
        '<p dir="auto">three</p>\n<pre tabindex="0"><code>&lt;b&gt;</code></pre>'
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:image/png;base64,AA"},
            '<img src="data:image/png;base64,AA" alt="a.png">',
        ),
        (
            {"type": "file", "mediaType": "text/html", "url": "data:text/html,x"},
            '<p class="file">file (text/html, 16 characters)</p>',
        ),
        (
            {"type": "source-url", "title": "T", "url": "https://example.org"},
            '<p class="file">source: <a href="https://example.org" rel="noopener noreferrer">T</a></p>',
        ),
        (
            {"type": "source-url", "url": "javascript:alert(1)"},
            '<p class="file">source: javascript:alert(1)</p>',
        ),
        ({"type": "step-start"}, ""),
        ({"type": "reasoning", "text": ""}, ""),
        ({"type": "marker"}, '<details class="data"><summary>marker</summary>\n\n</details>'),
    ],
)
def test_part_as_html(part: dict[str, Any], expected: str) -> None:
    """Images that the message holds are shown, web addresses are links, and other addresses are text."""
    assert parts_to_html([part]) == expected
