"""`openbell backtest`: trade a strategy on past bars, print its figures, and write a picture or a report.

`openbell sweep` shares its options, its run and its files.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from openbell.cli.app import AsOf, Until, app, moment, plain_errors, result_of, settings_for
from openbell.cli.spec_files import strategy_named
from openbell.cli.terminal import PICTURES, check_output, progress, write_output
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter
from openbell.market.plural import counted
from openbell.market.timeframes import SHORT, Timeframe, parse_timeframe

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
    luck: tuple[str, ...] = ()
    """How much of the figures may be luck, in sentences."""


class ChosenAfter(NamedTuple):
    """How a strategy was chosen, which says what proves it."""

    tries: int = 1
    """Strategies or combinations that were tried."""
    submitted_at: float | None = None
    """Only later trades test a submitted spec."""


async def run_backtest(
    desk: Desk, strategy: Compiled, series: Series, setup: Setup, span: Span, chosen: ChosenAfter
) -> Ran:
    """Returns the backtest over the bars that open in a span, and the data behind it."""
    tries, submitted_at = chosen
    unseen = -inf if submitted_at is None else submitted_at
    found = await desk.backtests.run(strategy, series, setup, *span, unseen_from=unseen)
    facts = await desk.facts(found.bars)
    origins = sorted({source.origin.value for source in facts.sources}) or [desk.data]
    feeds = sorted({f"{source.feed} ({source.adjustment})" for source in facts.sources}) or [desk.feed.name]
    made_of = f", made of {facts.made_of} bars" if facts.made_of else ""
    failure = f"; {facts.failure}" if facts.failure else ""
    source, remote = f"{', '.join(feeds)}{made_of}{failure}", bool(desk.settings.backtester)
    assert found.timing, "a backtest of the desk has it"
    verdict = found.timing.edge(tries).sentence(since_submission=submitted_at is not None)
    return Ran(strategy, found, setup, "+".join(origins), source, remote, (f"Timing: {verdict}.",))


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
    from openbell.charts.report import BacktestReport, page

    return page(BacktestReport(done.strategy, done.found, done.setup, done.data, done.source, done.luck)).encode()


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
            after = ChosenAfter(chosen.tries + bool(values), chosen.submitted_at)  # other values are another try
            done = result_of(_run(settings, symbol, given or chosen.timeframe, made, setup, span, after))
            advance(1)
            for file, make in files:
                write_output(file, make(done, file))
                advance(1)
    _print(done, chosen.training_note(done.found.bars), trades)
    for file, _ in files:
        typer.echo(f"{file}: {file.stat().st_size:,} bytes")


async def _run(
    settings: Settings,
    symbol: str,
    timeframe: Timeframe,
    strategy: Compiled,
    setup: Setup,
    span: Span,
    chosen: ChosenAfter,
) -> Ran:
    """Returns the backtest over the bars that open in a span, and the data behind it."""
    from openbell.desk.desk import Desk
    from openbell.market.series import Series

    async with Desk(settings) as desk:
        series = Series(await desk.bars.find(symbol), timeframe)
        return await run_backtest(desk, strategy, series, setup, span, chosen)


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
    from openbell.backtest.outcome import figures

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
    for sentence in done.luck:
        typer.echo(sentence)
    if trades:
        for trade in found.run.trades:
            typer.echo(
                f"  {iso(int(bars.time[trade.entry_index]))} {trade.side.lower():5} {trade.quantity:.8g} at "
                f"{trade.entry_price:.8g}, {iso(int(bars.time[trade.exit_index]))} at {trade.exit_price:.8g} "
                f"({trade.reason.lower().replace('_', ' ')}): {trade.profit:+,.2f}"
            )
    echo_data_notes(bars, "; ".join(filter(None, (training, found.note))), data)
