"""Which skills a session has loaded: told by the log of a session in a store, else remembered by the session object."""

from __future__ import annotations

from typing import Protocol

import msgspec

from eventstore.events import Event, SkillLoaded, SkillUnloaded
from eventstore.heads import Head
from eventstore.ports import Tx
from eventstore.rows import find_stream
from projections.skills import count_copies, is_given, loaded_skills
from sessions.appending import check_open
from sessions.store import Store

Skill = tuple[str, str]
"""The label of a block and a key in it."""


class Unloaded(msgspec.Struct, frozen=True):
    """What unloading a skill came to: whether it was loaded, and how many copies of its body are shown no more."""

    was_loaded: bool
    copies: int = 0


class LoadedSkills(Protocol):
    """Keeps track of the skills of one session."""

    async def all(self) -> set[Skill]:
        """The skills that are loaded."""

    async def load(self, skill: Skill) -> None:
        """A skill's body was given out."""

    async def unload(self, skill: Skill) -> Unloaded:
        """A skill is done with."""

    def clear(self) -> None:
        """All messages were cleared."""


class StoredSkills:
    """The skills of a session in a store."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    async def all(self) -> set[Skill]:
        """The skills that are loaded."""
        log = self._store.log
        return set(await log.read(lambda tx: loaded_skills(tx, find_stream(tx, self._session_id)[0])))

    async def load(self, skill: Skill) -> None:
        """Record that a skill's body was given out; it is loaded until it is unloaded, or its copies are deleted."""
        label, key = skill

        def decide(tx: Tx, head: Head) -> tuple[list[Event], None]:
            check_open(tx, head)
            return ([] if is_given(tx, head.stream_no, *skill) else [SkillLoaded(label=label, key=key)]), None

        await self._store.log.transact(self._session_id, decide)

    async def unload(self, skill: Skill) -> Unloaded:
        """Record that a skill is done with: every copy of its body shows a marker."""
        label, key = skill

        def decide(tx: Tx, head: Head) -> tuple[list[Event], Unloaded]:
            check_open(tx, head)
            copies = count_copies(tx, head.stream_no, *skill)
            if not copies and not is_given(tx, head.stream_no, *skill):
                return [], Unloaded(was_loaded=False)
            return [SkillUnloaded(label=label, key=key)], Unloaded(was_loaded=True, copies=copies)

        unloaded: Unloaded = (await self._store.log.transact(self._session_id, decide)).result
        return unloaded

    def clear(self) -> None:
        """Nothing: the log tells that the messages were cleared."""


class RememberedSkills:
    """The skills that one session object gave out, for a provider that cannot tell."""

    def __init__(self) -> None:
        self._loaded: set[Skill] = set()

    async def all(self) -> set[Skill]:
        """The skills that are loaded."""
        return set(self._loaded)

    async def load(self, skill: Skill) -> None:
        """Remember that a skill's body was given out."""
        self._loaded.add(skill)

    async def unload(self, skill: Skill) -> Unloaded:
        """Forget a skill."""
        was_loaded = skill in self._loaded
        self._loaded.discard(skill)
        return Unloaded(was_loaded)

    def clear(self) -> None:
        """Forget all skills, as when the messages are cleared."""
        self._loaded.clear()
