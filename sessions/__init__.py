"""Conversations: messages in a tree, appended, read, branched and searched, on top of the event log."""

from eventstore.limits import Limits
from projections.compactions import Compaction
from projections.directory import SessionInfo
from projections.history import RowStat
from projections.message import COMPACTION_PREFIX
from projections.search import SearchResult
from projections.tokens import estimate_message_tokens, estimate_string_tokens
from sessions.appending import AUTO, AppendResult
from sessions.importers import ImportedSession, ImportReport, import_file
from sessions.manager import SessionManager
from sessions.message import Message
from sessions.reading import RecentHistory, TreeNode
from sessions.session import Session
from sessions.store import Store, open_store
from sessions.stored import StoredSession

__all__ = [
    "AUTO",
    "COMPACTION_PREFIX",
    "AppendResult",
    "Compaction",
    "ImportReport",
    "ImportedSession",
    "Limits",
    "Message",
    "RecentHistory",
    "RowStat",
    "SearchResult",
    "Session",
    "SessionInfo",
    "SessionManager",
    "Store",
    "StoredSession",
    "TreeNode",
    "estimate_message_tokens",
    "estimate_string_tokens",
    "import_file",
    "open_store",
]
