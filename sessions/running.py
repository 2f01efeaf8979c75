"""What a session works with from its first use on: its storage, its blocks, its prompt, its skills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from eventstore.limits import Limits
from projections.tokens import estimate_string_tokens
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


class Running(msgspec.Struct, frozen=True):
    """A session in use."""

    storage: Storage
    blocks: SessionBlocks
    prompt: SystemPrompt
    skills: LoadedSkills
    limits: Limits


def start(
    origin: Any, session_id: str, configs: Sequence[ContextConfig], prompt_store: Any, *, keeps_prompt: bool
) -> Running:
    """A session in use; over a store its own stream keeps the blocks, and with `keeps_prompt` the prompt."""
    storage = _storage(origin, session_id)
    store = storage.store if isinstance(storage, StoredHistory) else None
    limits = store.limits if store else Limits()
    estimate = store.estimate_tokens if store else estimate_string_tokens
    # A block is named by session and label, as a pair.
    default: Callable[[str], Any] = _nothing
    if isinstance(origin, Store):
        default = partial(SessionBlock, origin, session_id)
        if keeps_prompt and prompt_store is None:
            prompt_store = StoredPrompt(origin, session_id)
    blocks = SessionBlocks(configs, default, estimate, limits)
    return Running(storage, blocks, SystemPrompt(blocks, prompt_store, limits), _skills(storage), limits)


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
