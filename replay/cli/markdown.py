"""A message as Markdown."""

from __future__ import annotations

from sessions.exporters.markdown import parts_to_markdown, to_markdown
from sessions.exporters.tools import kind_of

__all__ = ["kind_of", "parts_to_markdown", "to_markdown"]
