"""The session that agents talk to: a builder until its first use, then messages, blocks, the prompt and tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from eventstore.errors import DuplicateBlockError, InvalidArgumentError, NotSupportedError, SessionStartedError
from eventstore.limits import Limits, check_id, clean_text
from eventstore.ports import Publisher
from sessions.arguments import check_awaited, check_count, checked_function
from sessions.block_tools import block_tools
from sessions.compacting import Compacting, CompactionSettings, compacting
from sessions.compaction_function import CompactFunction, CompactResult, SessionCounter
from sessions.context import ContextBlock, ContextConfig
from sessions.conversation import Conversation, Storage
from sessions.foreign import checked_provider
from sessions.message import lookup_id
from sessions.providers import SessionProvider, is_writable_provider
from sessions.running import Running, start
from sessions.skills import Unloaded
from sessions.store import Store
from sessions.tools import Tool

T = TypeVar("T")


class Session(Conversation):
    """A conversation over a store or over a session provider.

    `Session.create(store).for_session("chat-1")` configures it; nothing touches storage before the first call that is
    awaited or iterated, and from then on builder methods raise SessionStartedError.
    """

    def __init__(
        self,
        provider: SessionProvider | Store,
        *,
        context: Iterable[ContextConfig] = (),
        prompt_store: Any = None,
        token_counter: Callable[..., Any] | None = None,
        on_compaction_error: Callable[[Exception], Any] | None = None,
    ) -> None:
        check_awaited(provider)
        self._origin = provider if isinstance(provider, Store) else checked_provider(provider)
        self._session_id: str = _clean_id(getattr(provider, "session_id", ""))
        self._configs: dict[str, ContextConfig] = {}
        self._prompt_store: Any = None
        self._keeps_prompt = False
        self._compaction = CompactionSettings(token_counter=token_counter, on_error=on_compaction_error)
        self._publisher: Any = None
        self._in_use: Running | None = None
        self._compacts: Compacting | None = None
        for config in context:
            self._configure(config)
        if prompt_store is not None:
            self.with_cached_prompt(prompt_store)

    @classmethod
    def create(cls, store_or_provider: Store | SessionProvider) -> Session:
        """A session to be configured; on a store its id is "" until `for_session` names it."""
        return cls(store_or_provider)

    def for_session(self, session_id: str) -> Session:
        """Name the session; over a provider the provider decides what is stored."""
        self._check_not_started("for_session")
        self._session_id = _clean_id(session_id)
        return self

    def with_context(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: Any = None,
        when_changed: str | None = None,
    ) -> Session:
        """Give the session a block of context, which without a provider the store keeps for this session alone.

        Over a session provider a block without one is empty and read-only. Raises DuplicateBlockError for a label in
        use.
        """
        self._check_not_started("with_context")
        about = {"description": description, "max_tokens": max_tokens}
        self._configure(ContextConfig(label, **about, provider=provider, when_changed=when_changed))  # type: ignore[arg-type]
        return self

    def with_cached_prompt(self, provider: Any = None) -> Session:
        """Keep the frozen prompt: in the store, or in a provider with `get` and `set`.

        Raises NotSupportedError over a session provider that does not keep it, unless a provider is given.
        """
        self._check_not_started("with_cached_prompt")
        if provider is None and not isinstance(self._origin, Store):
            raise NotSupportedError("with_cached_prompt() without a provider, over a session provider,")
        if provider is not None and not (callable(getattr(provider, "get", None)) and is_writable_provider(provider)):
            raise InvalidArgumentError("provider", "must have get() and set()")
        self._prompt_store, self._keeps_prompt = provider, True
        return self

    def on_compaction(self, function: CompactFunction) -> Session:
        """Compact by this function: `function(messages, context)`, plain or async, gives a CompactResult or None."""
        return self._compacting_with("on_compaction", function=checked_function(function, "function"))

    def compact_after(self, n: int, *, token_counter: SessionCounter | None = None) -> Session:
        """Compact after an append that makes the view, prompt included, come to more than `n` tokens.

        They are estimated, or counted by `token_counter`, plain or async, which is called with the keywords `messages`,
        `system_prompt` and `context_blocks`.
        """
        check_count(n, "n")
        counter = checked_function(token_counter or self._compaction.token_counter, "token_counter", or_none=True)
        return self._compacting_with("compact_after", threshold=n, token_counter=counter)

    def on_compaction_error(self, function: Callable[[Exception], Any]) -> Session:
        """Have this called, plain or async, with what went wrong when a compaction after an append failed."""
        return self._compacting_with("on_compaction_error", on_error=checked_function(function, "function"))

    def with_publisher(self, publisher: Publisher) -> Session:
        """Give a publisher the session's live status; without one it is the store's, if anybody follows it."""
        self._check_not_started("with_publisher")
        checked_function(getattr(publisher, "publish", None), "publisher.publish")
        self._publisher = publisher
        return self

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._session_id

    async def clear_messages(self) -> None:
        """Delete all messages and compactions; every message id is free again, no skill is loaded any more.

        The system prompt is rendered anew and frozen.
        """
        running = self._running
        prompt = await running.prompt.rendered()

        async def cleared() -> None:
            await running.storage.clear_messages()
            running.skills.clear()
            await running.prompt.keep(prompt)

        await self._write(cleared())

    async def compact(self, leaf_id: str | None = None) -> CompactResult | None:
        """Have the history up to a leaf (None: the latest) compacted by the session's function.

        None when there was nothing to compact, when the function named messages that are not in the history, or when
        they were edited, deleted or compacted meanwhile; then nothing was recorded. Else what was recorded, which
        reaches back over summaries that stood right before it, and the system prompt is rendered anew and frozen.

        Raises what the function raises, NotSupportedError without a function, MessageNotFoundError, and
        InvalidCompactionError for a blank summary or a reversed range.
        """
        return await self._after_writes.compact(leaf_id)

    async def get_context_block(self, label: str) -> ContextBlock | None:
        """The block with this label, None when there is none; loaded at first use, and again by a refresh."""
        bound = await self._running.blocks.find(lookup_id(label, "label"))
        return None if bound is None else bound.block()

    async def get_context_blocks(self) -> list[ContextBlock]:
        """All blocks, in the order in which they were given."""
        return [bound.block() for bound in await self._running.blocks.all()]

    async def replace_context_block(self, label: str, content: str) -> ContextBlock:
        """Replace the text of a block; the frozen prompt stays as it is.

        A block that is over its limit can be made smaller, also to what is still over it. Raises BlockNotFoundError,
        BlockReadOnlyError, BlockTooLargeError, LimitExceededError, and NotSupportedError for a block with keyed
        entries; then the block is as it was.
        """
        bound = await self._running.blocks.get(lookup_id(label, "label"))
        await bound.replace(content)
        return bound.block()

    async def append_context_block(self, label: str, content: str) -> ContextBlock:
        """Put a text behind that of a block, on a line of its own; in the store within one transaction.

        Raises what `replace_context_block` raises.
        """
        bound = await self._running.blocks.get(lookup_id(label, "label"))
        await bound.append(content)
        return bound.block()

    async def add_context(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: Any = None,
        when_changed: str | None = None,
    ) -> ContextBlock:
        """Give the session a further block while it is in use; it is in the prompt from the next refresh on."""
        about = {"description": description, "max_tokens": max_tokens}
        config = ContextConfig(label, **about, provider=provider, when_changed=when_changed)  # type: ignore[arg-type]
        return (await self._running.blocks.add(config)).block()

    async def remove_context(self, label: str) -> bool:
        """Take a block out of the session, and say whether there was one; what its provider holds stays there."""
        return self._running.blocks.remove(lookup_id(label, "label"))

    async def freeze_system_prompt(self) -> str:
        """The system prompt: rendered from the blocks once, and the same text from then on until it is refreshed."""
        return await self._running.prompt.freeze()

    async def refresh_system_prompt(self) -> str:
        """Load the blocks again, render the system prompt from them, and freeze it."""
        return await self._running.prompt.refresh()

    async def reminder(self) -> str | None:
        """The blocks with `when_changed="remind"` that are not as the frozen prompt has them; None for none."""
        return await self._running.prompt.reminder()

    async def load_skill(self, label: str, key: str) -> str | None:
        """The body of a skill, which counts as loaded from now on; None for an unknown key.

        Raises BlockNotFoundError, and NotSupportedError for a block that has no skills.
        """
        running = self._running
        name = check_id(key, "key", running.limits)
        bound = await running.blocks.get(lookup_id(label, "label"))
        body = await bound.load_entry(name)
        if body is not None:
            await running.skills.load((bound.label, name))
        return body

    async def unload_skill(self, label: str, key: str) -> bool:
        """Have every copy of a skill's body shown as a marker; says whether it was loaded. The log keeps the body."""
        return (await self._unload_skill(label, key)).was_loaded

    async def get_loaded_skill_keys(self) -> set[str]:
        """The skills that are loaded in this session's blocks, as `label:key`.

        A skill is loaded while a stored copy of its body was neither deleted nor unloaded, on whatever branch, or from
        when it was given out until a copy is stored.
        """
        running = self._running
        labels = {bound.label for bound in await running.blocks.all() if bound.can.skill}
        return {f"{label}:{key}" for label, key in await running.skills.all() if label in labels}

    async def tools(self) -> dict[str, Tool]:
        """The tools that a model may use on the blocks, by name, as the blocks are now."""
        return await block_tools(self._running.blocks, self, self._unload_skill)

    async def _unload_skill(self, label: str, key: str) -> Unloaded:
        running = self._running
        bound = await running.blocks.find(lookup_id(label, "label"))
        if bound is None or not bound.can.skill:
            return Unloaded(was_loaded=False)
        unloaded = await running.skills.unload((bound.label, lookup_id(key, "key")))
        if unloaded.copies:
            await self._wrote()
        return unloaded

    @property
    def _running(self) -> Running:
        if self._in_use is None:
            configs = list(self._configs.values())
            about = (self._origin, self._session_id, configs, self._prompt_store)
            self._in_use = start(*about, keeps_prompt=self._keeps_prompt)
        return self._in_use

    @property
    def _storage(self) -> Storage:
        return self._running.storage

    async def _write(self, written: Awaitable[T], *, appended: bool = False) -> T:
        result = await written
        await self._wrote(appended=appended)
        return result

    async def _wrote(self, *, appended: bool = False) -> None:
        """What follows a write that changed what is shown of the messages; `appended`: the history may be longer."""
        await self._after_writes.after_write(appended=appended)

    @property
    def _after_writes(self) -> Compacting:
        if self._compacts is None:
            about = (self._running, self._compaction, self._publisher)
            self._compacts = compacting(self._origin, self._session_id, *about)
        return self._compacts

    def _compacting_with(self, method: str, **settings: Any) -> Session:
        self._check_not_started(method)
        self._compaction = msgspec.structs.replace(self._compaction, **settings)
        return self

    def _configure(self, config: ContextConfig) -> None:
        limits = self._origin.limits if isinstance(self._origin, Store) else Limits()
        checked = config.checked(limits)
        if checked.label in self._configs:
            raise DuplicateBlockError(checked.label)
        self._configs[checked.label] = checked

    def _check_not_started(self, method: str) -> None:
        if self._in_use is not None:
            raise SessionStartedError(method)


def _clean_id(session_id: Any) -> Any:
    """An id as a store keeps it; what can be none is refused where it is first used."""
    return clean_text(str.__str__(session_id)) if isinstance(session_id, str) else session_id
