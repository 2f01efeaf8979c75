"""The tokens of a foreign session's current view, kept up to date by what is written through one session object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from projections.message import COMPACTION_PREFIX
from projections.tokens import estimate_message_tokens
from sessions.appending import Auto, Parent
from sessions.message import Message


class KnownPath:
    """A history that was read once; what cannot be told from the writes since then has it forgotten, to be read again.

    Others may write to the same session; what they do is not seen until the path is forgotten.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, int] | None = None

    @property
    def tokens(self) -> int | None:
        """The tokens of the path; None while it is not known."""
        return None if self._tokens is None else sum(self._tokens.values())

    def read(self, history: Iterable[Message]) -> None:
        """This is the history now."""
        self._tokens = {message.id: estimate_message_tokens([message]) for message in history}

    def forget(self) -> None:
        """Nobody knows what the history is now."""
        self._tokens = None

    def appended(self, message: Message, parent: Parent) -> None:
        """A message was appended, unless it was there before."""
        known = self._tokens
        if known is None or message.id in known:
            return
        if isinstance(parent, Auto) or parent == next(reversed(known), None):
            known[message.id] = estimate_message_tokens([message])
        elif parent is None:
            self.read([message])
        else:
            # A branch, or a message again that stands on another one.
            self.forget()

    def updated(self, message: Message) -> None:
        """The content of a message was replaced."""
        if self._tokens and message.id in self._tokens:
            self._tokens[message.id] = estimate_message_tokens([message])

    def deleted(self, ids: Sequence[str]) -> None:
        """Messages were deleted."""
        known = self._tokens
        if not known:
            return
        hides = any(message_id.startswith(COMPACTION_PREFIX) for message_id in known)
        if hides or next(reversed(known)) in ids:
            # The end of an overlay, or the tip: what is shown then is the provider's to say.
            self.forget()
            return
        for message_id in ids:
            known.pop(message_id, None)
