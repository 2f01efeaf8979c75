"""Imports conversations that other programs have exported."""

from sessions.importers.conversation import Conversation, Problem, SourceMessage
from sessions.importers.importing import import_file
from sessions.importers.report import ImportedSession, ImportReport

__all__ = [
    "Conversation",
    "ImportReport",
    "ImportedSession",
    "Problem",
    "SourceMessage",
    "import_file",
]
