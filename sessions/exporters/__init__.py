"""Exports sessions: to be read, to be imported again, to go on elsewhere."""

from sessions.exporters.exporting import FORMATS, export_session

__all__ = [
    "FORMATS",
    "export_session",
]
