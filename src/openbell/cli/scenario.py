"""`openbell scenario`: the separate accounts of desks with `--as-of`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import fail, group, plain_errors, settings_for
from openbell.market.clock import SystemClock, iso
from openbell.market.counting import counted

if TYPE_CHECKING:
    from openbell.desk.trading.record_locations import Scenarios

scenario = group("scenario", "List, empty and remove scenarios: separate accounts of --as-of.")
Name = Annotated[str, typer.Argument(help="The scenario's name.")]


@scenario.command("list")
def show() -> None:
    """List the scenarios of this market, each with the number and the latest time of its ledger entries."""
    scenarios = _scenarios()

    async def work() -> list[str]:
        lines = []
        for name in await scenarios.names():
            entries, until, holder = await scenarios.describe(name)
            time = f"up to {iso(until)}" if entries else "empty"
            lines.append(
                f"{name}  {counted(entries, 'entry', 'entries')}, {time}{f', in use by {holder}' if holder else ''}"
            )
        return lines

    with plain_errors():
        lines = asyncio.run(work())
    for line in lines or ["no scenarios; openbell call … --as-of TIME --trade --scenario NAME creates one"]:
        typer.echo(line)


@scenario.command("reset")
def reset(name: Name) -> None:
    """Empty a scenario: its account, orders, alerts, decisions and ledger. It can then start at any time."""
    _remove(name, keep=True)
    typer.echo(f"{name} is empty")


@scenario.command("remove")
def remove(name: Name) -> None:
    """Remove a scenario with all its records."""
    _remove(name, keep=False)
    typer.echo(f"{name} is removed")


def _remove(name: str, *, keep: bool) -> None:
    if settings_for().read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    scenarios = _scenarios()
    with plain_errors():
        asyncio.run(scenarios.remove(name, keep=keep))


def _scenarios() -> Scenarios:
    from openbell.desk.trading.record_locations import Scenarios

    settings = settings_for()
    if settings.live:
        fail("a desk that trades with real money has no scenarios")
    return Scenarios(settings, SystemClock())
