"""The names of sessions that come from elsewhere: their titles, or else what a user first said."""

from __future__ import annotations

from typing import Final

from eventstore.limits import Limits, clean_text

NAME_CHARACTERS: Final = 80


def session_name(title: str, limits: Limits) -> str:
    """A title, or as much of its beginning as the limit allows: a long one is no reason to lose a conversation."""
    return clean_text(title).encode()[: limits.title_bytes].decode(errors="ignore")


def first_words(text: str) -> str:
    """The beginning of a text in one line, empty for a blank one."""
    line = " ".join(text.split())
    return line if len(line) <= NAME_CHARACTERS else line[:NAME_CHARACTERS].rstrip() + "…"
