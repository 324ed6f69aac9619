"""`openbell backtest`: trade a strategy on past bars, print its figures, and write a picture or a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import AsOf, Until, app, moment, plain_errors, result_of, settings_for
from openbell.cli.backtest_runs import (
    PAGES,
    Cash,
    Fee,
    From,
    Ran,
    Slippage,
    Span,
    StrategyName,
    Symbol,
    TimeframeName,
    costs_line,
    echo_data_notes,
    equity_picture,
    report_page,
    run_backtest,
    setup_of,
)
from openbell.cli.output_files import PICTURES, check_output, write_output
from openbell.cli.spec_files import strategy_named
from openbell.cli.terminal import progress
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter
from openbell.market.timeframes import SHORT, Timeframe, parse_timeframe

if TYPE_CHECKING:
    from openbell.backtest.rules import Setup
    from openbell.desk.settings import Settings
    from openbell.strategies.compiled import Compiled


@app.command("backtest")
def backtest(
    strategy: StrategyName,
    symbol: Symbol,
    timeframe: TimeframeName = None,
    since: From = None,
    until: Until = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--set", "-p", metavar="NAME=VALUE", help="A parameter of the strategy; may be repeated."),
    ] = None,
    cash: Cash = 10_000.0,
    fee: Fee = None,
    slippage: Slippage = None,
    trades: Annotated[bool, typer.Option("--trades", help="Print every trade too.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write equity and drawdown as a picture (.png, .jpg or .svg)."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write charts, figures and trades as one page (.html).")
    ] = None,
    as_of: AsOf = None,
) -> None:
    """Trade a strategy on past bars, and print its figures beside holding the symbol.

    Decisions are made at the close of a bar and filled at the next open.

    \b
    Example:
      openbell backtest MACD_CROSSOVER AAPL --from 2020 --set fastPeriod=8 --report macd.html
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for(as_of)
    with plain_errors():
        for file, endings in ((output, tuple(PICTURES)), (report, PAGES)):
            if file:
                check_output(file, endings)
        from openbell.strategies.compiled import compiled

        values = _values(parameter or [])
        given = parse_timeframe(timeframe, SHORT) if timeframe else None
        setup = setup_of(settings, cash, fee, slippage)
        span = moment(since, "--from") if since else None, moment(until, "--to") if until else None
        chosen = strategy_named(settings, strategy, symbol)
        made = compiled(chosen.spec, {**chosen.parameters, **values})
        files = [(file, make) for file, make in ((output, equity_picture), (report, report_page)) if file]
        with progress("backtest", 1 + len(files), least=2) as advance:
            done = result_of(_run(settings, symbol, given or chosen.timeframe, made, setup, span))
            advance(1)
            for file, make in files:
                write_output(file, make(done, file))
                advance(1)
    _print(done, "" if values else chosen.training_note(done.found.bars), trades)
    for file, _ in files:
        typer.echo(f"{file}: {file.stat().st_size:,} bytes")


async def _run(
    settings: Settings, symbol: str, timeframe: Timeframe, strategy: Compiled, setup: Setup, span: Span
) -> Ran:
    """Returns the backtest over the bars that open in a span, and the data behind it."""
    from openbell.desk.desk import Desk
    from openbell.market.series import Series

    async with Desk(settings) as desk:
        series = Series(await desk.bars.find(symbol), timeframe)
        return await run_backtest(desk, strategy, series, setup, span)


def _values(parameters: list[str]) -> dict[str, int | float]:
    """Returns the values of parameters by name. Raises `InvalidParameter`."""
    values: dict[str, int | float] = {}
    for text in parameters:
        key, equals, value = text.partition("=")
        try:
            values[key.strip()] = float(value) if equals else float("nan")
        except ValueError:
            raise InvalidParameter(f"--set {text[:40]!r}: write NAME=VALUE with a number") from None
    return values


def _print(done: Ran, training: str, trades: bool) -> None:
    from openbell.backtest.figures import figures

    strategy, found, data = done.strategy, done.found, done.data
    bars = found.bars
    first, last = iso(int(bars.time[0])), iso(int(bars.time[-1]))
    remote = ", computed remotely" if done.remote else ""
    settings = ", ".join(f"{name}={value:g}" for name, value in strategy.parameters.items())
    typer.echo(
        f"{strategy.name} ({settings}) on {bars.series}, {len(bars):,} {data} bars from {first} to {last}{remote}"
    )
    typer.echo(costs_line(done.setup))
    for each in figures(found):
        typer.echo(f"  {each.name:14} {each.text:>10}")
    if trades:
        for trade in found.run.trades:
            typer.echo(
                f"  {iso(int(bars.time[trade.entry_index]))} {trade.side.lower():5} {trade.quantity:.8g} at "
                f"{trade.entry_price:.8g}, {iso(int(bars.time[trade.exit_index]))} at {trade.exit_price:.8g} "
                f"({trade.reason.lower().replace('_', ' ')}): {trade.profit:+,.2f}"
            )
    echo_data_notes(bars, "; ".join(filter(None, (training, found.note))), data)
