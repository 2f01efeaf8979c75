"""The `eventstore` command: one file per group of commands, each loading what it needs only when it runs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the process was started with, and exit with its code."""
    from replay.cli.app import run

    sys.exit(run(sys.argv[1:]))
