from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions import Store, StoredSession
from tests.sessions.exporters.browser import Browser, chromium
from tests.sessions.exporters.exports import branching, exported
from tests.sessions.talk import said

pytestmark = pytest.mark.interop

SHOWN = "[...document.querySelectorAll('main > article')].filter(one => one.offsetHeight).map(one => one.dataset.id)"
PLACE = "document.activeElement.closest('nav')?.querySelector('span').textContent"
HOSTILE = "</script><script>window.hit = 1; alert(1)</script><img src=x onerror='window.hit = 2'>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser for all tests here."""
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


class Opener:
    """Opens exports in the browser; at the end nothing must have been asked for but the files themselves."""

    def __init__(self, browser: Browser, store: Store, folder: Path) -> None:
        self.browser = browser
        self._store = store
        self._folder = folder

    async def __call__(self, session_id: str, fragment: str = "", leaf_id: str | None = None) -> Browser:
        """Open a session's export."""
        file = self._folder / "export.html"
        file.write_text(await exported(self._store, session_id, "html", leaf_id), encoding="utf-8")
        # Another fragment of a page that is open would not load it again.
        self.browser.open("about:blank")
        self.browser.requests.clear()
        self.browser.complaints.clear()
        self.browser.open(file.as_uri() + fragment)
        return self.browser


@pytest.fixture
def opened(browser: Browser, store: Store, tmp_path: Path) -> Iterator[Opener]:
    """Return what opens exports, and see that no page complained or asked for anything."""
    yield Opener(browser, store, tmp_path)
    assert browser.run("document.title") is not None
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [
        (tmp_path / "export.html").as_uri(),
    ]


async def test_current_path_and_its_siblings(opened: Opener, store: Store) -> None:
    """A page opens with the current path, and each message with siblings says which of them it is."""
    await branching(store)
    page = await opened("walk")
    assert page.run(SHOWN) == ["u1", "a1", "u2", "a2"]
    assert page.run("[...document.querySelectorAll('nav span')].map(one => one.textContent)") == ["1/2", "1/2"]
    assert page.run("document.querySelector('noscript').offsetHeight") == 0


async def test_branches_are_switched_by_keys(opened: Opener, store: Store) -> None:
    """Branches are switched by keys alone: the focus stays where the switching is, and the ends have no way on."""
    await branching(store)
    page = await opened("walk")
    for _ in range(20):
        page.press("Tab")
        if page.run(PLACE) == "1/2" and page.run("document.activeElement.closest('article').dataset.id") == "u2":
            break
    page.press("Enter")
    assert page.run(SHOWN) == ["u1", "a1", "u3"]
    assert page.run(PLACE) == "2/2"
    assert page.run("document.activeElement.getAttribute('aria-label')") == "Previous branch"
    page.press("ArrowLeft")
    assert page.run(SHOWN) == ["u1", "a1", "u2", "a2"]
    page.press("ArrowLeft")
    assert page.run(SHOWN) == ["u1", "a1", "u2", "a2"]
    page.press(" ")
    assert page.run(SHOWN) == ["u1", "a1", "u3"]


async def test_switching_back_finds_the_branch_chosen_below(opened: Opener, store: Store) -> None:
    """Who goes to another root and back is on the branch that was chosen there, not on the newest."""
    await branching(store)
    page = await opened("walk")
    press = 'document.querySelector(\'[data-id="{}"] [aria-label="{}"]\').click()'
    page.run(press.format("u2", "Next branch"))
    page.run(press.format("u1", "Next branch"))
    assert page.run(SHOWN) == ["r2"]
    page.run(press.format("r2", "Previous branch"))
    assert page.run(SHOWN) == ["u1", "a1", "u3"]


async def test_address_names_a_message(opened: Opener, store: Store) -> None:
    """A fragment shows the branch of the message that it names, when the page opens and when it changes later."""
    await branching(store)
    page = await opened("walk", "#m5")
    assert page.run(SHOWN) == ["u1", "a1", "u3"]
    page.run("new Promise(done => { addEventListener('hashchange', done, { once: true }); location.hash = '#m6' })")
    assert page.run(SHOWN) == ["r2"]
    page.run("document.querySelector('[data-id=r2] [aria-label=\"Previous branch\"]').click()")
    assert page.run("location.hash") == "#m1"


