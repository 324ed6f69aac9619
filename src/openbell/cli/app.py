"""The Typer app, and the options and functions that commands share."""

from __future__ import annotations

import logging
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from openbell import __version__
from openbell.desk.operations.logs.json_stream import only_json_lines
from openbell.desk.operations.logs.setup import start_log
from openbell.desk.settings import Settings, file_of, load, unknown_variables
from openbell.desk.settings.private_files import share_as
from openbell.market.clock import parse_time, whole_date
from openbell.market.errors import InvalidParameter, OpenbellError

log = logging.getLogger(__name__)
T = TypeVar("T")


class WholeHelp(TyperGroup):
    """A group whose help has the first sentence of each command, wrapped; click cuts it to one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands and what each does."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [
            (name, command.get_short_help_str(_LONGEST)) for name, command in found if command and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_LONGEST = 1000
"""Characters of the first sentence of a command's help."""

app = typer.Typer(
    name="openbell",
    cls=WholeHelp,
    help="A trading desk as MCP tools. Uses a simulated market by default: no account, no key.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Since = Annotated[
    str, typer.Option("--from", metavar="TIME", help="The first time: a year (2010), a month, a day or ISO 8601.")
]
Until = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="The time after the last bar; by default the present.")
]
ReadOnly = Annotated[
    bool,
    typer.Option(
        "--read-only",
        help="Refuse every tool that writes and change nothing in the home; overrides --trade. openbell halt still works.",
    ),
]
Trade = Annotated[bool, typer.Option("--trade", help="Allow the trading tools.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="Fix the clock at this time (ISO 8601); later data is not used."),
]


InScenario = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        metavar="NAME",
        help="With --as-of: the scenario to read and trade in (with --trade by default as-of; see openbell scenario).",
    ),
]


def group(name: str, help_text: str) -> typer.Typer:
    """Returns a new group of commands, such as `openbell watch`."""
    made = typer.Typer(cls=WholeHelp, help=help_text, no_args_is_help=True)
    app.add_typer(made, name=name)
    return made


def fail(message: str, code: int = 1) -> NoReturn:
    """Print an error message on standard error and exit."""
    typer.echo(f"openbell: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print an `OpenbellError` as one line without a traceback, and exit."""
    try:
        yield
    except OpenbellError as error:
        fail(error.message)
    except BaseExceptionGroup as group:
        # Several tasks may have failed: one reason is enough.
        known: BaseException | None = group.subgroup(OpenbellError)
        while isinstance(known, BaseExceptionGroup):
            known = known.exceptions[0]
        if not isinstance(known, OpenbellError):
            raise
        fail(known.message)


def settings_for(
    as_of: str | None = None,
    read_only: bool = False,
    trade: bool = False,
    scenario_name: str | None = None,
    **others: Any,
) -> Settings:
    """Returns the settings with a command's options applied, and configures the log. None stands for a missing option."""
    with plain_errors():
        flags: dict[str, Any] = {
            "as_of": as_of,
            "read_only": read_only or None,
            "trade": trade or None,
            "scenario": scenario_name,
        }
        settings = load(**flags, **others)
    start_log(settings)
    share_as(settings.home)
    if warning := file_of(settings.home).warning:
        log.warning("%s", warning)
    if warning := unknown_variables(os.environ):
        log.warning("%s", warning)
    return settings


def service_settings(*given: Any, **others: Any) -> Settings:
    """Returns the settings of a command that runs until it is stopped.

    If its log is JSON, everything that it prints on standard error is.
    """
    settings = settings_for(*given, **others)
    if settings.log_format.lower() == "json":
        only_json_lines()
    return settings


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"openbell {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A trading desk as MCP tools."""


def moment(text: str, option: str) -> int:
    """Returns epoch seconds of a year, a month, a day or a time. Raises `InvalidParameter`."""
    try:
        return int(parse_time(whole_date(text)))
    except InvalidParameter:
        raise InvalidParameter(
            f"{option} {text[:40]!r} is no time: write 2010, 2010-06, 2010-06-30 or ISO 8601"
        ) from None


def result_of(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine as `asyncio.run` does, and returns its result.

    When asyncio.run ends, Python formats its task twice, with the task's result and all of its arrays.
    """
    import asyncio

    results: list[T] = []

    async def keep() -> None:
        results.append(await work)

    asyncio.run(keep())
    return results[0]
