"""The commands and what they have in common. Each command is a module that loads what it needs when it runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from openbell import __version__
from openbell.desk.settings import Settings, load
from openbell.market.errors import OpenbellError

app = typer.Typer(
    name="openbell",
    help="The whole trading desk as MCP tools. Starts on a simulated market: no account, no key.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ReadOnly = Annotated[
    bool,
    typer.Option("--read-only", help="Refuse every tool that writes and change nothing in the home; nothing lifts it."),
]
Trade = Annotated[bool, typer.Option("--trade", help="Allow the trading tools.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="Let the clock stand at this time (ISO 8601): nothing later is seen."),
]


InScenario = Annotated[
    str | None,
    typer.Option(
        "--scenario", metavar="NAME", help="With --as-of: the what-if account to act in (as-of; see openbell scenario)."
    ),
]


def fail(message: str, code: int = 1) -> NoReturn:
    """Say what is wrong on standard error and leave."""
    typer.echo(f"openbell: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def said_plainly() -> Iterator[None]:
    """Errors of ours as one line, without a trace."""
    try:
        yield
    except OpenbellError as error:
        fail(error.message)
    except BaseExceptionGroup as group:
        # What tasks that ran together ended with: one reason is enough.
        known: BaseException | None = group.subgroup(OpenbellError)
        while isinstance(known, BaseExceptionGroup):
            known = known.exceptions[0]
        if not isinstance(known, OpenbellError):
            raise
        fail(known.message)


def settings_for(
    as_of: str | None = None, read_only: bool = False, trade: bool = False, scenario_name: str | None = None
) -> Settings:
    """The settings with a command's flags over them, and the log as they say."""
    with said_plainly():
        settings = load(as_of=as_of, read_only=read_only or None, trade=trade or None, scenario=scenario_name)
    logging.basicConfig(
        level=settings.log.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # What libraries say about every request is noise, and their innermost layers would write headers down.
    for name in ("httpx2", "httpcore2", "httpcore", "websockets", "ccxt", "aiohttp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return settings


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"openbell {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version_asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """The whole trading desk as MCP tools."""


# Importing a module registers its command; the order is that of --help.
from openbell.cli import up, mcp, call, import_, chart, account, scenario, halt, verify, doctor  # noqa: E402, F401, I001
