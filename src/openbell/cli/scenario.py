"""`openbell scenario`: the what-if accounts of desks whose clock is not the present."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, said_plainly, settings_for
from openbell.market.clock import SystemClock, iso

if TYPE_CHECKING:
    from openbell.desk.trading.record_locations import Scenarios

scenario = typer.Typer(help="List, empty and remove scenarios: the what-if accounts of --as-of.", no_args_is_help=True)
app.add_typer(scenario, name="scenario")
Name = Annotated[str, typer.Argument(help="The scenario's name.")]


@scenario.command("list")
def show() -> None:
    """List the scenarios of this market: how many ledger entries each has, and up to which time it has gone."""
    scenarios = _scenarios()

    async def work() -> list[str]:
        lines = []
        for name in await scenarios.names():
            entries, until, holder = await scenarios.describe(name)
            time = f"up to {iso(until)}" if entries else "empty"
            lines.append(f"{name}  {entries} entries, {time}{f', in use by {holder}' if holder else ''}")
        return lines

    with said_plainly():
        lines = asyncio.run(work())
    for line in lines or ["no scenarios; openbell call … --as-of TIME --trade --scenario NAME begins one"]:
        typer.echo(line)


@scenario.command("reset")
def reset(name: Name) -> None:
    """Empty a scenario: its account, orders, alerts, decisions and ledger. It can then begin at any time."""
    _remove(name, keep=True)
    typer.echo(f"{name} is empty")


@scenario.command("remove")
def remove(name: Name) -> None:
    """Remove a scenario and all that it has recorded."""
    _remove(name, keep=False)
    typer.echo(f"{name} is removed")


def _remove(name: str, *, keep: bool) -> None:
    scenarios = _scenarios()
    with said_plainly():
        asyncio.run(scenarios.remove(name, keep=keep))


def _scenarios() -> Scenarios:
    from openbell.desk.trading.record_locations import Scenarios

    settings = settings_for()
    if settings.live:
        fail("a desk that trades with real money has no scenarios")
    return Scenarios(settings, SystemClock())
