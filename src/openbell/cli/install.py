"""`openbell install CLIENT`: write the MCP configuration of a client."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from openbell.cli import client_config
from openbell.cli.app import ReadOnly, Trade, app, fail, plain_errors
from openbell.cli.client_config import CLIENTS, Machine, Server, file_of
from openbell.desk.settings import all_settings, load
from openbell.market.nearest import did_you_mean
from openbell.servers import NAMES

_VENDORS_KEY = re.compile(r"(?:ALPACA_|CHART_IMG_)[A-Z_]*KEY").fullmatch
"""Keys in variables that vendors have named."""
_USUAL = ("market-data", "chart-signals", "chartgen", "strategy", "portfolio")
"""The servers that answer the usual questions; a client reads the tools of each one, so that fewer are cheaper."""


@app.command("install")
def install(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")],
    servers: Annotated[
        list[str] | None,
        typer.Option("--server", metavar="SERVER", help="A server of openbell mcp; can be repeated."),
    ] = None,
    trade: Trade = False,
    read_only: ReadOnly = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="The configuration file, if it is not the client's own for this user.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the change and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
) -> None:
    """Add Openbell to the configuration of an MCP client, after showing the change.

    Without --server it adds market-data, chart-signals, chartgen, strategy and portfolio.

    The entries get the feed and the other settings of this shell (OPENBELL_ variables), because a client starts its servers
    without them. Keys, tokens and passwords are not written; the command names them.

    The file that was there is kept as a copy beside it. Everything else in it stays. A file with comments is not changed:
    the command prints what to add.

    \b
    Examples:
      openbell install claude-desktop
      OPENBELL_FEED=ccxt:kraken openbell install claude-desktop
      openbell install cursor --server chartgen --trade
      openbell install vscode --file .vscode/mcp.json --dry-run
    """  # noqa: D301 (click reads the backspace)
    if client not in CLIENTS:
        fail(f"{client} is not a client that openbell can configure{did_you_mean(client, CLIENTS)}", 2)
    for name in servers or ():
        if name not in NAMES:
            fail(f"there is no server {name}{did_you_mean(name, NAMES)}", 2)
    chosen = CLIENTS[client]
    path = file or file_of(chosen, Machine(sys.platform, Path.home(), os.environ))
    flags = [*(["--trade"] if trade else []), *(["--read-only"] if read_only else [])]
    with plain_errors():
        environ, secrets = shell_settings(os.environ)
        wanted = [_server(name, flags, environ) for name in servers or _USUAL]
        before = client_config.read(path)
        after = client_config.changed(before, chosen, wanted, path)
        if after == before:
            typer.echo(f"{path} has these servers already: nothing was changed")
            return
        typer.echo("".join(_difference(before, after, path)), nl=False)
        if secrets:
            typer.echo(
                f"note: {', '.join(secrets)} not written, because this command writes no secrets into files of clients: "
                'if the client needs them, add them to "env" of the entries yourself'
            )
        if dry_run:
            return
        if not yes and not typer.confirm(f"Write {path}?"):
            fail("nothing was written")
        backup = client_config.write(path, after, before)
    kept = f"; the file as it was: {backup}" if backup else ""
    typer.echo(f"wrote {path}{kept}\nrestart {chosen.title} to use it")


def shell_settings(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Returns the settings of a shell for the entry of a client, and the names of those that are secrets.

    Raises `SettingsError` if a server would not start with them.
    """
    load(environ)
    known = {each.variable: each for each in all_settings().values()}
    found = {
        variable: value
        for variable, value in environ.items()
        if value and (variable in known or _VENDORS_KEY(variable))
    }
    secrets = [each for each in found if each not in known or known[each].shows_secret(found[each])]
    carried = {each: _absolute(each, value) for each, value in found.items() if each not in secrets}
    return dict(sorted(carried.items())), sorted(secrets)


def _absolute(variable: str, value: str) -> str:
    """Returns the value of a setting; a path does not depend on the folder in which the client starts its servers."""
    is_path = variable == "OPENBELL_HOME" or "_TLS_" in variable
    return str(Path(value).expanduser().absolute()) if is_path else value


def _server(name: str, flags: list[str], environ: Mapping[str, str]) -> Server:
    program = Path(sys.executable).with_name("openbell.exe" if sys.platform == "win32" else "openbell")
    command = [str(program)] if program.exists() else [sys.executable, "-m", "openbell.cli.entry"]
    return Server(f"openbell-{name}", [*command, "mcp", name, *flags], environ)


def _difference(before: str, after: str, path: Path) -> list[str]:
    """Returns the lines that change, as `diff -u` prints them."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(path), f"{path} (new)"
    )
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]