async def test_leaf_within_the_tree_goes_on(opened: Opener, store: Store) -> None:
    """Below a current leaf that has messages below it a button leads on to them."""
    session = await branching(store)
    await session.select_leaf("a1")
    page = await opened("walk")
    assert page.run(SHOWN) == ["u1", "a1"]
    page.run("document.querySelector('main + p button').click()")
    assert page.run(SHOWN) == ["u1", "a1", "u3"]
    assert page.run("document.querySelector('main + p').hidden")


async def test_summaries_follow_their_messages(opened: Opener, store: Store) -> None:
    """A summary is shown on the branches that hold all it is of, and leads to its last message."""
    session = await branching(store)
    await session.add_compaction("Elsewhere.", "u3", "u3")
    texts = "[...document.querySelectorAll('aside')].filter(one => one.offsetHeight).map(one => one.innerText)"
    page = await opened("walk")
    (text,) = page.run(texts)
    assert text.startswith("Summary from #2 to #3")
    assert text.endswith("They met.")
    page = await opened("walk", "#m5")
    assert ["Elsewhere." in text for text in page.run(texts)] == [True]


async def test_scripts_of_a_message_do_not_run(opened: Opener, store: Store) -> None:
    """Whatever a message, a name or an id holds is shown as text and does nothing, on any branch."""
    session = StoredSession(store, HOSTILE)
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": HOSTILE},
        {"type": f"tool-{HOSTILE}", "output": HOSTILE},
        {"type": "file", "mediaType": "image/svg+xml", "url": "data:image/svg+xml,<svg onload='window.hit = 3'/>"},
        {"type": "source-url", "url": "javascript:window.hit = 4"},
    ]
    await session.append_message({"id": HOSTILE, "role": HOSTILE, "parts": parts})
    await session.append_message({"id": "other", "role": "user", "parts": parts}, None)
    page = await opened(HOSTILE)
    page.run("document.querySelector('[aria-label=\"Previous branch\"]').click()")
    assert page.run(SHOWN) == [HOSTILE]
    assert page.run("document.querySelector('article p').textContent") == HOSTILE
    page.run("[...document.querySelectorAll('details')].forEach(one => { one.open = true })")
    assert page.run("window.hit ?? null") is None


async def test_script_that_gets_in_is_not_let_run(browser: Browser, store: Store, tmp_path: Path) -> None:
    """Even a script that somebody writes into the file does not run: the policy knows only the page's own."""
    await StoredSession(store, "s").append_message(said("m"))
    file = tmp_path / "changed.html"
    text = await exported(store, "s", "html")
    file.write_text(text.replace("<main>", "<main><script>window.hit = 1</script>"), encoding="utf-8")
    browser.open(file.as_uri())
    assert browser.run("window.hit ?? null") is None
    assert browser.run(SHOWN) == ["m"]


async def test_current_path_without_scripts(opened: Opener, store: Store) -> None:
    """Where no script may run the current path is shown, and a note says that there is more."""
    await branching(store)
    opened.browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page = await opened("walk")
        assert page.run(SHOWN) == ["u1", "a1", "u2", "a2"]
        assert page.run("document.querySelector('nav')") is None
        assert "On other branches there are 2 more messages" in page.run("document.querySelector('footer').innerText")
    finally:
        opened.browser.call("Emulation.setScriptExecutionDisabled", value=False)


async def test_light_and_dark(opened: Opener, store: Store) -> None:
    """The page follows what a person prefers."""
    await branching(store)
    page = await opened("walk")
    colours = []
    for preferred in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": preferred}])
        colours.append(page.run("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(253, 253, 252)", "rgb(23, 25, 28)"]


async def test_many_messages(opened: Opener, store: Store) -> None:
    """A conversation of thousands of messages with hundreds of branches opens at its current path."""
    session = StoredSession(store, "long")
    await session.append_messages([said(f"m{at}", f"text {at} " * 50) for at in range(2_000)])
    for at in range(0, 2_000, 10):
        await session.append_message(said(f"b{at}"), f"m{at}")
    await session.select_leaf("m1999")
    page = await opened("long")
    assert page.run("document.querySelectorAll('main > article:not([hidden])').length") == 2_000
    assert page.run("document.querySelectorAll('nav').length") == 200
