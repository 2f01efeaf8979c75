"""A process that sends its whole list of messages again and again beside others on one file; run as a program.

It says "ready" when the store is open, waits for a line, and then has its list grow by a turn at a time: all lists
begin with one question, and each turn comes twice, the second time with the output of its tool, and under other ids.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from sessions import ReconcileResult, Session, open_store


def turn(name: str, number: int) -> list[dict[str, Any]]:
    """Return a question and its answer, which calls a tool that was not run yet."""
    call = {"type": "tool-look", "toolCallId": f"{name}-{number}", "state": "input-available", "input": {}}
    return [
        {"id": f"{name}-u{number}", "role": "user", "parts": [{"type": "text", "text": f"{name} asks {number}"}]},
        {"id": f"{name}-a{number}", "role": "assistant", "parts": [call]},
    ]


async def main(url: str, name: str, session_id: str, count: int) -> None:
    """Send the lists."""
    async with open_store(url, synchronous="normal") as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        session = Session.create(store).for_session(session_id)
        messages: list[dict[str, Any]] = [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hello"}]}]
        await session.reconcile(messages)
        for number in range(count):
            messages += turn(name, number)
            assert await session.reconcile(messages) == ReconcileResult(2, 0, len(messages) - 2)
            call = messages[-1]["parts"][0]
            messages[-1] = {**messages[-1], "parts": [{**call, "state": "output-available", "output": number}]}
            other = [messages[0], *({**message, "id": f"own-{message['id']}"} for message in messages[1:])]
            for expected in (ReconcileResult(0, 1, len(messages) - 1), ReconcileResult(0, 0, len(messages))):
                found = await session.reconcile(other)
                assert found == expected, found


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
