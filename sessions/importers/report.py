"""What an import did, told to the caller."""

from __future__ import annotations

import msgspec

from sessions.importers.conversation import Problem


class Written(msgspec.Struct, frozen=True):
    """What became of one conversation.

    `inserted` is how many of its messages were new and `left_out` how many of its summaries could not be taken; these
    are among the `problems` too. `parent_session_id` is the session that it belongs to.
    """

    inserted: int
    parent_session_id: str | None = None
    problems: tuple[Problem, ...] = ()
    left_out: int = 0


class ImportedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of the source and the session that it became.

    `messages` is how many the conversation has, `inserted` how many of them the store did not hold before. `overlays`
    are its summaries, without those that could not be taken.
    """

    session_id: str
    source_id: str
    title: str | None
    parent_session_id: str | None
    messages: int
    overlays: int
    repaired_links: int
    inserted: int


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of an import: numbers over all conversations, the problems met, and the sessions in file order.

    `conversations` were read and written (again or anew); `skipped` is the number of entries that would have been a
    conversation but could not be taken; each of them is among the `problems` too. A conversation that stands in two
    files of one import counts twice in `conversations`, `messages` and `sessions`, as it was read twice; what the first
    brought is not in the `inserted` of the second.
    """

    conversations: int
    skipped: int
    messages: int
    overlays: int
    repaired_links: int
    problems: list[Problem]
    sessions: list[ImportedSession]
