"""`openbell doctor`: check the desk, and print the command that fixes each problem."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from openbell import __version__
from openbell.cli.app import AsOf, app, fail, settings_for
from openbell.cli.findings import IMPORT, Finding, grouped, lines_of, named
from openbell.cli.service_checks import (
    check_chart_images,
    check_collector,
    check_feeds,
    check_gateway,
    check_health,
    check_privacy,
    check_python,
)
from openbell.cli.store_checks import check_bars, check_home, check_writes, mend_bars
from openbell.desk.desk import Desk
from openbell.feeds.registry import parts_of
from openbell.market.clock import iso
from openbell.market.errors import FeedUnavailable, OpenbellError, StoreError, StoreUnreachable
from openbell.market.plural import counted
from openbell.market.sessions import stock_phase

if TYPE_CHECKING:
    from openbell.desk.trading_desk import TradingDesk

_POSTGRES_UNREACHABLE = "start PostgreSQL, or check OPENBELL_DATABASE_URL"
_PARTS = ("mcp", "numpy", "pyarrow", "TA-Lib", "pydantic")


@app.command("doctor")
def doctor(
    as_of: AsOf = None,
    mend: Annotated[
        bool,
        typer.Option(
            "--mend",
            help="First take bars that were lost, or stored before they had closed, out of the coverage, so that they are "
            "fetched again, and have imported bars read that are stored but left out (see docs/data.md).",
        ),
    ] = False,
) -> None:
    """Check this desk, and print the command that fixes each problem. Exits with 1 if a check fails.

    Without --mend nothing is changed: writes that are tried are taken back.
    """
    settings = settings_for(as_of)
    if mend and settings.read_only:
        fail("OPENBELL_READ_ONLY is set: nothing can be mended")
    found: list[Finding] = []
    if mend:
        found += _run(mend_bars, Desk(settings))
    # Checks must not create, upgrade or move anything, which a desk that may write does.
    desk = Desk(replace(settings, read_only=True))
    for check in (
        _software,
        check_python,
        check_home,
        _clock,
        _watchlist,
        check_bars,
        check_feeds,
        check_collector,
        _signals,
        _records,
        *(() if settings.read_only else (check_writes,)),
        _broker,
        _backtester,
        check_gateway,
        check_chart_images,
        check_health,
        check_privacy,
    ):
        found += _run(check, desk)
    for group in grouped(found):
        typer.echo("\n".join(lines_of(group)))
    if any(finding.state == "bad" for finding in found):
        raise typer.Exit(1)


def _run(check: Callable[[Desk], Iterator[Finding]], desk: Desk) -> list[Finding]:
    """Run one check, and print what is in order. Returns the other findings."""
    found = []
    for finding in _findings(check, desk):
        if finding.state == "ok":
            typer.echo(f"ok    {finding.text}")
        else:
            found.append(finding)
    return found


def _findings(check: Callable[[Desk], Iterator[Finding]], desk: Desk) -> Iterator[Finding]:
    """Run one check; report an error of it as a finding, so that the other checks still run."""
    try:
        yield from check(desk)
    except FeedUnavailable as error:
        yield Finding("bad", error.message, "check the keys and the connection, or set OPENBELL_FEED=sim")
    except StoreUnreachable as error:
        store, mend = "PostgreSQL", _POSTGRES_UNREACHABLE
        if store not in error.message:
            store, mend = desk.settings.store_backend.title, desk.settings.store_backend.unreachable
        yield Finding("bad", error.message, mend, cause=f"no connection to {store}")
    except OpenbellError as error:
        yield Finding("bad", error.message)
    except OSError as error:
        yield Finding("bad", str(error))


def _software(desk: Desk) -> Iterator[Finding]:
    yield Finding("ok", f"openbell {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}")
    missing = []
    for part in _PARTS:
        try:
            version(part)
        except PackageNotFoundError:
            missing.append(part)
    if missing:
        yield Finding("bad", f"missing: {', '.join(missing)}", f"{sys.executable} -m pip install openbell")
    for feed, kind in parts_of(desk.settings.feed).items():
        if kind.module and find_spec(kind.module) is None:
            yield Finding("bad", f"the feed {feed} needs {kind.module}", f"pip install 'openbell[{kind.extra}]'")
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        yield Finding(
            "note",
            "PYTHONDONTWRITEBYTECODE is set: every start is two to three times slower",
            "unset PYTHONDONTWRITEBYTECODE",
        )


def _clock(desk: Desk) -> Iterator[Finding]:
    settings = desk.settings
    if settings.as_of:
        pace = f"runs at {settings.replay_speed:g} × from" if settings.replay_speed else "is fixed at"
        yield Finding("note", f"the clock {pace} {settings.as_of}; later data is not used", "unset OPENBELL_AS_OF")
    yield Finding("ok", f"feed {settings.feed} ({desk.data} data); stocks: {stock_phase(desk.clock.epoch())}")
    for feed, kind in parts_of(settings.feed).items():
        if kind.notice:
            yield Finding("note", f"feed {feed}: {kind.notice}")


def _watchlist(desk: Desk) -> Iterator[Finding]:
    watchlist = desk.watchlist.read()
    path = desk.watchlist.path
    yield Finding(
        "ok",
        f"{counted(len(watchlist.instruments), 'symbol')} watched" + ("" if path.exists() else " (the default list)"),
    )
    if not watchlist.instruments and path.exists():
        yield Finding("bad", f"{path} contains no symbol: nothing is watched", "openbell watch add SYMBOL")
    elif not watchlist.instruments:
        yield Finding("note", f"nothing is watched: the feed {desk.settings.feed} has stored symbols only", IMPORT)
    for fault in watchlist.faults:
        yield Finding("bad", f"{path} {fault}", f"edit {path}")
    if desk.feed.source is not None:
        lacking = [each for each in watchlist.instruments if not desk.feed.supports(each)]
        if lacking:
            what = f"{counted(len(lacking), 'watched symbol')}: {named(lacking)}"
            yield Finding("note", f"feed {desk.feed.name} does not have {what}", "openbell watch remove SYMBOL…")


def _signals(desk: Desk) -> Iterator[Finding]:
    """Check the whole path once, from bars to signals."""
    import asyncio

    from openbell.market.timeframes import Timeframe

    watched = desk.watchlist.read().instruments
    if not watched or not desk.settings.bar_folder.exists():
        return
    reading = asyncio.run(desk.signals.read(watched[0], Timeframe.M1))
    if reading.signals is None:
        yield Finding(
            "note", f"{watched[0]}: {len(reading.bars)} closed bars, signals need 35", "openbell up, or import bars"
        )
    else:
        yield Finding("ok", f"signals of {watched[0]} work on {len(reading.bars)} closed bars")


def _records(desk: Desk) -> Iterator[Finding]:
    """Check that the records can be read, that the ledger is intact, and that an engine runs."""
    settings = desk.settings
    if not settings.database_url and not (settings.market_folder / "records.sqlite").exists():
        from openbell.stores.records.ledger_head_file import HeadFile

        noted = HeadFile(settings.market_folder / "ledger.head").read()
        if noted is not None and noted.seq:
            lost = f"{settings.market_folder / 'records.sqlite'} is missing, and its ledger had {noted.seq} entries"
            yield Finding("bad", lost, "openbell restore DIR, or accept the empty ledger: openbell verify --adopt")
            return
        yield Finding("note", "no orders, alerts or decisions yet")
        return
    import asyncio

    yield from asyncio.run(_check_records(desk))


async def _check_records(desk: Desk) -> list[Finding]:
    from openbell.desk.settings.open_records import ENGINE
    from openbell.stores.records import leases, progress
    from openbell.stores.records import orders as queries
    from openbell.stores.records.journal import head_of
    from openbell.trading.waiting import ahead_of

    trading = Desk(desk.settings).trading  # a separate desk, because each check has its own event loop
    try:
        head, holder = await trading.records.read(
            lambda view: (head_of(view.connection), leases.holder(view, ENGINE)), check_head=False
        )
        found = [
            Finding("ok", f"{head.seq} ledger entries in {trading.records.database.where} (openbell verify checks)")
        ]
        if objection := await trading.records.write_refusal():
            verify = trading.records.head.verify
            mend = f"{verify} --adopt accepts it as it is; {verify} shows what has changed"
            found.append(Finding("bad", f"the ledger cannot be trusted: {objection}", mend))
        if holder:
            found.append(Finding("ok", f"engine running as {holder}"))
        else:
            text = "no engine is running: paper orders fill when they are read, alerts fire when an engine runs"
            found.append(Finding("note", text, "openbell up, or a server with --trade"))
        for since, trouble in (await trading.records.read(progress.all_troubles)).values():
            found.append(
                Finding("bad", f"since {iso(since)}: {trouble}", "fix the cause; the engine retries each minute")
            )
        for order in await trading.records.read(queries.all_working):
            if dated := ahead_of(order, desk.clock.epoch()):
                text = f"order {order.id} of {order.symbol} on account {order.account}: {dated}"
                found.append(Finding("bad", text, "cancel the order"))
        found += await _positions_before_splits(trading, desk)
        if halt := await trading.halts.current():
            mend = "openbell resume" if halt.known else "make the file readable for this user"
            found.append(Finding("note" if halt.known else "bad", halt.text, mend))
    except StoreUnreachable:
        raise
    except StoreError as error:
        return [Finding("bad", error.message, _POSTGRES_UNREACHABLE if desk.settings.database_url else "")]
    else:
        return found
    finally:
        await trading.close()


async def _positions_before_splits(trading: TradingDesk, desk: Desk) -> list[Finding]:
    """Report paper positions that were opened before a split."""
    from openbell.desk.bars.adjustments import splits_in
    from openbell.stores.records import orders as queries
    from openbell.trading.accounts import PAPER

    has_bars = desk.settings.store_backend.has_bars
    splits = splits_in(desk.store.audit.problems()) if has_bars else {}
    if not splits:
        return []
    books = await trading.records.read(
        lambda view: [(each, trading.books.book(view, each)) for each in queries.all_accounts(view)]
    )
    return [
        Finding(
            "bad", f"position of {symbol} on account {account.name}: {note}", "close the position and open it again"
        )
        for account, book in books
        if account.broker == PAPER
        for symbol, held in book.positions.items()
        if symbol in splits and (note := splits[symbol].note_on(held.quantity, held.opened_at))
    ]


def _broker(desk: Desk) -> Iterator[Finding]:
    """Check that a remote broker responds."""
    settings = desk.settings
    if settings.broker == "paper":
        yield Finding("ok", "orders are on paper: no money moves")
        return
    import asyncio

    from openbell.brokers.registry import all_brokers
    from openbell.desk.orders.broker_venue import make_broker
    from openbell.trading.broker import BrokerError

    async def read_cash() -> str:
        broker = make_broker(settings)
        assert broker is not None
        try:
            return f"{await broker.cash():,.2f} USD in the account"
        finally:
            await broker.close()

    kind = all_brokers()[settings.broker]
    whose = "REAL MONEY" if settings.live else kind.paper_account
    try:
        yield Finding("ok", f"broker {settings.broker} ({whose}): {asyncio.run(read_cash())}")
    except BrokerError as error:
        yield Finding("bad", error.message, f"check {kind.needs}")


def _backtester(desk: Desk) -> Iterator[Finding]:
    """Check that the backtester service computes, if one is set."""
    settings = desk.settings
    if not settings.backtester:
        return
    import asyncio

    import numpy as np

    from openbell.backtest.errors import BacktesterUnavailable, BacktestTimeout
    from openbell.backtest.jobs import MonteCarloJob
    from openbell.desk.research.backtester import make_backtester

    async def compute() -> None:
        backtester = make_backtester(settings)
        try:
            await backtester.run(MonteCarloJob(np.array([0.1, -0.1]), simulations=1))
        finally:
            await backtester.close()

    try:
        asyncio.run(compute())
        yield Finding("ok", f"the backtester at {settings.backtester} computes")
    except (BacktesterUnavailable, BacktestTimeout) as error:
        port = settings.backtester.rpartition(":")[2]
        yield Finding("bad", error.message, f"openbell backtester --port {port}, or unset OPENBELL_BACKTESTER")
