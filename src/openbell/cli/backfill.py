"""`openbell backfill SYMBOL…`: fetch history from the feed into the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import Since, Until, app, fail, moment, plain_errors, settings_for
from openbell.cli.terminal import progress
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter, OpenbellError, Refused, SourceConflict
from openbell.market.plural import counted
from openbell.market.timeframes import SHORT, Timeframe, name_of, parse_timeframe

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.market.series import Series

_PIECE = 10_000
"""Bars of one piece: what is stored stays if the command is interrupted after it."""


@app.command("backfill")
def backfill(
    symbols: Annotated[list[str], typer.Argument(metavar="SYMBOL…", help="The symbols: AAPL BTC/USD.")],
    since: Since,
    timeframe: Annotated[str, typer.Option("--timeframe", "-t", help="The timeframe: 1m to 1w.")] = "1d",
    until: Until = None,
) -> None:
    """Fetch history from the feed into the store.

    Bars that are stored already are not fetched again: after Ctrl-C or an outage, the same command continues. If the feed
    does not have the timeframe, the largest one that it can be made of is fetched.

    \b
    Example:
      OPENBELL_FEED=ccxt:kraken openbell backfill BTC/USD ETH/USD -t 1d --from 2020
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for()
    try:
        with plain_errors():
            if settings.read_only:
                raise Refused("OPENBELL_READ_ONLY is set: nothing can be stored")
            wanted = parse_timeframe(timeframe, SHORT)
            asyncio.run(_backfill(symbols, wanted, moment(since, "--from"), moment(until, "--to") if until else None))
    except KeyboardInterrupt:
        fail("interrupted; what was fetched is stored: run the same command again to fetch the rest", 130)


async def _backfill(symbols: list[str], timeframe: Timeframe, start: int, end: int | None) -> None:
    from openbell.desk.desk import Desk
    from openbell.market.instruments import parse
    from openbell.market.series import Series

    instruments = [parse(symbol) for symbol in symbols]
    failures, again = [], ""
    async with Desk(settings_for()) as desk:
        stop = min(desk.bars.closed_until(), end or desk.bars.closed_until())
        if start >= stop:
            raise InvalidParameter(f"--from {iso(start)} is not before --to {iso(stop)}")
        if desk.feed.source is None:
            raise Refused(f"the feed {desk.feed.name} has no history: set OPENBELL_FEED, for example to yahoo")
        for instrument in instruments:
            try:
                typer.echo(await _fetch(desk, Series(instrument, timeframe), start, stop))
            except OpenbellError as error:
                await desk.symbol_advice.add_to(error)
                failures.append(f"{instrument}: {error.message}")
                if not isinstance(error, SourceConflict):
                    again = "\nwhat was fetched is stored: run the same command again to fetch the rest"
    if failures:
        fail("\n".join(failures) + again)


async def _fetch(desk: Desk, series: Series, start: int, end: int) -> str:
    """Fetch one symbol piece by piece; returns a line about what is stored."""
    from openbell.market.errors import UnknownSymbol
    from openbell.market.series_plan import base_of
    from openbell.stores.port import Span

    natives = await desk.bars.history.natives(series.instrument)
    base = base_of(series.instrument, series.timeframe, natives)
    if base is None:
        raise UnknownSymbol(series.instrument.symbol, f"the feed {desk.feed.name} does not have it")
    fetched = series.at(base)
    first = max(start, desk.bars.history.reach(fetched) or start)
    with progress(f"{series}", max(1, end - first)) as advance:
        for at, until in _pieces(first, end, _PIECE * base.seconds):
            if failure := await desk.bars.history.fill(fetched, Span(at, until)):
                raise failure
            if refused := desk.bars.history.refused(fetched):
                raise refused
            advance(until - at)
    bars = await desk.threads.run(desk.store.read, fetched, start, end)
    made = "" if base is series.timeframe else f", which {name_of(series.timeframe, SHORT)} bars are made of"
    if not len(bars):
        return f"{fetched}: the feed {desk.feed.name} has no bars from {iso(start)} on{made}"
    return f"{fetched}: {counted(len(bars), 'bar')} stored, {iso(bars.time[0])} to {iso(bars.time[-1])}{made}"


def _pieces(start: int, end: int, length: int) -> Iterator[tuple[int, int]]:
    """Spans from the newest back: the latest history is there first."""
    while end > start:
        first = max(start, end - length)
        yield first, end
        end = first
