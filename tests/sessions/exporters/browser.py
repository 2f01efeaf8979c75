"""A headless Chromium that is spoken to over a pipe, by the DevTools protocol."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)

_ON_3_AND_4 = """
import os, sys
ends = [os.dup(int(end)) for end in sys.argv[1:3]]
for descriptor, end in zip((3, 4), ends):
    os.dup2(end, descriptor)
    os.set_inheritable(descriptor, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Becomes the browser, with the pipe where the browser looks for it."""


def find_chromium() -> str:
    """Return the path of a Chromium; it is an error when there is none, and no reason to skip."""
    wanted = os.environ.get("CHROMIUM")
    found = next(filter(None, map(shutil.which, [wanted] if wanted else NAMES)), None)
    assert found, f"no Chromium: {wanted or ', '.join(NAMES)} is not on the path; install it, or name it in CHROMIUM"
    return found


class Browser:
    """One tab, and everything that it told: `requests` are the addresses asked for, `complaints` errors and alerts."""

    def __init__(self, process: subprocess.Popen[bytes], to_browser: int, from_browser: int) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._process = process
        self._to_browser = to_browser
        self._from_browser = from_browser
        self._numbers = itertools.count(1)
        self._tab: dict[str, str] = {}
        self._buffer = b""
        self._events: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._tab = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Open an address and wait until it is loaded."""
        self._events.clear()
        self.call("Page.navigate", url=address)
        while "Page.loadEventFired" not in self._events:
            self._take()

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        about = {"key": key, "windowsVirtualKeyCode": codes[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command; what the browser tells meanwhile is kept."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters, **self._tab}
        os.write(self._to_browser, msgspec.json.encode(command) + b"\0")
        while True:
            told = self._take()
            if told.get("id") == number:
                assert "error" not in told, told
                answer: dict[str, Any] = told["result"]
                return answer

    def _take(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from_browser], [], [], max(deadline - time.monotonic(), 0))
            more = os.read(self._from_browser, 1 << 20) if ready else b""
            assert more, f"Chromium fell silent, its exit code is {self._process.poll()}"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        told: dict[str, Any] = msgspec.json.decode(line)
        self._note(told.get("method", ""), told.get("params", {}))
        return told

    def _note(self, method: str, about: dict[str, Any]) -> None:
        self._events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])
        elif method in {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening"}:
            self.complaints.append(f"{method}: {about}")


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    program = find_chromium()
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    started = [sys.executable, "-c", _ON_3_AND_4, str(their_in), str(their_out), program, *FLAGS]
    with contextlib.ExitStack() as stack:
        for descriptor in (our_out, our_in):
            stack.callback(os.close, descriptor)
        process = subprocess.Popen(
            [*started, f"--user-data-dir={profile}"],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        try:
            yield Browser(process, our_out, our_in)
        finally:
            process.terminate()
            process.wait(PATIENCE)
