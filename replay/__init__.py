"""Looking back: what a person or an operator runs against a log."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replay.rebuilding import rebuild
    from replay.verifying import Problem, Report, verify

__all__ = ["Problem", "Report", "rebuild", "verify"]

_HOMES = {"Problem": "verifying", "Report": "verifying", "rebuild": "rebuilding", "verify": "verifying"}


def __getattr__(name: str) -> object:
    """Load what is asked for only then: the command line stands below this package and must start quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"replay.{_HOMES[name]}"), name)
