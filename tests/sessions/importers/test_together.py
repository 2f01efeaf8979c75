from __future__ import annotations

import json
import zipfile
from pathlib import Path

from sessions import SessionManager, import_file, open_store
from sessions.importers.sources import FileSource, together
from tests.sessions.importers.claude import assistant, lines, user
from tests.sessions.importers.exports import mapping_of, said

CHATGPT = json.dumps([{"id": "c", "mapping": mapping_of(("n", None, said("user", "Hi")))}]).encode()
AI_SDK = json.dumps([{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]).encode()
CLAUDE = lines([user("u", None), assistant("a", "u")])
FILES = {"a.txt": CLAUDE, "b.txt": AI_SDK, "c.txt": CHATGPT, "notes.md": b"# {}\n", "other.json": b'{"uuid": "u"}'}
SOURCES = ["chatgpt", "claude-code", "ai-sdk"]


async def test_folder_of_several_formats(tmp_path: Path) -> None:
    """In a folder each file is read by what it holds, whatever it is called, and the rest is passed over."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    async with open_store("sqlite://") as store:
        rehearsed = await import_file(store, tmp_path, dry_run=True)
        assert await store.log.high_water() == 0
        report = await import_file(store, tmp_path)
        sources = {info.source for info in await SessionManager(store).list()}
    assert rehearsed == report
    assert [one.session_id.partition(":")[0] for one in report.sessions] == ["claude-code", "ai-sdk", "chatgpt"]
    assert (report.problems, report.messages, sources) == ([], 4, set(SOURCES))


async def test_zip_of_several_formats(tmp_path: Path) -> None:
    """A zip is read like a folder, the files of subagents beside their session's."""
    path = tmp_path / "all.zip"
    nested = lines([{**user("g", None), "isSidechain": True}])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
        archive.writestr("a/subagents/agent-x.jsonl", nested)
    async with open_store("sqlite://") as store:
        report = await import_file(store, path)
    assert [(one.session_id, one.parent_session_id) for one in report.sessions][:2] == [
        ("claude-code:s", None),
        ("claude-code:x", "claude-code:s"),
    ]
    assert (report.problems, len(report.sessions)) == ([], 4)


async def test_format_can_be_named(tmp_path: Path) -> None:
    """With a format named, files of another are not read."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    async with open_store("sqlite://") as store:
        for name in SOURCES:
            report = await import_file(store, tmp_path, format=name)
            assert [one.session_id.partition(":")[0] for one in report.sessions] == [name]


def test_files_of_subagents_follow_their_session() -> None:
    """Files in the folder of a session's subagents stand behind the session's file, others in their order."""
    names = [
        "a/subagents/agent-1.jsonl",
        "a.jsonl",
        "a.txt",
        "b.jsonl",
        "b/subagents/deep/agent-2.jsonl",
        "c/subagents/x",
    ]
    groups = [[source.name for source in group] for group in together([FileSource(name, Path(name)) for name in names])]
    assert groups == [
        ["a.jsonl", "a/subagents/agent-1.jsonl"],
        ["a.txt"],
        ["b.jsonl", "b/subagents/deep/agent-2.jsonl"],
        ["c/subagents/x"],
    ]
