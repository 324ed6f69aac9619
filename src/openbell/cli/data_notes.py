"""What a reader of a backtest must know about its bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from openbell.market.plural import counted

if TYPE_CHECKING:
    from openbell.market.bars import Bars


def echo_data_notes(bars: Bars, note: str, data: str) -> None:
    """Print which bars are missing, a note about other data, and whether the bars are simulated; nothing if all is well."""
    from openbell.market.series_plan import missing

    if gone := missing(bars):
        verb = "is" if gone == 1 else "are"
        typer.echo(f"{counted(gone, 'bar')} {verb} missing in that time: positions were held across the gaps.")
    if note:
        typer.echo(f"{note[0].upper()}{note[1:]}.")
    if "simulated" in data:
        typer.echo("The bars are simulated, not real prices.")
