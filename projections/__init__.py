"""Everything derivable from the log: the message tree, its history, the text index, the session directory."""

from projections.base import Projection
from projections.compactions import Compaction
from projections.context_blocks import ContextBlocks
from projections.context_entries import ContextEntries
from projections.directory import Directory, SessionInfo
from projections.history import RowStat
from projections.imports import Imports
from projections.message_tree import MessageTree
from projections.search import SearchResult
from projections.search_index import SearchIndex
from projections.skills import Skills

__all__ = [
    "Compaction",
    "ContextBlocks",
    "ContextEntries",
    "Directory",
    "Imports",
    "MessageTree",
    "Projection",
    "RowStat",
    "SearchIndex",
    "SearchResult",
    "SessionInfo",
    "Skills",
]
