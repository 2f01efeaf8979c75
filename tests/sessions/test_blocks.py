from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from eventstore import (
    BlockNotFoundError,
    BlockReadOnlyError,
    BlockTooLargeError,
    DuplicateBlockError,
    EventStoreError,
    InvalidArgumentError,
    LimitExceededError,
    Limits,
    NotSupportedError,
    SessionDeletedError,
    SessionStartedError,
)
from sessions import (
    ContextConfig,
    Session,
    SessionManager,
    StaticContext,
    Store,
    StoredContext,
    StoredSearch,
    StoredSession,
    open_store,
)
from tests.sessions.providers import Entries, Failing, Note


def with_memory(store: Store, session_id: str = "chat", **options: Any) -> Session:
    """Return a session with a block that the store keeps."""
    return Session.create(store).for_session(session_id).with_context("memory", **options)


async def content(session: Session, label: str = "memory") -> str:
    """Return what a block shows."""
    block = await session.get_context_block(label)
    assert block is not None
    return block.content


async def refuse_everywhere(session: Session, text: str, error: type[EventStoreError], told: str) -> None:
    """Check that no way to write lets a text into the block, and that it is as it was after each."""
    before = await content(session)
    tool = (await session.tools())["set_context"]
    for write in (session.replace_context_block, session.append_context_block):
        with pytest.raises(error):
            await write("memory", text)
        assert await content(session) == before
    for action in ("replace", "append"):
        answer = await tool.execute({"label": "memory", "content": text, "action": action})
        assert answer.startswith("Error: ")
        assert told in answer
        assert await content(session) == before


async def test_limit_of_tokens_holds_on_every_path(store: Store) -> None:
    """A text with too many tokens is refused with the numbers however it is written, and the block stays (CTX-1)."""
    session = with_memory(store, max_tokens=100)
    await session.replace_context_block("memory", "x" * 380)
    await refuse_everywhere(session, "x" * 480, BlockTooLargeError, "> 100")
    with pytest.raises(BlockTooLargeError) as refused:
        await session.append_context_block("memory", "x" * 40)
    assert (refused.value.label, refused.value.tokens, refused.value.max_tokens) == ("memory", 106, 100)
    assert len(await content(with_memory(store))) == 380


async def test_limit_of_bytes_holds_on_every_path(url: str) -> None:
    """A text that is larger than a block may be is refused however it is written, also by the providers themselves."""
    async with open_store(url, limits=Limits(block_bytes=100)) as store:
        session = with_memory(store)
        await session.replace_context_block("memory", "x" * 60)
        await refuse_everywhere(session, "é" * 60, LimitExceededError, "block_bytes=100")
        shared, entries = StoredContext(store, "key"), StoredSearch(store)
        entries.init("kb")
        for write in (shared.set, shared.append, lambda text: entries.set("key", text)):
            with pytest.raises(LimitExceededError):
                await write("é" * 60)
        await shared.set("x" * 60)
        with pytest.raises(LimitExceededError):
            await shared.append("x" * 60)
        assert await shared.get() == "x" * 60


async def test_block_over_a_lowered_limit(store: Store) -> None:
    """A block that is over its limit can be read, shows that it is, and takes whatever is within the limit (CTX-1)."""
    await with_memory(store).replace_context_block("memory", "x" * 1_200)
    session = with_memory(store, max_tokens=100)
    block = await session.get_context_block("memory")
    assert block is not None
    assert (block.tokens, block.max_tokens) == (300, 100)
    assert "MEMORY [300% — 300/100 tokens] [writable]" in await session.freeze_system_prompt()
    with pytest.raises(BlockTooLargeError):
        await session.append_context_block("memory", "x")
    assert (await session.replace_context_block("memory", "x" * 400)).tokens == 100


async def test_appends_of_two_stores_are_atomic(url: str) -> None:
    """Of lines that two stores append to one block at once none is lost, and the limit holds for what comes of it."""
    async with open_store(url, synchronous="normal") as one, open_store(url, synchronous="normal") as other:
        sessions = [with_memory(store, max_tokens=50) for store in (one, other)]
        lines = [
            session.append_context_block("memory", f"{n}-{m}") for m in range(25) for n, session in enumerate(sessions)
        ]
        done = await asyncio.gather(*lines, return_exceptions=True)
        written = (await content(with_memory(one))).split("\n")
        kept = [block for block in done if not isinstance(block, BaseException)]
        assert len(written) == len(set(written)) == len(kept) < 50
        assert all(isinstance(block, BlockTooLargeError) for block in done if isinstance(block, BaseException))


async def test_shared_context_is_appended_to_atomically(url: str) -> None:
    """Sessions of two stores that share a context lose nothing of what they append to it at once."""
    async with open_store(url, synchronous="normal") as one, open_store(url, synchronous="normal") as other:
        sessions = [
            Session.create(store).with_context("notes", provider=StoredContext(store, "shared"))
            for store in (one, other)
            for _ in range(2)
        ]
        await asyncio.gather(*(session.append_context_block("notes", f"{n}") for n, session in enumerate(sessions * 5)))
        assert sorted((await StoredContext(one, "shared").get() or "").split("\n")) == sorted(map(str, range(20)))


