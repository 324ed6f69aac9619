"""Arguments and options of the commands that trade strategies on past bars."""

from __future__ import annotations

from typing import Annotated

import typer

from openbell.market.timeframes import SHORT

StrategyName = Annotated[
    str, typer.Argument(metavar="STRATEGY", help="A canonical strategy (MACD_CROSSOVER), or a spec file.")
]
Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="AAPL, BTC/USD or EUR/USD.")]
TimeframeName = Annotated[str, typer.Option("--timeframe", "-t", help=f"One of {', '.join(SHORT)}.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="The first time; by default 1,250 bars before the end."),
]
Cash = Annotated[float, typer.Option("--cash", help="The cash at the start.")]
Fee = Annotated[float, typer.Option("--fee", help="The fee of a fill in per cent.")]
Slippage = Annotated[float, typer.Option("--slippage", help="The slippage of a fill in per cent.")]
