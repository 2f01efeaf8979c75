"""The `eventstore` command: one file per group of commands, each loading what it needs only when it runs."""

from __future__ import annotations

import os
import sys
import threading


def main() -> None:
    """Run the command that the process was started with, and exit with its code."""
    from replay.cli.app import run
    from replay.cli.failures import INTERRUPTED
    from replay.cli.pipes import open_closed_streams

    open_closed_streams()
    code = run(sys.argv[1:])
    if code == INTERRUPTED and threading.active_count() > 1:
        # A thread that still waits for a lock would keep the process; what it has not committed is rolled back.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