async def test_blocks_are_named_by_session_and_label(store: Store) -> None:
    """A block belongs to a session and a label, whatever the two come to when they are put together."""
    pairs = [("b_c", "a"), ("c", "a_b"), ("", "a_b_c"), ("a_b_c", ""), ("_system_prompt", "x"), ("x", "_system_prompt")]
    for session_id, label in pairs:
        session = Session.create(store).for_session(session_id).with_context(label).with_cached_prompt()
        await session.replace_context_block(label, f"{session_id}/{label}")
        await session.freeze_system_prompt()
    for session_id, label in pairs:
        session = Session.create(store).for_session(session_id).with_context(label)
        assert await content(session, label) == f"{session_id}/{label}"


async def test_same_content_is_no_event(store: Store) -> None:
    """Writing what a block holds already is no event, and what is appended begins on a line of its own."""
    session = with_memory(store)
    await session.append_context_block("memory", "one")
    await session.append_context_block("memory", "two")
    await session.append_context_block("memory", "\nthree")
    await session.replace_context_block("memory", "one\ntwo\nthree")
    await session.append_context_block("memory", "")
    assert [event.type async for event in session.events()] == ["context_block_set"] * 4
    assert await content(session) == "one\ntwo\nthree\n"


async def test_blocks_show_what_was_loaded_until_a_refresh(store: Store) -> None:
    """A block shows what it was loaded with until the prompt is refreshed, and what was written through the session."""
    session = with_memory(store)
    assert await content(session) == ""
    await with_memory(store).replace_context_block("memory", "written elsewhere")
    assert await content(session) == ""
    await session.append_context_block("memory", "and here")
    assert await content(session) == "written elsewhere\nand here"
    await with_memory(store).replace_context_block("memory", "again")
    await session.refresh_system_prompt()
    assert await content(session) == "again"


async def test_unknown_and_read_only_blocks(store: Store) -> None:
    """Reading an unknown block gives None, writing it or one that takes no content is refused with its label."""
    session = Session.create(store).with_context("soul", provider=StaticContext("calm"))
    session.with_context("kb", provider=Entries())
    assert await session.get_context_block("nope") is None
    assert not await session.remove_context("nope")
    for write in (session.replace_context_block, session.append_context_block):
        with pytest.raises(BlockNotFoundError) as unknown:
            await write("nope", "x")
        with pytest.raises(BlockReadOnlyError) as read_only:
            await write("soul", "x")
        with pytest.raises(NotSupportedError):
            await write("kb", "x")
        assert (unknown.value.label, read_only.value.label) == ("nope", "soul")
    assert await content(session, "soul") == "calm"


async def test_failing_write_leaves_the_block(store: Store) -> None:
    """What a provider raises comes out unchanged, and the block shows what it showed."""
    session = Session.create(store).with_context("memory", provider=Failing("set", "disk full", "old"))
    for write in (session.replace_context_block, session.append_context_block):
        with pytest.raises(RuntimeError, match="disk full"):
            await write("memory", "new")
    assert await content(session) == "old"


async def test_failing_read_loads_nothing(store: Store) -> None:
    """A provider that cannot be read fails the call that needs it, and the next call asks it again."""
    note = Failing("get", "away", "here")
    session = Session.create(store).with_context("memory", provider=note)
    with pytest.raises(RuntimeError, match="away"):
        await session.get_context_blocks()
    note.method = ""
    assert await content(session) == "here"


async def test_plain_and_async_providers(store: Store) -> None:
    """A provider is told its label once before its first use, and may be plain or async."""
    plain, slow = Note("plain"), Note("slow")
    slow.get = slow.slowly_get  # type: ignore[method-assign,assignment]
    session = Session.create(store).with_context("one", provider=plain).with_context("two", provider=slow)
    await session.refresh_system_prompt()
    await session.refresh_system_prompt()
    assert (plain.labels, slow.labels) == (["one"], ["two"])
    assert [block.content for block in await session.get_context_blocks()] == ["plain", "slow"]


async def test_removed_block_keeps_its_content(store: Store) -> None:
    """A block that is taken out of a session is back with its content when it is added again."""
    session = with_memory(store)
    await session.replace_context_block("memory", "kept")
    assert await session.remove_context("memory")
    assert await session.get_context_blocks() == []
    with pytest.raises(BlockNotFoundError):
        await session.replace_context_block("memory", "x")
    assert (await session.add_context("memory")).content == "kept"
    with pytest.raises(DuplicateBlockError):
        await session.add_context("memory")


