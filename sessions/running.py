"""What a session works with from its first use on: its storage, its blocks, its prompt, its skills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from eventstore.errors import NotSupportedError
from eventstore.limits import Limits
from projections.tokens import estimate_string_tokens
from sessions.arguments import checked_session_id
from sessions.blocks import SessionBlocks
from sessions.context import ContextConfig
from sessions.conversation import Storage
from sessions.foreign import ForeignSession
from sessions.prompt import SystemPrompt
from sessions.reading import StoredHistory
from sessions.skills import LoadedSkills, RememberedSkills, StoredSkills
from sessions.store import Store
from sessions.stored import StoredSession
from sessions.stored_context import SessionBlock, StoredPrompt


class Wiring(Protocol):
    """Where a session's blocks, prompt and skills are kept when it is not given providers.

    A session provider has one as its attribute `wiring`, if it keeps them.
    """

    def block(self, label: str) -> Any:
        """The provider of a block."""

    def prompt(self) -> Any:
        """The provider of the frozen prompt."""

    def skills(self) -> LoadedSkills:
        """What keeps track of loaded skills."""


class StoreWiring:
    """A store keeps the blocks, the prompt and the skills of a session in the session's own stream."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    def block(self, label: str) -> SessionBlock:
        """The provider of a block: named by session and label, as a pair."""
        return SessionBlock(self._store, self._session_id, label)

    def prompt(self) -> StoredPrompt:
        """The provider of the frozen prompt."""
        return StoredPrompt(self._store, self._session_id)

    def skills(self) -> StoredSkills:
        """The skills as the log has them."""
        return StoredSkills(self._store, self._session_id)


class Running(msgspec.Struct, frozen=True):
    """A session in use."""

    storage: Storage
    blocks: SessionBlocks
    prompt: SystemPrompt
    skills: LoadedSkills
    limits: Limits


def wiring_of(origin: Any, session_id: str) -> Wiring | None:
    """Where a session over a store or a session provider keeps what it was given no providers for."""
    if isinstance(origin, Store):
        return StoreWiring(origin, checked_session_id(session_id, origin))
    wiring: Wiring | None = getattr(origin, "wiring", None)
    return wiring


def start(
    origin: Any, session_id: str, configs: Sequence[ContextConfig], prompt_store: Any, *, keeps_prompt: bool
) -> Running:
    """A session in use; with `keeps_prompt` the wiring keeps the prompt unless it has a store."""
    wiring = wiring_of(origin, session_id)
    storage = _storage(origin, session_id)
    store = storage.store if isinstance(storage, StoredHistory) else None
    limits = store.limits if store else Limits()
    estimate = store.estimate_tokens if store else estimate_string_tokens
    if keeps_prompt and prompt_store is None:
        if wiring is None:
            raise NotSupportedError("with_cached_prompt() without a provider, over a session provider,")
        prompt_store = wiring.prompt()
    blocks = SessionBlocks(configs, wiring.block if wiring else _nothing, estimate, limits)
    skills = wiring.skills() if wiring else _skills(storage)
    return Running(storage, blocks, SystemPrompt(blocks, prompt_store, limits), skills, limits)


def _storage(origin: Any, session_id: str) -> Storage:
    if isinstance(origin, Store):
        return StoredSession(origin, session_id)
    return origin if isinstance(origin, StoredSession) else ForeignSession(origin)


def _skills(storage: Storage) -> LoadedSkills:
    if isinstance(storage, StoredSession):
        return StoredSkills(storage.store, storage.session_id)
    return RememberedSkills()


def _nothing(_label: str) -> None:
    """No provider: the block is empty and cannot be written."""
