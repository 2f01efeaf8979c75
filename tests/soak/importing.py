"""A process that imports a file until it is done or killed; run as a program.

It says "ready" when the store is open and "done" at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from pathlib import Path

from sessions import import_file, open_store
from sessions.importers import recording


async def main(url: str, path: str, piece_bytes: int | None = None, megabytes: int | None = None) -> None:
    """Import a file, in pieces of a size, with at most so much private memory."""
    if piece_bytes is not None:
        recording.PIECE_BYTES = piece_bytes  # type: ignore[misc]
    if megabytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))
    async with open_store(url, synchronous="normal") as store:
        os.write(1, b"ready\n")
        report = await import_file(store, path)
    os.write(1, f"done {report.messages} {most_memory()}\n".encode())


def most_memory() -> int:
    """Return the most megabytes in use at once; `ru_maxrss` would begin with those of whoever started this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
