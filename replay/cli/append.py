"""`append`: messages into a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replay.cli.options import Run, SessionArgument

if TYPE_CHECKING:
    from replay.cli.failures import Failure
    from sessions import AppendResult


async def append(
    run: Run,
    session: SessionArgument,
    *,
    role: Annotated[str | None, typer.Option("--role", metavar="ROLE", help="Who says it, as user.")] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="What is said.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Instead of these, JSON: a message, a list of them, or one per line; - is standard input.",
        ),
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option("--parent", metavar="ID", help="Append under this message.  [default: the current leaf]"),
    ] = None,
    expect: Annotated[
        int | None,
        typer.Option(
            "--expect", metavar="VERSION", min=0, help="Only if the session is at this version; 0 begins a new one."
        ),
    ] = None,
) -> None:
    """Append a message to a session, or several.

    Of several each stands under the one before it, and all of them are appended or none.
    """
    from eventstore.errors import VersionConflictError
    from replay.cli.failures import USAGE, Failure
    from replay.cli.lastused import LastUsed
    from replay.cli.naming import find_place
    from replay.cli.opening import find_session, locate, reading, writing
    from sessions import AUTO, StoredSession

    messages = _messages(run, role, text, source)
    # A name that is new is a slip of the pen, unless a new session is what is asked for.
    begins = expect == 0
    if begins and session in {"", "@"}:
        means = "@ means a session that is there" if session else "the name of a SESSION is empty"
        raise Failure(f"{means}: a new one needs an id of its own", exit_code=USAGE)
    async with writing(run) if begins else reading(run, refill=True) as store:
        advice = "to begin a new session, add --expect 0"
        session_id = session if begins else await find_session(run, store, session, advice=advice)
        parent_id = AUTO if parent is None else await find_place(run, store, session_id, parent)
        stored = StoredSession(store, session_id)
        try:
            appended = await stored.append_messages(messages, parent_id, expected_version=expect)
        except VersionConflictError as error:
            raise _conflict(run, session_id, expect, error.actual) from error
        LastUsed(locate(run).path).write(session_id)
    _print(run, session_id, appended)


def _messages(run: Run, role: str | None, text: str | None, source: str | None) -> list[dict[str, Any]]:
    from replay.cli.failures import USAGE, Failure
    from replay.cli.messages_in import read_messages

    example = run.hint("append", "@", "--role", "user", "--text", "Hello")
    if source is not None and role is None and text is None:
        return read_messages(source)
    if source is not None or role is None or text is None:
        raise Failure("give either --role and --text, or --json", f"as `{example}`", exit_code=USAGE)
    for option, given in {"--role": role, "--text": text}.items():
        if not given.strip():
            # An unset variable of a shell, most likely.
            raise Failure(f"{option} must not be blank", f"as `{example}`", exit_code=USAGE)
    return [{"role": role, "parts": [{"type": "text", "text": text}]}]


def _conflict(run: Run, session_id: str, expected: int | None, version: int) -> Failure:
    """What to say when the session is at another version than was expected."""
    from replay.cli.failures import CONFLICT, Failure

    if not expected:
        hint = "the session is there already: without --expect the message is appended to it"
    elif expected > version:
        hint = f"it has not come so far yet: `{run.hint('log', session_id)}` shows its events"
    else:
        log = run.hint("log", session_id, "-n", str(version - expected))
        hint = f"see with `{log}` what has come in between, then expect the version that was found"
    return Failure(f"session {session_id!r}: expected version {expected}, found {version}", hint, exit_code=CONFLICT)


def _print(run: Run, session_id: str, appended: Sequence[AppendResult]) -> None:
    from replay.cli.output import Column
    from replay.cli.text import label

    columns = [
        Column(title="ID", cell=lambda one: label(one["id"]), style="yellow", free=True),
        Column(title="VER", cell=lambda one: str(one["version"]), right=True),
        Column(title="POS", cell=lambda one: str(one["position"]), right=True),
        Column(title="NEW", cell=lambda one: "yes" if one["inserted"] else "no"),
    ]
    with run.out.listing(columns) as add:
        for one in appended:
            add(
                {
                    "session_id": session_id,
                    "id": one.message.id,
                    "inserted": one.inserted,
                    "version": one.version,
                    "position": one.position,
                }
            )
