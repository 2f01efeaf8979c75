"""What may be done on the event loop's own thread: the way to another one and back takes longer than most of it does.

On a busy event loop it takes much longer: a thread waits for the interpreter after every statement, for up to 5 ms each
time. What the event loop must not do is wait for a slow disk, or for a lock.
"""

from __future__ import annotations

import time
from typing import Final

SHARE: Final = 0.05
"""The part of the time that the event loop may lose to what took too long."""


class Pace:
    """Remembers what took longer than it may; for twenty times as long nothing is to be tried again."""

    def __init__(self) -> None:
        self._resume_at = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether it is too early to try again."""
        return time.perf_counter() < self._resume_at

    def spent(self, seconds: float, most: float) -> None:
        """Note how long something has just taken, and how long it may take."""
        if seconds > most:
            self._resume_at = time.perf_counter() + seconds / SHARE


class NotHereError(Exception):
    """It is to be done on another thread, from its start."""
