"""Ctrl-C: the work is called off, and the process ends soon, though a thread of the driver may wait for a lock."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Final, TypeVar

from replay.cli.failures import INTERRUPTED, Failure

T = TypeVar("T")

GRACE: Final = 1.0
"""The seconds that work which was called off has to end by itself."""


def run_async(work: Coroutine[Any, Any, T], *, advice: str | None = None) -> T:
    """Run it in an event loop of its own; raises Failure, with the advice in it, when a person interrupts it."""
    ended = threading.Event()
    try:
        return asyncio.run(_watched(work, advice, ended))
    except KeyboardInterrupt:
        raise interrupted(advice) from None
    finally:
        ended.set()


def interrupted(advice: str | None = None) -> Failure:
    """The failure that an interruption is."""
    return Failure(f"interrupted: {advice}" if advice else "interrupted", exit_code=INTERRUPTED)


async def _watched(work: Coroutine[Any, Any, T], advice: str | None, ended: threading.Event) -> T:
    calling_off = signal.getsignal(signal.SIGINT)
    if not callable(calling_off) or threading.current_thread() is not threading.main_thread():
        return await work

    def call_off(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=_end, args=[advice, ended], daemon=True).start()
        calling_off(number, frame)

    signal.signal(signal.SIGINT, call_off)
    try:
        return await work
    finally:
        signal.signal(signal.SIGINT, calling_off)


def _end(advice: str | None, ended: threading.Event) -> None:
    """End the process, when the work has not ended in its time: what was not committed is rolled back."""
    if not ended.wait(GRACE):
        interrupted(advice).tell(sys.stderr)
        sys.stderr.flush()
        os._exit(INTERRUPTED)
