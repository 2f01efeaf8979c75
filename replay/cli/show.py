"""`show`: the transcript of a session."""

from __future__ import annotations

import enum
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from replay.cli.options import Run, SessionArgument

if TYPE_CHECKING:
    from projections.overview import Overview
    from replay.cli.output import Output
    from sessions import Message
    from sessions.store import Store


class Depth(enum.StrEnum):
    """How much of a conversation is shown; each shows what those before it do, and more."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    ALL = "all"


class Compaction(enum.StrEnum):
    """Whether summaries stand for the messages that they cover."""

    APPLIED = "applied"
    OFF = "off"


SAID: Final = frozenset({"text", "file", "source-url", "source-document"})
"""The kinds of parts that a person and an assistant say to each other."""


async def show(
    run: Run,
    session: SessionArgument,
    *,
    leaf: Annotated[
        str | None,
        typer.Option("--leaf", metavar="MESSAGE_ID", help="The branch up to this message, instead of the current one."),
    ] = None,
    depth: Annotated[
        Depth, typer.Option(help="What the user said; the assistant too; calls of tools too; all there is.")
    ] = Depth.ALL,
    compaction: Annotated[
        Compaction, typer.Option(help="Show summaries for the messages that they cover, or the messages.")
    ] = Compaction.APPLIED,
    raw: Annotated[bool, typer.Option("--raw", help="Print the messages as they are stored, as JSON.")] = False,
) -> None:
    """Print a branch of a session, as Markdown."""
    from replay.cli.naming import find_message
    from replay.cli.opening import find_session, reading
    from sessions.stored import StoredSession

    async with reading(run) as store:
        session_id = await find_session(run, store, session)
        leaf_id = None if leaf is None else await find_message(run, store, session_id, leaf)
        if not raw and run.out.chosen not in {"json", "ndjson"}:
            summaries = await print_transcript(store, run.out, session_id, leaf_id, depth=depth, compaction=compaction)
            if summaries and run.out.for_people:
                run.out.notice(_of_summaries(run, summaries, session_id, leaf_id))
            return
        overlays = compaction is Compaction.APPLIED
        async with aclosing(StoredSession(store, session_id).history(leaf_id, overlays=overlays)) as messages:
            with run.out.records() as add:
                async for message in messages:
                    if parts_at(depth, message) is not None:
                        add(message.to_dict())


async def print_transcript(
    store: Store,
    out: Output,
    session_id: str,
    leaf_id: str | None = None,
    *,
    depth: Depth = Depth.ALL,
    compaction: Compaction = Compaction.APPLIED,
) -> int:
    """Print a branch as Markdown, message by message as they are read; returns how many summaries were in it."""
    from projections.message import COMPACTION_PREFIX
    from replay.cli.overview import overview_of
    from sessions.exporters.markdown import to_markdown
    from sessions.stored import StoredSession

    out.write(_head(await overview_of(store, session_id)))
    overlays = compaction is Compaction.APPLIED
    summaries = 0
    async with aclosing(StoredSession(store, session_id).history(leaf_id, overlays=overlays)) as messages:
        async for message in messages:
            summaries += message.id.startswith(COMPACTION_PREFIX)
            parts = parts_at(depth, message)
            if parts is not None:
                out.write(f"\n{to_markdown(message, parts)}")
    return summaries


def _of_summaries(run: Run, summaries: int, session_id: str, leaf_id: str | None) -> str:
    from replay.cli.text import counted, label

    branch = [] if leaf_id is None else ["--leaf", leaf_id]
    line = run.hint("show", session_id, *branch, "--compaction", "off")
    stand = "stands" if summaries == 1 else "stand"
    return f"{counted(summaries, 'summary', 'summaries')} {stand} for messages: `{label(line)}` shows those"


def parts_at(depth: Depth, message: Message) -> list[dict[str, Any]] | None:
    """The parts of a message that are shown at a depth; None when the message is not."""
    from sessions.exporters.tools import kind_of

    if depth is Depth.ALL:
        return message.parts
    roles, kinds = [Depth.USER.value], SAID
    if depth is not Depth.USER:
        roles.append("assistant")
    if depth is Depth.TOOL:
        roles.append("tool")
        kinds = SAID | {"tool"}
    parts = [part for part in message.parts if kind_of(part) in kinds] if message.role in roles else []
    return parts or None


def _head(session: Overview) -> str:
    from replay.cli.text import counted, label, one_line

    branches = f", {counted(session.branches, 'branch', 'branches')}" if session.branches > 1 else ""
    return f"# {one_line(session.name)}\n\n`{label(session.id)}` · {counted(session.messages, 'message')}{branches}\n"
