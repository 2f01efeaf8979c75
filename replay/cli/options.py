"""The options that every command takes, and the wrapper that gives a command what they say."""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from replay.cli.completion import complete_session
from replay.cli.pipes import quiet
from replay.cli.program import EXAMPLE_URL, URL_VARIABLE, command_line

if TYPE_CHECKING:
    from replay.cli.output import Format, Output


_session = typer.Argument(
    metavar="SESSION",
    help="The session's id, the beginning of one, or @ for the one used last.",
    autocompletion=complete_session,
)
SessionArgument = Annotated[str, _session]
PerhapsSessionArgument = Annotated[str | None, _session]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help=f"The store, as {EXAMPLE_URL}.  [default: ${URL_VARIABLE}, else `eventstore path`]",
    ),
]
ColorOption = Annotated[
    bool | None,
    typer.Option(
        "--color/--no-color", help="Colours always or never.  [default: on a terminal, unless NO_COLOR is set]"
    ),
]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Show the traceback of an error.")]
FORMAT_OPTIONS: Final[dict[Format, Any]] = {
    "json": Annotated[bool, typer.Option("--json", help="Print one JSON value.")],
    "ndjson": Annotated[bool, typer.Option("--ndjson", help="Print a JSON object per line.  [default: in a pipe]")],
    "table": Annotated[bool, typer.Option("--table", help="Print for people.  [default: on a terminal]")],
}
FORMATS: Final[tuple[Format, ...]] = tuple(FORMAT_OPTIONS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Given:
    """What stood before the command's name on the command line."""

    store: str | None = None
    color: bool | None = None
    verbose: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """What a command knows beside its own arguments: the store's URL, None for the default, and its output.

    `store` is the URL from the command line alone, for hints that must repeat it.
    """

    url: str | None
    store: str | None
    out: Output

    def hint(self, *words: str) -> str:
        """A command line for this store, quoted for a shell."""
        return command_line(*words, store=self.store)


def with_shared_options(
    function: Callable[..., Coroutine[Any, Any, None] | None], *, formats: Sequence[Format] = FORMATS
) -> Callable[..., None]:
    """A command with the shared options and those of some formats; without any it prints for people."""
    signature = inspect.signature(function, eval_str=True)
    own = list(signature.parameters.values())[1:]
    shared: dict[str, Any] = {"store": StoreOption, "color": ColorOption}
    shared |= {name: FORMAT_OPTIONS[name] for name in formats}
    shared["verbose"] = VerboseOption

    def command(context: typer.Context, **values: Any) -> None:
        given = context.obj if isinstance(context.obj, Given) else Given()
        options = {name: values.pop(name) for name in shared}
        store = options["store"] or given.store
        color = given.color if options["color"] is None else options["color"]
        try:
            from replay.cli.output import Output

            out = Output(format=_format(context, options, formats) if formats else "table", color=color)
            run = Run(url=store or os.environ.get(URL_VARIABLE) or None, store=store, out=out)
            with quiet():
                _call(function, run, values)
        except KeyboardInterrupt:
            from replay.cli.interrupting import interrupted

            raise interrupted() from None
        except Exception as error:
            if (given.verbose or options["verbose"]) and not isinstance(error, typer.Exit):
                traceback.print_exc(file=sys.stderr)
            raise

    keyword = inspect.Parameter.KEYWORD_ONLY
    names = [inspect.Parameter("context", keyword, annotation=typer.Context), *own]
    names += [
        inspect.Parameter(name, keyword, annotation=kind, default=None if name in {"store", "color"} else False)
        for name, kind in shared.items()
    ]
    parameters = [parameter.replace(kind=keyword) for parameter in names]
    # Typer reads a command's options here, and the types apart from them.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = function.__doc__
    return command


def _call(function: Callable[..., Coroutine[Any, Any, None] | None], run: Run, values: dict[str, Any]) -> None:
    if inspect.iscoroutinefunction(function):
        from replay.cli.interrupting import run_async

        run_async(function(run, **values))
    else:
        function(run, **values)


def _format(context: typer.Context, options: dict[str, Any], formats: Sequence[Format]) -> Format | None:
    chosen = [name for name in formats if options[name]]
    if len(chosen) > 1:
        context.fail(f"Only one of {', '.join(f'--{name}' for name in chosen)} can be had.")
    return chosen[0] if chosen else None