CONFIGURED: list[tuple[Callable[[Session], object], type[EventStoreError]]] = [
    (lambda session: session.with_context("memory").with_context("memory"), DuplicateBlockError),
    (lambda session: session.with_context("a\0b"), InvalidArgumentError),
    (lambda session: session.with_context("x" * 513), LimitExceededError),
    (lambda session: session.with_context("memory", max_tokens=-1), InvalidArgumentError),
    (lambda session: session.with_context("memory", max_tokens=True), InvalidArgumentError),
    (lambda session: session.with_context("memory", provider=object()), InvalidArgumentError),
    (lambda session: session.with_context("memory", when_changed="often"), InvalidArgumentError),
    (lambda session: session.with_context("memory", description=1), InvalidArgumentError),  # type: ignore[arg-type]
    (lambda session: session.with_cached_prompt(StaticContext("x")), InvalidArgumentError),
]


@pytest.mark.parametrize(("configure", "error"), CONFIGURED)
async def test_wrong_configuration_is_refused_when_built(
    store: Store, configure: Callable[[Session], object], error: type[EventStoreError]
) -> None:
    """What cannot work is refused by the builder method, before anything is read or written (MEM-4)."""
    with pytest.raises(error):
        configure(Session.create(store))


async def test_builder_methods_after_the_first_use(store: Store) -> None:
    """A session that was used takes no builder method any more, and names the one that was called."""
    session = with_memory(store)
    await session.get_context_blocks()
    methods: dict[str, Callable[[], object]] = {
        "with_context": lambda: session.with_context("x"),
        "with_cached_prompt": session.with_cached_prompt,
        "for_session": lambda: session.for_session("x"),
    }
    for name, method in methods.items():
        with pytest.raises(SessionStartedError) as refused:
            method()
        assert refused.value.method == name


async def test_nothing_is_wired_over_a_provider(store: Store) -> None:
    """Over a session provider a block without a provider is empty and read-only, and a prompt needs one to be kept."""
    session = Session(StoredSession(store, "chat"), context=[ContextConfig("memory")])
    with pytest.raises(NotSupportedError):
        session.with_cached_prompt()
    with pytest.raises(BlockReadOnlyError):
        await session.replace_context_block("memory", "x")
    assert not (await session.add_context("notes")).writable
    assert await session.tools() == {}


async def test_deleted_session(store: Store) -> None:
    """Deleting a session takes its blocks and its prompt, and nothing is written to them afterwards."""
    manager = SessionManager(store).with_context("memory").with_cached_prompt()
    session = manager.get_session((await manager.create("gone")).id)
    await session.replace_context_block("memory", "private")
    await session.freeze_system_prompt()
    await manager.delete(session.session_id)
    again = manager.get_session(session.session_id)
    assert await content(again) == ""
    for write in (again.freeze_system_prompt, lambda: again.replace_context_block("memory", "x")):
        with pytest.raises(SessionDeletedError):
            await write()


async def test_fork_takes_blocks_and_prompt_along(store: Store) -> None:
    """A fork begins with the blocks and the very prompt of its source, and goes its own way from there (CTX-3)."""
    manager = SessionManager(store).with_context("memory", max_tokens=10).with_cached_prompt()
    session = manager.get_session("source")
    await session.append_message({"id": "m", "role": "user", "parts": []})
    await session.replace_context_block("memory", "as it was")
    prompt = await session.freeze_system_prompt()
    await session.replace_context_block("memory", "changed")
    fork = manager.get_session((await manager.fork("source", "m", "Fork")).id)
    await session.replace_context_block("memory", "later")
    assert await content(fork) == "changed"
    assert await fork.freeze_system_prompt() == prompt
    await fork.refresh_system_prompt()
    assert await session.freeze_system_prompt() == prompt


async def test_texts_come_in_as_everywhere(store: Store) -> None:
    """NUL is kept in a block's text, a lone surrogate is replaced, and what is no text is refused."""
    session = with_memory(store)
    await session.replace_context_block("memory", "a\0b\ud800c")
    assert await content(with_memory(store)) == "a\0b\ufffdc"
    with pytest.raises(InvalidArgumentError):
        await session.replace_context_block("memory", 1)  # type: ignore[arg-type]


async def test_removing_what_is_shared(store: Store) -> None:
    """A shared context and an entry of a search block can be removed, once."""
    shared, entries = StoredContext(store, "key"), StoredSearch(store)
    entries.init("kb")
    await shared.set("text")
    await entries.set("key", "text")
    assert [await shared.remove(), await shared.remove(), await shared.get()] == [True, False, None]
    assert [await entries.remove("key"), await entries.remove("key"), await entries.search("text")] == [
        True,
        False,
        None,
    ]


async def test_search_block_is_named_once(store: Store) -> None:
    """A search block without a label is of no use, and with one it keeps it."""
    entries = StoredSearch(store)
    with pytest.raises(InvalidArgumentError):
        await entries.get()
    entries.init("kb")
    entries.init("kb")
    with pytest.raises(InvalidArgumentError):
        entries.init("other")
