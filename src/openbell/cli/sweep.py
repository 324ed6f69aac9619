"""`openbell sweep`: try many parameters of a strategy on past bars, and print the best and how much of them is luck."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import AsOf, Until, app, fail, moment, plain_errors, result_of, settings_for
from openbell.cli.backtest import (
    PAGES,
    Cash,
    ChosenAfter,
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
    report_page,
    run_backtest,
    setup_of,
)
from openbell.cli.spec_files import strategy_named
from openbell.cli.terminal import check_output, progress, write_output
from openbell.market.clock import iso
from openbell.market.plural import counted
from openbell.market.timeframes import SHORT, Timeframe, parse_timeframe

if TYPE_CHECKING:
    from openbell.backtest.grids import Grid
    from openbell.backtest.rules import Setup
    from openbell.backtest.sweeps import Sweep, SweepRow
    from openbell.desk.settings import Settings
    from openbell.strategies.spec import Spec

_COLUMNS = {
    "Sharpe": "sharpe",
    "return": "total_return",
    "annual": "annual_return",
    "drawdown": "max_drawdown",
    "Calmar": "calmar",
    "trades": "trades",
    "win rate": "win_rate",
    "rating": "score",
}
_SHARES = frozenset({"total_return", "annual_return", "max_drawdown", "win_rate"})


ValuesOf = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-p",
        metavar="NAME=VALUES",
        help="Values of a parameter: 5,9,12 or 5..20:5; may be repeated. Others are taken from its range.",
    ),
]


@app.command("sweep")
def sweep(
    strategy: StrategyName,
    symbol: Symbol,
    timeframe: TimeframeName = None,
    since: From = None,
    until: Until = None,
    values: ValuesOf = None,
    most: Annotated[int, typer.Option("--most", help="The most combinations; of more, a sample is tried.")] = 1000,
    by: Annotated[str, typer.Option("--by", help="Rank by sharpe, return, rating or calmar.")] = "sharpe",
    top: Annotated[int, typer.Option("--top", min=1, max=1000, help="How many of the best to print.")] = 10,
    cash: Cash = 10_000.0,
    fee: Fee = None,
    slippage: Slippage = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes; by default as many as pay off. 1: none.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write every combination (.csv).")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the backtest of the best combination as one page (.html).")
    ] = None,
    as_of: AsOf = None,
) -> None:
    """Try many parameters of a strategy on past bars, and print the best and how much of them may be luck.

    With OPENBELL_DASK, the combinations run on the workers of that Dask scheduler.

    \b
    Example:
      openbell sweep MACD_CROSSOVER AAPL --set fastPeriod=6..16:2 --set slowPeriod=20..40:5
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for(as_of)
    try:
        with plain_errors():
            for file, endings in ((output, (".csv",)), (report, PAGES)):
                if file:
                    check_output(file, endings)
            from openbell.backtest.grids import grid, read_values
            from openbell.backtest.sweeps import ranking

            ranking(by)
            given = parse_timeframe(timeframe, SHORT) if timeframe else None
            chosen = strategy_named(settings, strategy, symbol)
            spec = chosen.spec
            tried = grid(spec, read_values(spec, values or []), most)
            setup = setup_of(settings, cash, fee, slippage)
            span = moment(since, "--from") if since else None, moment(until, "--to") if until else None
            swept = _Sweeping(spec, tried, setup, span, jobs, by if report else None)
            found, data, best = result_of(_run(settings, symbol, given or chosen.timeframe, swept))
            _write(output, report, found, data, best)
    except KeyboardInterrupt:
        fail("interrupted: nothing was written", 130)
    _print(found, tried, setup, data, by, top)
    for file in (output, report):
        if file:
            typer.echo(f"{file}: {file.stat().st_size:,} bytes")


def _write(output: Path | None, report: Path | None, found: Sweep, data: str, best: Ran | None) -> None:
    if output:
        write_output(output, _table(found, data))
    if report and best:
        write_output(report, report_page(best, report))


