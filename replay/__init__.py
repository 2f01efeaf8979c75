"""Looking back: what a person or an operator runs against a log."""

from replay.rebuild import rebuild
from replay.verify import Problem, Report, verify

__all__ = ["Problem", "Report", "rebuild", "verify"]
