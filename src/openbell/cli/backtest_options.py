"""Arguments and options of the commands that trade strategies on past bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from openbell.market.timeframes import SHORT

if TYPE_CHECKING:
    from openbell.backtest.rules import Setup
    from openbell.desk.settings import Settings

StrategyName = Annotated[
    str,
    typer.Argument(
        metavar="STRATEGY",
        help="A canonical or submitted strategy (MACD_CROSSOVER), an implementation (impl_…), or a spec file.",
    ),
]
Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="AAPL, BTC/USD or EUR/USD.")]
TimeframeName = Annotated[
    str | None,
    typer.Option("--timeframe", "-t", help=f"One of {', '.join(SHORT)}; by default 1d, or that of the implementation."),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="The first time; by default the newest 1,250 bars are used."),
]
Cash = Annotated[float, typer.Option("--cash", help="The cash at the start.")]
Fee = Annotated[
    float | None, typer.Option("--fee", help="The fee of a fill in per cent; by default that of OPENBELL_PAPER_FEE.")
]
Slippage = Annotated[
    float | None,
    typer.Option("--slippage", help="The slippage of a fill in per cent; by default that of OPENBELL_PAPER_SLIPPAGE."),
]


def setup_of(settings: Settings, cash: float, fee: float | None, slippage: float | None) -> Setup:
    """Returns the cash and the costs of a backtest; those that are None are the costs of paper trading.

    Raises `InvalidParameter`.
    """
    from openbell.backtest.rules import Setup

    return Setup(
        cash,
        float(settings.paper_fee) if fee is None else fee / 100,
        float(settings.paper_slippage) if slippage is None else slippage / 100,
    )


def costs_line(setup: Setup) -> str:
    """Returns the costs as a line of the output."""
    return f"Each fill costs a fee of {setup.fee * 100:.6g} % and slippage of {setup.slippage * 100:.6g} %."
