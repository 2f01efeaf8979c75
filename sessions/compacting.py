"""What follows a write: the status of the session is told, and a history that has become too long is compacted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import msgspec

from eventstore.errors import InvalidArgumentError, NotSupportedError
from eventstore.limits import Limits
from projections.tokens import estimate_message_tokens
from sessions.arguments import checked_summary
from sessions.compaction_function import CompactFunction, CompactionContext, CompactResult
from sessions.compaction_sources import source_of
from sessions.compaction_state import CompactionState, Mark
from sessions.compaction_view import CompactionView, Stretch
from sessions.estimating import ViewEstimate
from sessions.providers import settle
from sessions.running import Running
from sessions.status import LiveStatus
from sessions.store import Store
from sessions.stored import StoredSession

logger = logging.getLogger(__name__)

# The compactions that the code which asks is run by, so that none waits for itself.
_within: ContextVar[tuple[CompactionState, ...]] = ContextVar("compactions", default=())


class CompactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a session compacts, as its builder methods say."""

    function: CompactFunction | None = None
    threshold: int | None = None
    token_counter: Callable[..., Any] | None = None
    on_error: Callable[[Any], Any] | None = None


class Compacting:
    """Tells the status of one session and compacts its history, when it is asked to or after an append."""

    def __init__(
        self,
        session_id: str,
        running: Running,
        settings: CompactionSettings,
        status: LiveStatus,
        state: CompactionState,
    ) -> None:
        self._session_id = session_id
        self._running = running
        self._settings = settings
        self._status = status
        self._state = state
        self._estimate = ViewEstimate(running, settings.token_counter)
        self._source = source_of(running.storage)

    async def after_write(self, *, appended: bool) -> None:
        """Tell how things stand after a write, and compact when an append made it too much; nothing here is raised."""
        threshold = self._settings.threshold
        may_compact = appended and self._settings.function is not None and threshold is not None
        if not appended:
            self._state.mark = None
        if not may_compact and not self._status.is_listened():
            return
        try:
            tokens = await self._estimate.tokens()
        except (Exception, asyncio.CancelledError) as error:  # a counter's or a provider's trouble is not the write's
            if _ends_the_task(error):
                raise
            await self._status.tell_error(error)
            await self._status.tell("idle", 0)
            await self._handle(error)
            return
        await self._status.tell("compacting" if self._state.lock.locked() else "idle", tokens)
        if may_compact and threshold is not None and tokens > threshold:
            await self._compact_automatically(tokens)

    async def compact(self, leaf_id: str | None) -> CompactResult | None:
        """Compact a history once no other compaction of the session runs; raises what the function raises."""
        if self._settings.function is None:
            raise NotSupportedError("compact() without a function (give the session one with on_compaction())")
        if self._state in _within.get():
            raise NotSupportedError("compact() within a compaction function of the same session")
        async with self._state.lock:
            self._state.mark = None
            view = await self._source.read(leaf_id)
            before = await self._estimate.tokens() if self._status.is_listened() else 0
            return await self._compact(view, before, is_automatic=False)

    async def _compact_automatically(self, tokens: int) -> None:
        try:
            # Whoever appends while a compaction runs does not wait for it: the next append looks again.
            if not await self._has_grown(tokens) or self._state.lock.locked():
                return
            async with self._state.lock:
                await self._compact(None, tokens, is_automatic=True)
                self._state.mark = Mark(await self._estimate.tokens(), await self._leaf_id())
        except (Exception, asyncio.CancelledError) as error:  # the append stands, whatever became of the compaction
            if _ends_the_task(error):
                raise
            await self._handle(error)

    async def _has_grown(self, tokens: int) -> bool:
        """Whether a view is larger than what an automatic compaction made of it, or could do nothing about."""
        mark = self._state.mark
        if mark is None or tokens > mark.tokens:
            return True
        # On another branch it is another view.
        return all(stat.id != mark.leaf_id for stat in await self._running.storage.get_history_row_stats())

    async def _leaf_id(self) -> str | None:
        leaf = await self._running.storage.get_latest_leaf()
        return None if leaf is None else leaf.id

    async def _compact(self, view: CompactionView | None, before: int, *, is_automatic: bool) -> CompactResult | None:
        await self._status.tell("compacting", before)
        result: CompactResult | None = None
        token = _within.set((*_within.get(), self._state))
        try:
            result = await self._summarise(view or await self._source.read(None), is_automatic=is_automatic)
            if result is not None:
                await self._running.prompt.refresh()
            after = await self._estimate.tokens() if self._status.is_listened() else 0
        except BaseException as error:
            await self._status.tell_error(error)
            # As recorded: a prompt that cannot be kept after an automatic compaction ends with the error alone.
            if result is None or not is_automatic:
                await self._status.tell("idle", before)
            raise
        finally:
            _within.reset(token)
        await self._status.tell("idle", after, tokens_before=None if result is None else before)
        return result

    async def _summarise(self, view: CompactionView, *, is_automatic: bool) -> CompactResult | None:
        function = self._settings.function
        if function is None or not view.messages:
            return None
        context = CompactionContext(token_counter=self._settings.token_counter)
        given: object = await settle(function(list(view.messages), context))
        if given is None:
            if is_automatic:
                self._warn("there was nothing to compact")
            return None
        if not isinstance(given, CompactResult):
            raise InvalidArgumentError("on_compaction", f"must give a CompactResult, not {type(given).__name__}")
        stretch = view.choose(given.from_message_id, given.to_message_id, self._session_id)
        if stretch is None:
            self._warn("the compaction function named messages that are not in the history")
            return None
        summary = checked_summary(given.summary, self._session_id, self._limits)
        if is_automatic and _cannot_shorten(stretch, summary):
            self._warn("a summary was replaced by one that is not shorter")
            return None
        if not await self._source.add(view, stretch, summary):
            logger.info("session %r: a summary was discarded, its messages had changed", self._session_id)
            return None
        self._state.warned.clear()
        return CompactResult(stretch.ids[0], stretch.ids[-1], summary)

    @property
    def _limits(self) -> Limits:
        return self._running.limits

    def _warn(self, reason: str) -> None:
        """Log a compaction that changed nothing, until one does."""
        if reason not in self._state.warned:
            self._state.warned.add(reason)
            logger.warning("session %r was not compacted: %s", self._session_id, reason)

    async def _handle(self, error: BaseException) -> None:
        """Give an error to whoever wants to know of it; one that is raised there goes no further."""
        handler = self._settings.on_error
        if handler is None:
            logger.warning("session %r: compacting failed: %s", self._session_id, type(error).__name__)
            return
        try:
            await settle(handler(error))
        except Exception as another:  # noqa: BLE001 - the append stands
            logger.warning("session %r: on_compaction_error raised %s", self._session_id, type(another).__name__)


def compacting(
    origin: Any, session_id: str, running: Running, settings: CompactionSettings, publisher: Any
) -> Compacting:
    """What follows the writes of a session over a store or a session provider.

    A store's own publisher tells its status, unless another one was given; over a provider only one that was given.
    """
    storage = running.storage
    state = storage.store.compactions.of(storage.session_id) if isinstance(storage, StoredSession) else None
    own = origin.publisher if isinstance(origin, Store) else None
    is_given = publisher is not None
    status = LiveStatus(session_id, publisher if is_given else own, settings.threshold, is_given=is_given)
    return Compacting(session_id, running, settings, status, state or CompactionState())


def _cannot_shorten(stretch: Stretch, summary: str) -> bool:
    if not stretch.replaces_one_overlay:
        return False
    overlay = {"parts": [{"type": "text", "text": summary}]}
    return estimate_message_tokens([overlay]) >= estimate_message_tokens(stretch.messages)


def _ends_the_task(error: BaseException) -> bool:
    """Whether whoever writes was cancelled, and not the work of a function that was called."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
