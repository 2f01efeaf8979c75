"""Conversations: messages in a tree, appended, read, branched and searched, on top of the event log."""

from eventstore.limits import Limits
from projections.compactions import Compaction
from projections.directory import SessionInfo
from projections.history import RowStat
from projections.message import COMPACTION_PREFIX
from projections.search import SearchResult
from projections.tokens import estimate_message_tokens, estimate_string_tokens
from sessions.appending import AUTO, AppendResult
from sessions.boundaries import align_boundary_backward, align_boundary_forward, find_tail_cut_by_tokens
from sessions.compaction_function import (
    CompactFunction,
    CompactionContext,
    CompactResult,
    create_compact_function,
    is_compaction_message,
)
from sessions.context import ContextBlock, ContextConfig
from sessions.directory_skills import DirectorySkills
from sessions.fsspec_skills import FsspecSkills
from sessions.importers import ImportedSession, ImportReport, import_file
from sessions.manager import SessionManager, SessionPage
from sessions.message import Message
from sessions.pairs import sanitize_tool_pairs
from sessions.providers import (
    ContextProvider,
    SearchProvider,
    SessionProvider,
    SkillProvider,
    WritableContextProvider,
    is_search_provider,
    is_skill_provider,
    is_writable_provider,
)
from sessions.reading import RecentHistory, TreeNode
from sessions.reconciling import ReconcileResult
from sessions.session import Session
from sessions.static_context import StaticContext
from sessions.store import Store, open_store
from sessions.stored import StoredSession
from sessions.stored_context import StoredContext
from sessions.stored_search import StoredSearch
from sessions.summary import build_summary_prompt, compute_summary_budget
from sessions.tools import Tool
from sessions.truncation import truncate_older_messages

__all__ = [
    "AUTO",
    "COMPACTION_PREFIX",
    "AppendResult",
    "CompactFunction",
    "CompactResult",
    "Compaction",
    "CompactionContext",
    "ContextBlock",
    "ContextConfig",
    "ContextProvider",
    "DirectorySkills",
    "FsspecSkills",
    "ImportReport",
    "ImportedSession",
    "Limits",
    "Message",
    "RecentHistory",
    "ReconcileResult",
    "RowStat",
    "SearchProvider",
    "SearchResult",
    "Session",
    "SessionInfo",
    "SessionManager",
    "SessionPage",
    "SessionProvider",
    "SkillProvider",
    "StaticContext",
    "Store",
    "StoredContext",
    "StoredSearch",
    "StoredSession",
    "Tool",
    "TreeNode",
    "WritableContextProvider",
    "align_boundary_backward",
    "align_boundary_forward",
    "build_summary_prompt",
    "compute_summary_budget",
    "create_compact_function",
    "estimate_message_tokens",
    "estimate_string_tokens",
    "find_tail_cut_by_tokens",
    "import_file",
    "is_compaction_message",
    "is_search_provider",
    "is_skill_provider",
    "is_writable_provider",
    "open_store",
    "sanitize_tool_pairs",
    "truncate_older_messages",
]
