"""Everything derivable from the log: the message tree, its history, the text index, the session directory."""

from projections.base import Projection
from projections.compactions import Compaction
from projections.directory import Directory, SessionInfo
from projections.history import RowStat
from projections.message_tree import MessageTree
from projections.search import SearchResult
from projections.search_index import SearchIndex

__all__ = [
    "Compaction",
    "Directory",
    "MessageTree",
    "Projection",
    "RowStat",
    "SearchIndex",
    "SearchResult",
    "SessionInfo",
]
