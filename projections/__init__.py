"""Everything derivable from the log: the message tree, its history, the text index, the session directory."""

from projections.base import Projection
from projections.directory import Directory, SessionInfo
from projections.message_tree import MessageTree
from projections.search_index import SearchIndex, SearchResult

__all__ = ["Directory", "MessageTree", "Projection", "SearchIndex", "SearchResult", "SessionInfo"]
