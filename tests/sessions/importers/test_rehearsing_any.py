from __future__ import annotations

import asyncio
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventstore.errors import EventStoreError
from replay import verify
from sessions import Limits, SessionManager, Store, StoredSession, import_file, open_store
from tests.sessions.exporters.test_json_tree import tree_of
from tests.sessions.importers.claude import Record, assistant, call, record, result, user, write
from tests.sessions.talk import said

LONG = "x" * 4_000
ROWS = [f"r{number}" for number in range(8)]
ENDS = [f"m{number}" for number in range(5)]


def claude_file(chance: random.Random, world: int, path: Path) -> None:
    """Write some records of a session; of one id and day they say the same in every file."""
    session_id, day = chance.choice("sst"), chance.choice([1, 1, 1, 2])
    records: list[Record] = []
    for index, uuid in enumerate(ROWS[: chance.randint(1, 8)]):
        own = random.Random(f"{world} {uuid} {day}")
        parent = ROWS[index - 1] if index else None
        if chance.random() < 0.2:
            parent = chance.choice([None, *ROWS[:index]])
        if chance.random() < 0.15:
            continue
        tool, response = own.choice(["t1", "t2"]), own.choice([None, "response"])
        made = own.choice(
            [
                [user(uuid, parent, own.choice(["Said.", LONG]))],
                [assistant(uuid, parent, response=response)],
                [assistant(uuid, parent, call(tool), response=response)],
                [user(uuid, parent, [result(tool, own.choice(["Found.", "Found.", LONG]))])],
                [
                    record("system", f"{uuid}-b", None, None, subtype="compact_boundary"),
                    user(uuid, f"{uuid}-b", own.choice(["Summary.", " ", LONG]), isCompactSummary=True),
                ],
            ]
        )
        records += ({**one, "sessionId": session_id, "timestamp": f"2025-07-0{day}T10:00:00.000Z"} for one in made)
    write(path.with_suffix(".jsonl"), *records)


def tree_file(chance: random.Random, path: Path) -> None:
    """Write the export of a session with any links and compactions."""
    nodes: list[dict[str, Any]] = []
    for index, key in enumerate(ENDS[: chance.randint(0, 5)]):
        above = chance.choice([None, *ENDS[:index]]) if chance.random() < 0.4 else (ENDS[index - 1] if index else None)
        nodes.append({"parent_id": above, "message": said(key, chance.choice("ab"))})
    compactions = [
        {
            "id": chance.choice(["k", "l", "k", "l", "\0", "z" * 600]),
            "summary": chance.choice(["S", "S", " ", LONG]),
            "from_message_id": chance.choice(ENDS),
            "to_message_id": chance.choice(ENDS),
        }
        for _ in range(chance.randint(0, 4))
    ]
    model = chance.choice([None, None, None, "m", "m" * 9_000])
    session = {"id": chance.choice("st"), "name": "N", "model": model}
    tree = tree_of(session=session, messages=nodes, compactions=compactions)
    path.with_suffix(".json").write_text(json.dumps(tree), encoding="utf-8")


async def live(chance: random.Random, store: Store) -> None:
    """Delete, clear and write something of every session."""
    for info in await SessionManager(store).list():
        session, kind = StoredSession(store, info.id), chance.random()
        if kind < 0.1:
            await SessionManager(store).delete(info.id)
        elif kind < 0.2:
            await session.clear_messages()
        elif kind < 0.6:
            ids = [node.message.id async for node in session.tree()]
            await session.delete_messages([one for one in ids if chance.random() < 0.4])
        elif kind < 0.7:
            try:
                await session.append_message(said(chance.choice(ROWS), "ours"))
            except EventStoreError:
                continue


@given(seed=st.integers(0, 1 << 32))
def test_any_dry_run_is_as_the_import(seed: int) -> None:
    """Whatever is imported into whatever store, a dry run reports the same before, and writes nothing."""
    chance = random.Random(seed)

    async def check(root: Path) -> None:
        async with open_store("sqlite://", limits=Limits(message_bytes=3_000)) as store:
            for step in range(3):
                folder = root / str(step)
                folder.mkdir()
                for number in range(chance.randint(1, 3)):
                    if chance.random() < 0.6:
                        claude_file(chance, seed, folder / str(number))
                    else:
                        tree_file(chance, folder / str(number))
                head = await store.log.high_water()
                rehearsed = await import_file(store, folder, dry_run=True)
                assert await store.log.high_water() == head
                assert rehearsed == await import_file(store, folder)
                await live(chance, store)
            assert (await verify(store)).problems == []

    with tempfile.TemporaryDirectory() as root:
        asyncio.run(check(Path(root)))
