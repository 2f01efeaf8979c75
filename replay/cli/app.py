"""The commands under one name, and what becomes of a command line: an exit code, and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from replay.cli import (
    append,
    care,
    demo,
    doctor,
    event,
    export,
    fork,
    graph,
    importing,
    log,
    overview,
    schema,
    search,
    show,
    stats,
    status,
    tail,
)
from replay.cli.failures import USAGE, Failure, explain
from replay.cli.options import ColorOption, Given, StoreOption, VerboseOption, with_shared_options
from replay.cli.pipes import quiet
from replay.cli.program import NAME
from replay.cli.shells import InstallOption, ShowOption, with_shell

DISTRIBUTION = "session-eventstore"

app = typer.Typer(
    name=NAME,
    help="An event-sourced store for AI conversations, looked at and kept from the command line.",
    epilog="Start with `eventstore demo`, or with `eventstore import auto PATH`.",
    context_settings={"help_option_names": ["-h", "--help"]},
    # Its own options for that take no shell's name.
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    # Plain help needs no rich, which would double the time that --help takes.
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as version_of

        try:
            print(f"{NAME} {version_of(DISTRIBUTION)}")
        except PackageNotFoundError:
            print(f"{NAME} (not installed)")
        raise typer.Exit


@app.callback()
def before_every_command(
    context: typer.Context,
    *,
    store: StoreOption = None,
    color: ColorOption = None,
    verbose: VerboseOption = False,
    version: Annotated[  # noqa: ARG001 - its callback does all
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    install_completion: InstallOption = None,  # noqa: ARG001 - its callback does all
    show_completion: ShowOption = None,  # noqa: ARG001 - its callback does all
) -> None:
    """Keep the options that stand before the command's name; without one, say which there are."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(USAGE)
    context.obj = Given(store=store, color=color, verbose=verbose)


for name, command in {
    "demo": with_shared_options(demo.demo, formats=()),
    "import": with_shared_options(importing.import_),
    "ls": with_shared_options(overview.ls),
    "show": with_shared_options(show.show),
    "graph": with_shared_options(graph.graph),
    "log": with_shared_options(log.log),
    "event": with_shared_options(event.event),
    "tail": with_shared_options(tail.tail),
    "search": with_shared_options(search.search),
    # Its --json is what it reads.
    "append": with_shared_options(append.append, formats=("ndjson", "table")),
    "fork": with_shared_options(fork.fork),
    # They print text of their own kind.
    "export": with_shared_options(export.export, formats=()),
    "verify": with_shared_options(care.verify),
    "rebuild": with_shared_options(care.rebuild),
    "status": with_shared_options(status.status),
    "stats": with_shared_options(stats.stats),
    "doctor": with_shared_options(doctor.doctor),
    "schema": with_shared_options(schema.schema, formats=()),
    "migrate": with_shared_options(schema.migrate),
    "path": with_shared_options(care.path),
}.items():
    app.command(name)(command)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; what went wrong is one line and a hint on stderr."""
    try:
        with quiet():
            code = app(with_shell(arguments), prog_name=NAME, standalone_mode=False)
    except typer.Exit as closed:
        return closed.exit_code
    except SystemExit as ended:
        # Typer ends so, outside of our commands: after it completed a line, or when a pipe is closed while it prints.
        return 0 if isinstance(ended.__context__, OSError) else int(ended.code or 0)
    except Exception as error:  # noqa: BLE001 - whatever went wrong is told, and ends here
        failure = error if isinstance(error, Failure) else explain(error)
        failure.tell(sys.stderr)
        return failure.exit_code
    return int(code or 0)
