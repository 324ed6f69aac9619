"""`openbell backtest`: trade a strategy on past bars, and print its figures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import AsOf, app, plain_errors, settings_for
from openbell.cli.span import Until, moment
from openbell.cli.spec_files import read_spec_file
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter
from openbell.market.timeframes import SHORT, parse_timeframe

if TYPE_CHECKING:
    from openbell.backtest.runs import Backtest
    from openbell.strategies.compiled import Compiled


@app.command("backtest")
def backtest(
    strategy: Annotated[
        str, typer.Argument(metavar="STRATEGY", help="A canonical strategy (MACD_CROSSOVER), or a spec file.")
    ],
    symbol: Annotated[str, typer.Argument(metavar="SYMBOL", help="AAPL, BTC/USD or EUR/USD.")],
    timeframe: Annotated[str, typer.Option("--timeframe", "-t", help=f"One of {', '.join(SHORT)}.")] = "1d",
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="The first time; by default 1,250 bars before the end."),
    ] = None,
    until: Until = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--set", "-p", metavar="NAME=VALUE", help="A parameter of the strategy; may be repeated."),
    ] = None,
    cash: Annotated[float, typer.Option("--cash", help="The cash at the start.")] = 10_000.0,
    fee: Annotated[float, typer.Option("--fee", help="The fee of a fill in per cent.")] = 0.1,
    slippage: Annotated[float, typer.Option("--slippage", help="The slippage of a fill in per cent.")] = 0.0,
    trades: Annotated[bool, typer.Option("--trades", help="Print every trade too.")] = False,
    as_of: AsOf = None,
) -> None:
    """Trade a strategy on past bars, and print its figures beside holding the symbol.

    Decisions are made at the close of a bar and filled at the next open.

    \b
    Example:
      openbell backtest MACD_CROSSOVER AAPL --from 2020 --set fastPeriod=8
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for(as_of)
    with plain_errors():
        from openbell.backtest.rules import Setup

        chosen = _strategy(strategy, parameter or [])
        wanted = parse_timeframe(timeframe, SHORT)
        setup = Setup(cash, fee / 100, slippage / 100)
        start, end = (moment(text, name) if text else None for text, name in ((since, "--from"), (until, "--to")))

        async def run() -> tuple[Backtest, str]:
            from openbell.desk.desk import Desk
            from openbell.market.series import Series

            async with Desk(settings) as desk:
                series = Series(await desk.bars.find(symbol), wanted)
                found = await desk.backtests.run(chosen, series, setup, start, end)
                facts = await desk.facts(found.bars)
                sources = sorted({source.origin.value for source in facts.sources}) or [desk.data]
                return found, "+".join(sources)

        found, data = asyncio.run(run())
    _print(chosen, found, data, trades)


def _strategy(name: str, parameters: list[str]) -> Compiled:
    """The strategy of a name or a file, with parameters. Raises `OpenbellError`."""
    from openbell.market.nearest import did_you_mean
    from openbell.strategies.compiled import compiled
    from openbell.strategies.library import canonical

    values: dict[str, int | float] = {}
    for text in parameters:
        key, equals, value = text.partition("=")
        try:
            values[key.strip()] = float(value) if equals else float("nan")
        except ValueError:
            raise InvalidParameter(f"--set {text[:40]!r}: write NAME=VALUE with a number") from None
    path = Path(name)
    if path.suffix in {".yaml", ".yml", ".json"}:
        return compiled(read_spec_file(path), values)
    known = canonical()
    if name.upper() not in known:
        advice = did_you_mean(name, known) or "; openbell strategies list has them all"
        raise InvalidParameter(f"no strategy {name[:80]!r}{advice}")
    return compiled(known[name.upper()], values)


def _print(strategy: Compiled, found: Backtest, data: str, trades: bool) -> None:
    from openbell.market.plan import missing

    bars, metrics = found.bars, found.metrics
    first, last = iso(int(bars.time[0])), iso(int(bars.time[-1]))
    settings = ", ".join(f"{name}={value:g}" for name, value in strategy.parameters.items())
    typer.echo(f"{strategy.name} ({settings}) on {bars.series}, {len(bars):,} {data} bars from {first} to {last}")
    held = float(bars.close[-1] / bars.open[0] - 1)
    rows = [
        ("total return", _share(metrics.total_return)),
        ("of holding", _share(held)),
        ("annual return", _share(metrics.annual_return)),
        ("volatility", _share(metrics.volatility)),
        ("Sharpe", _ratio(metrics.sharpe)),
        ("Sortino", _ratio(metrics.sortino)),
        ("Calmar", _ratio(metrics.calmar)),
        ("max drawdown", _share(metrics.max_drawdown)),
        ("trades", str(metrics.trades)),
        ("win rate", _share(metrics.win_rate)),
        ("profit factor", _ratio(metrics.profit_factor)),
        ("exposure", _share(metrics.exposure)),
        ("turnover", _ratio(metrics.turnover)),
        ("score", _ratio(metrics.score)),
    ]
    for name, value in rows:
        typer.echo(f"  {name:14} {value:>10}")
    if trades:
        for each in found.run.trades:
            typer.echo(
                f"  {iso(int(bars.time[each.entry_index]))} {each.side.lower():5} {each.quantity:.8g} at "
                f"{each.entry_price:.8g}, {iso(int(bars.time[each.exit_index]))} at {each.exit_price:.8g} "
                f"({each.reason.lower().replace('_', ' ')}): {each.profit:+,.2f}"
            )
    if gone := missing(bars):
        typer.echo(f"{gone:,} bars are missing in that time: positions were held across the gaps.")
    if found.note:
        typer.echo(f"{found.note}.")
    if "simulated" in data:
        typer.echo("The bars are simulated, not real prices.")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:,.2f} %"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"
