"""What the live view of `openbell up` shows, read from the desk. A part is read again only if something has changed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from openbell.cli.screen import Mover, Section
from openbell.desk.settings.principals import OPERATOR
from openbell.market.bars import Bars
from openbell.market.digits import average
from openbell.market.errors import OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.plural import counted
from openbell.market.price_history import percent_change, previous_close
from openbell.market.sessions import Phase, next_open, phase
from openbell.market.timeframes import Timeframe
from openbell.signals.crossings import NEEDED
from openbell.signals.series import SignalSeries
from openbell.stores.records import alerts as alert_queries
from openbell.stores.records import orders as order_queries
from openbell.trading import amounts

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.orders.portfolio import Balance, ValuedHolding
    from openbell.stores.records.snapshot import View
    from openbell.trading.alerts import Alert
    from openbell.trading.fills import Fill
    from openbell.trading.orders import Order

_SPARK = 480
"""Minutes of a sparkline: 8 hours of trading."""
_RECENT = 30
"""Closes of which the most decimals are those of the price."""
_DAY = 86400
_MOST = 50
"""Rows of one section of the account that are read."""


class Movers:
    """The watched symbols; the figures of a symbol are computed once per bar."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._state: Hashable = None
        self._figures: dict[Instrument, tuple[Bars, Mover]] = {}

    async def read(self) -> tuple[Mover, ...]:
        """Returns the watched symbols in the order of the watchlist."""
        desk, now = self._desk, self._desk.clock.epoch()
        watched = (await desk.watchlist.current()).instruments
        state = (watched, desk.bars.closed_until(), desk.bars.store.versions.of_store())
        if state != self._state:
            found = await desk.bars.latest_of(watched, Timeframe.M1)
            self._figures = {each: self._figure(each, bars) for each, bars in found.items()}
            self._state = state
        return tuple(self._shown(each, now) for each in watched)

    def _figure(self, instrument: Instrument, bars: Bars) -> tuple[Bars, Mover]:
        known = self._figures.get(instrument)
        return known if known and known[0] is bars else (bars, mover_of(bars))

    def _shown(self, instrument: Instrument, now: float) -> Mover:
        known, is_open = self._figures.get(instrument), phase(instrument, now) is not Phase.CLOSED
        if known is None:
            return Mover(instrument.symbol, signals="no bars yet", is_open=is_open)
        return replace(known[1], is_open=is_open)


def mover_of(bars: Bars) -> Mover:
    """Returns the figures of the newest minute."""
    symbol = bars.instrument.symbol
    if not len(bars):
        return Mover(symbol, signals="no bars yet")
    price, before = float(bars.close[-1]), previous_close(bars)
    change = percent_change(before.price, price) if before else None
    closes = tuple(bars.close[-_SPARK:].tolist())
    mover = Mover(symbol, price, _decimals(closes), change, closes, signals=f"signals need {NEEDED} bars")
    if len(bars) < NEEDED:
        return mover
    with np.errstate(all="ignore"):
        series = SignalSeries(bars, bars)
        rsi, crossings, squeezed = series.levels(-1).rsi, series.crossings(-1), series.is_squeezed()
    # The contract's squeeze is true of nearly every minute: shown is whether the symbol is quiet for itself.
    names = [name for name in crossings.true() if name != "bb_squeeze"]
    return replace(mover, rsi=rsi, signals=" ".join([*names, *(["squeeze"] if squeezed else [])]))


def _decimals(closes: Sequence[float]) -> int:
    """Returns the decimals with which the newest closes are written."""
    return min(8, max(len(f"{Decimal(repr(close)):f}".partition(".")[2]) for close in closes[-_RECENT:]))


def closed_heading(now: float) -> str:
    """Returns when stocks trade again; empty while they trade."""
    opening = next_open(now)
    when = f", regular hours from {_time(opening.open, '%a %d %b %H:%M UTC')}" if opening else ""
    return f"closed{when}"


