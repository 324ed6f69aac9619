"""`openbell scenario`: the separate accounts of desks with `--as-of`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import fail, group, plain_errors, settings_for
from openbell.market.clock import SystemClock, iso
from openbell.market.errors import InvalidParameter
from openbell.market.plural import counted

if TYPE_CHECKING:
    from openbell.desk.settings.open_records import Scenarios

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
        try:
            asyncio.run(scenarios.remove(name, keep=keep))
        except InvalidParameter as error:
            error.message += _elsewhere(name)
            raise


def _elsewhere(name: str) -> str:
    """Returns which other markets of this home have a scenario of a name, and the setting that reads them."""
    settings = settings_for()
    folders = [settings.home, settings.home / "simulated", *sorted((settings.home / "simulated").glob("seed-*"))]
    # A name that is no plain one, such as `..`, would lead out of the folder.
    others = (each for each in folders if each != settings.market_folder and name == Path(name).name)
    found = [_setting_of(each, settings.home) for each in others if (each / "scenarios" / name).is_dir()]
    return f"; {name} exists in another market: {' and '.join(found)}" if found and name not in {"", ".", ".."} else ""


def _setting_of(folder: Path, home: Path) -> str:
    if folder == home:
        return "OPENBELL_FEED=none (or the feed it was made with) reads that of the real market"
    seed = folder.name.removeprefix("seed-") if folder.name != "simulated" else ""
    return f"OPENBELL_FEED=sim{f' OPENBELL_SIM_SEED={seed}' if seed else ''} reads that of the simulated market"


def _scenarios() -> Scenarios:
    from openbell.desk.settings.open_records import Scenarios

    settings = settings_for()
    if settings.live:
        fail("a desk that trades with real money has no scenarios")
    return Scenarios(settings, SystemClock())
