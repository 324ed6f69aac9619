"""What `openbell backtest` and `openbell sweep` share: options, a run with the data behind it, and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.output_files import PICTURES
from openbell.market.plural import counted
from openbell.market.timeframes import SHORT

if TYPE_CHECKING:
    from openbell.backtest.rules import Setup
    from openbell.backtest.runs import Backtest
    from openbell.desk.desk import Desk
    from openbell.desk.settings import Settings
    from openbell.market.bars import Bars
    from openbell.market.series import Series
    from openbell.strategies.compiled import Compiled

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
Span = tuple[int | None, int | None]
"""The first time and the time after the last, in seconds since 1970; None for the default."""
PAGES = (".html", ".htm")


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


@dataclass(frozen=True, slots=True)
class Ran:
    """A backtest that was run, and the data behind it."""

    strategy: Compiled
    found: Backtest
    setup: Setup
    data: str
    """The origins of the bars, joined by +."""
    source: str
    """Where the bars come from and what they are made of."""
    remote: bool = False
    """True if the service of OPENBELL_BACKTESTER computed it."""
    overfitting: tuple[str, ...] = ()
    """How much of the figures may be luck, in sentences, if a sweep chose the parameters."""


async def run_backtest(desk: Desk, strategy: Compiled, series: Series, setup: Setup, span: Span) -> Ran:
    """Returns the backtest over the bars that open in a span, and the data behind it."""
    found = await desk.backtests.run(strategy, series, setup, *span)
    facts = await desk.facts(found.bars)
    origins = sorted({source.origin.value for source in facts.sources}) or [desk.data]
    feeds = sorted({f"{source.feed} ({source.adjustment})" for source in facts.sources}) or [desk.feed.name]
    made_of = f", made of {facts.made_of} bars" if facts.made_of else ""
    failure = f"; {facts.failure}" if facts.failure else ""
    source, remote = f"{', '.join(feeds)}{made_of}{failure}", bool(desk.settings.backtester)
    return Ran(strategy, found, setup, "+".join(origins), source, remote)


def equity_picture(done: Ran, file: Path) -> bytes:
    """Returns the picture of the equity in the format of the file. Raises `NotFinite`."""
    from openbell.charts.backtest_charts import equity_scene
    from openbell.charts.look import Look
    from openbell.charts.picture import picture

    badge = "SIMULATED" if "simulated" in done.data else ""
    scene = equity_scene(done.found, Look(), f"{done.strategy.name} · {done.found.bars.series}", badge)
    return picture(scene, form=PICTURES[file.suffix.lower()])


def report_page(done: Ran, _file: Path) -> bytes:
    """Returns the page. Raises `NotFinite`."""
    from openbell.charts.report import BacktestReport, OverfittingNotes, page

    luck = OverfittingNotes(done.overfitting) if done.overfitting else None
    return page(BacktestReport(done.strategy, done.found, done.setup, done.data, done.source, luck)).encode()


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