class AccountPart:
    """The operator's account: one line, and its sections."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._state: Hashable = None
        self._read: tuple[Text, tuple[Section, ...]] = (Text(), ())

    async def read(self) -> tuple[Text, tuple[Section, ...]]:
        """Returns the account; what fails is shown instead of the figures."""
        desk = self._desk
        try:
            state = (desk.trading.records.version(), desk.bars.closed_until(), desk.bars.store.versions.of_store())
            if state != self._state:
                self._read = await self._load()
                self._state = state
        except OpenbellError as error:
            self._state = None
            return Text(f"account: {error.message}", style="red"), ()
        return self._read

    async def _load(self) -> tuple[Text, tuple[Section, ...]]:
        trading = self._desk.trading
        name = trading.accounts.name_of(OPERATOR)

        def work(view: View) -> tuple[list[Order], list[Alert], list[Fill]]:
            return (
                order_queries.listing(view, name, OPERATOR, _MOST, 0, open_only=True)[0],
                alert_queries.active(view, OPERATOR),
                order_queries.newest_fills(view, name, _MOST),
            )

        balance = await trading.portfolio.balance(OPERATOR)
        holdings = await trading.portfolio.holdings(OPERATOR)
        orders, alerts, fills = await trading.records.read(work)
        sections = (
            _section("position", [_position(each) for each in holdings], right=(1, 2, 3)),
            _section("working order", [_order(each) for each in orders], right=(2,), names=(4,)),
            _section("active alert", [_alert(each) for each in alerts]),
            _section("newest fill", [_fill(each) for each in fills], right=(3, 4)),
        )
        return account_line(balance, self._desk.account, *(each.total for each in sections[:3])), sections


def account_line(balance: Balance, kind: str, positions: int, orders: int, alerts: int) -> Text:
    """Returns equity, day's profit and how much the account holds and waits for."""
    line = Text()
    if kind == "live":
        line.append("REAL MONEY  ", style="bold red")
    total = "not known" if balance.total is None else f"{balance.total:,.2f} USD"
    line.append(f"equity {total}", style="bold")
    if balance.day_profit is not None and balance.day_start:
        share = float(balance.day_profit / balance.day_start) * 100
        colour = "" if not balance.day_profit else "green" if balance.day_profit > 0 else "red"
        line.append(f"  day {_signed(balance.day_profit)} ({share:+.2f}%)", style=colour)
    counts = (counted(positions, "position"), counted(orders, "working order"), counted(alerts, "alert"))
    line.append(f"  {', '.join(counts)}")
    return line


def _section(
    noun: str, rows: Sequence[tuple[str, ...]], right: Sequence[int] = (), names: Sequence[int] = ()
) -> Section:
    return Section(noun, tuple(rows[:_MOST]), len(rows), frozenset(right), frozenset(names))


def _position(holding: ValuedHolding) -> tuple[str, ...]:
    held = holding.position
    profit = "no price" if holding.unrealised is None else _signed(holding.unrealised)
    return (held.symbol, amounts.text(held.quantity), f"at {amounts.text(average(held.average_price))}", profit)


def _order(order: Order) -> tuple[str, ...]:
    price = order.limit_price or order.stop_price
    return (
        order.symbol,
        f"{order.side} {order.kind}",
        amounts.text(order.quantity),
        "" if price is None else f"at {amounts.text(price)}",
        str(order.state).replace("_", " "),
    )


def _alert(alert: Alert) -> tuple[str, ...]:
    if alert.threshold is not None:
        return (alert.symbol, f"{alert.type.value.replace('_', ' ')} {amounts.text(alert.threshold)}")
    return (alert.symbol, f"{alert.indicator} {alert.signal} at {alert.interval}")


def _fill(fill: Fill) -> tuple[str, ...]:
    quantity, price = amounts.text(fill.quantity), amounts.text(fill.price)
    return (_time(fill.filled_at, "%d %b %H:%M"), fill.symbol, str(fill.side), quantity, f"at {price}")


def _signed(value: Decimal) -> str:
    return f"{value:+,.2f}"


def _time(epoch: float, form: str) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime(form)