@dataclass(frozen=True, slots=True)
class _Sweeping:
    """What is to be swept."""

    spec: Spec
    tried: Grid
    setup: Setup
    span: Span
    jobs: int | None
    best_by: str | None
    """The figure by which the best combination is chosen for a report; None without a report."""


async def _run(
    settings: Settings, symbol: str, timeframe: Timeframe, wanted: _Sweeping
) -> tuple[Sweep, str, Ran | None]:
    """Returns the sweep, the origin of its bars, and the backtest of the best combination. Shows a progress bar."""
    from openbell.desk.desk import Desk
    from openbell.market.series import Series
    from openbell.strategies.compiled import compiled

    spec, combinations = wanted.spec, wanted.tried.combinations
    async with Desk(settings) as desk:
        series = Series(await desk.bars.find(symbol), timeframe)
        with progress(spec.name, len(combinations), "combinations", least=2) as advance:
            done = 0

            def step(now: int, _all: int) -> None:
                nonlocal done
                advance(now - done)
                done = now

            found = await desk.backtests.sweep(
                spec, series, combinations, wanted.setup, *wanted.span, jobs=wanted.jobs, progress=step
            )
        facts = await desk.facts(found.bars)
        data = "+".join(sorted({source.origin.value for source in facts.sources}) or [desk.data])
        if wanted.best_by is None:
            return found, data, None
        best = compiled(spec, found.best(wanted.best_by, 1)[0].parameters)
        after = ChosenAfter(len(combinations))
        ran = await run_backtest(desk, best, series, wanted.setup, wanted.span, after)
    return found, data, replace(ran, luck=found.overfitting.sentences())


def _print(found: Sweep, tried: Grid, setup: Setup, data: str, by: str, top: int) -> None:
    bars, count = found.bars, len(found.rows)
    first, last = iso(int(bars.time[0])), iso(int(bars.time[-1]))
    typer.echo(f"{found.spec.name} on {bars.series}, {len(bars):,} {data} bars from {first} to {last}")
    typer.echo(costs_line(setup))
    more = tried.possible > count
    best = found.best(by, top)
    tries = f"{count:,} of {counted(tried.possible, 'combination')}" if more else counted(count, "combination")
    verb = "was" if count == 1 else "were"
    typer.echo(f"{tries} {verb} tried. The best {len(best):,} by {by}:")
    for line in _aligned(best):
        typer.echo(f"  {line}")
    held = float(bars.close[-1] / bars.open[0] - 1)
    typer.echo(f"Holding {bars.instrument} returned {held * 100:,.2f} %.")
    for sentence in found.overfitting.sentences():
        typer.echo(sentence)
    echo_data_notes(bars, found.note, data)


def _aligned(rows: list[SweepRow]) -> list[str]:
    """Returns the lines of a table of parameters and figures."""
    names = list(rows[0].parameters)
    cells = [[*names, *_COLUMNS]]
    cells += [
        [*(f"{row.parameters[name]:g}" for name in names), *(_figure(row, each) for each in _COLUMNS.values())]
        for row in rows
    ]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]


def _figure(row: SweepRow, name: str) -> str:
    value = getattr(row.metrics, name)
    if value is None:
        return "–"
    if name in _SHARES:
        return f"{value * 100:,.2f} %"
    return str(value) if isinstance(value, int) else f"{value:,.2f}"


def _renamed(metrics: dict[str, object]) -> dict[str, object]:
    """Returns figures by the names that the output has: the score of a run is its rating."""
    return {"rating" if name == "score" else name: value for name, value in metrics.items()}


def _table(found: Sweep, data: str) -> bytes:
    """Returns all combinations as CSV, in the order in which they were tried; undefined figures are empty."""
    from dataclasses import asdict

    note = ["# simulated by Openbell, not real prices"] if "simulated" in data else []
    rows = [{**row.parameters, **_renamed(asdict(row.metrics))} for row in found.rows]
    lines = [",".join("" if each is None else repr(each) for each in row.values()) for row in rows]
    return "\n".join([*note, ",".join(rows[0]), *lines, ""]).encode()
