from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from projections.tokens import estimate_message_tokens
from replay import rebuild
from sessions import Store, StoredSession, open_store
from tests.sessions.talk import said

# Around powers of two, where whatever is kept for stretches of a path begins anew.
EDGES = sorted({near for power in (0, 5, 6, 7, 12) for near in range((1 << power) - 2, (1 << power) + 3) if near >= 0})
edges = st.one_of(st.sampled_from(EDGES), st.integers(0, 4_300))
changes = st.lists(
    st.tuples(st.sampled_from(["update", "update", "delete", "delete run", "branch"]), edges, st.integers(1, 70)),
    min_size=1,
    max_size=12,
)


class Chain:
    """A chain of messages, of which some are updated and deleted; branches end it early."""

    def __init__(self, length: int) -> None:
        self.messages: dict[str, dict[str, Any]] = {f"m{n}": said(f"m{n}", f"text {n}") for n in range(length)}
        self.branches: dict[str, str] = {}

    def path(self, leaf: str) -> list[dict[str, Any]]:
        """Return the messages up to one, which may be a branch."""
        names = [name for name in self.messages if not name.startswith("b")]
        end = names.index(self.branches.get(leaf, leaf)) + 1
        return [self.messages[name] for name in names[:end]] + ([self.messages[leaf]] if leaf in self.branches else [])


async def change(session: StoredSession, chain: Chain, change: tuple[str, int, int]) -> None:
    """Make one change in the store and beside it."""
    what, at, count = change
    names = [name for name in chain.messages if not name.startswith("b")]
    name = names[at % (len(names) - 1)]
    if what == "update":
        chain.messages[name] = said(name, "word " * count)
        await session.update_message(chain.messages[name])
    elif what == "branch":
        leaf = f"b{len(chain.branches)}"
        chain.branches[leaf], chain.messages[leaf] = name, said(leaf, "branch " * count)
        await session.append_message(chain.messages[leaf], name)
    else:
        start = names.index(name)
        gone = [one for one in names[start : start + (count if what == "delete run" else 1)] if one != names[-1]]
        gone = [one for one in gone if one not in chain.branches.values()]
        assert await session.delete_messages(gone) == len(gone)
        for one in gone:
            del chain.messages[one]


async def compare(session: StoredSession, chain: Chain) -> None:
    """Compare length, tokens and bytes of some paths with those of their messages."""
    names = [name for name in chain.messages if not name.startswith("b")]
    for leaf in {names[-1], *(names[at] for at in EDGES if at < len(names)), *chain.branches}:
        path = chain.path(leaf)
        assert await session.get_path_length(leaf) == len(path)
        assert await session.token_estimate(leaf) == estimate_message_tokens(path)
        recent = await session.get_recent_history(0, leaf_id=leaf)
        assert recent.total_content_bytes == sum(len(msgspec.json.encode(message)) for message in path)
        assert (await session.get_history(leaf, limit=1))[0].id == leaf


async def check(length: int, story: list[tuple[str, int, int]]) -> None:
    """Tell a story of changes, and compare along the way and after a rebuild."""
    store: Store
    async with open_store("sqlite://") as store:
        session, chain = StoredSession(store, "chat"), Chain(length)
        await session.append_messages(list(chain.messages.values()))
        for number, step in enumerate(story):
            await change(session, chain, step)
            if number == len(story) // 2:
                await compare(session, chain)
        await compare(session, chain)
        await rebuild(store)
        await compare(session, chain)


@settings(max_examples=25)
@given(length=st.sampled_from([66, 130, 200, 4_200]), story=changes)
def test_sums_of_long_paths_are_those_of_their_messages(length: int, story: list[tuple[str, int, int]]) -> None:
    """Whatever is changed inside long paths, their lengths, tokens and bytes are those of what is left."""
    asyncio.run(check(length, story))
