"""Imports conversations that other programs have exported."""

from sessions.importers.conversation import Conversation, ImportProblemError, Problem, SourceMessage
from sessions.importers.importing import import_file
from sessions.importers.report import ImportedSession, ImportReport

__all__ = [
    "Conversation",
    "ImportProblemError",
    "ImportReport",
    "ImportedSession",
    "Problem",
    "SourceMessage",
    "import_file",
]
