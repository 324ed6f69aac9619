"""What a working order waits for, and until when: the `reason` of orders that have none recorded, and the end of day orders.

The reason is computed from the order, the clock and the volume since the order last changed. It is not stored, because it
may be different one minute later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from math import ceil

from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import iso
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import EASTERN, Phase, eastern, next_open, phase, session_on
from openbell.market.trading_days import currency_days_between
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.costs import Costs, available, in_steps, tradable
from openbell.trading.halt import Halt
from openbell.trading.orders import RESTING, Order, OrderKind, OrderState

_FOREX_OPENS = time(17, 0)
_SUNDAY = 6
_CLOCK_STEP = 600.0
"""Seconds by which an order may be dated ahead without a note: the clock may have been corrected by as much."""
_WORDS = {
    OrderState.PENDING: "waits for the broker's answer",
    OrderState.UNKNOWN: "the broker is being asked what became of it",
    OrderState.LOST: "the broker is being asked what became of it",
    OrderState.CANCELLING: "waits for the broker to confirm its cancellation",
}
_DAY = 86400


@dataclass(frozen=True, slots=True)
class Traded:
    """The volume in the minutes since an order last changed."""

    since: float
    """When the first of these minutes opened."""
    volume: float
    most: Decimal
    """The largest quantity of the order that one of these minutes could have filled."""


def traded(order: Order, bars: Bars, costs: Costs) -> Traded | None:
    """Returns the volume that a paper order could have filled from; None if the instrument has no volume, or no bar counts.

    Bars that opened before the order was placed or last changed do not count, nor do bars in which it cannot fill.
    """
    if not bars.instrument.has_volume:
        return None
    since = int(bars.time.searchsorted(max(order.placed_at, order.updated_at)))
    bars = bars.take(slice(since, None))
    indexes = list(tradable(bars))
    if not indexes:
        return None
    volumes = bars.volume[indexes]
    most = in_steps(available(bars.instrument, float(volumes.max()), costs), order, bars.instrument)
    return Traded(float(bars.time[indexes[0]]), float(volumes.sum()), min(order.remaining, most))


def ahead_of(order: Order, now: float) -> str | None:
    """Returns a note on an order that was placed or changed while the clock was ahead; None for any other order.

    Bars fill an order only if they opened after that time: nothing fills it, not even a stop, until the clock reaches it.
    """
    last = max(order.placed_at, order.updated_at)
    if last <= now + _CLOCK_STEP:
        return None
    return (
        f"the clock was ahead when it changed: nothing fills it before {iso(int(last))}; cancel it and place it again"
    )


def waiting(
    order: Order,
    instrument: Instrument,
    now: float,
    *,
    halted: Halt | None = None,
    unread: str | None = None,
    unpriced: str | None = None,
    traded: Traded | None = None,
    on_paper: bool = True,
) -> str | None:
    """Returns what an order waits for, and until when; None if it is final or has a recorded reason.

    `halted` is why trading is halted, `unread` why its bars cannot be read, `unpriced` which position has no
    price and why. `on_paper`: orders are filled from bars, not by a broker. The bars that closed by `now` must have been
    applied to the account.
    """
    if order.final or order.reason:
        return None
    if order.state is OrderState.HELD:
        return f"held until its entry {order.parent} fills"
    if order.state not in RESTING or order.state is OrderState.CANCELLING:
        return _WORDS[order.state]
    dated = ahead_of(order, now) if on_paper else None
    if unread or dated:
        return f"waits: {unread}" if unread else dated
    clauses = []
    if stopped := _stopped(order, halted, unpriced):
        if order.remaining_opening == order.remaining:
            return stopped
        clauses.append(f"what it opens waits: {stopped}")
    closed = _closed(instrument, max(_next_minute(order), now // MINUTE * MINUTE))
    if closed:
        clauses.append(closed)
    if dry := _dry(traded) if on_paper else None:
        clauses.append(dry)
    if price := _price(order):
        clauses.append(f"{_subject(order)}rests until {price}")
    elif not on_paper:
        clauses.append(f"{_subject(order)}waits for the broker to fill it")
    elif not closed and not dry:
        clauses.append(f"{_subject(order)}fills at the open of the next minute, from {iso(_next_minute(order))} on")
    if order.expires_at is not None or price:
        clauses.append("good till cancelled" if order.expires_at is None else f"until {iso(order.expires_at)}")
    return "; ".join(clauses)


def _stopped(order: Order, halted: Halt | None, unpriced: str | None) -> str | None:
    """Why it opens nothing; None if it may, or if it only reduces."""
    if not order.remaining_opening:
        return None
    if halted:
        return f"{halted.text}; until {halted.until}"
    return f"nothing is opened until what is held has a price: {unpriced}" if unpriced else None


def _subject(order: Order) -> str:
    return "the remainder " if order.filled else ""


def _next_minute(order: Order) -> float:
    """Returns the open time of the first minute that can fill an order."""
    return float(ceil(max(order.placed_at, order.updated_at) / MINUTE) * MINUTE)


def _closed(instrument: Instrument, moment: float) -> str | None:
    """Returns when the instrument's market opens, as text; None if it is open."""
    if phase(instrument, moment) is Phase.REGULAR:
        return None
    if instrument.asset_class is AssetClass.FOREX:
        return f"waits for the forex market, which opens at {iso(forex_opens(moment))}"
    session = next_open(moment)
    return f"waits for the regular session, which opens at {iso(session.open)}" if session else "the market is closed"


def forex_opens(moment: float) -> float:
    """Returns the next Sunday 17:00 in New York, for a moment on a weekend."""
    today = eastern(moment).date()
    sunday = today + timedelta((_SUNDAY - today.weekday()) % 7)
    return datetime.combine(sunday, _FOREX_OPENS, EASTERN).timestamp()


def _dry(traded: Traded | None) -> str | None:
    if traded is None or traded.most > ZERO:
        return None
    had = "too little" if traded.volume else "none"
    return f"waits for volume: the minutes since {iso(traded.since)} had {had}"


def _price(order: Order) -> str | None:
    """Returns the price that an order waits for, as text; None if it fills at any price."""
    through = f"trades through {amounts.text(order.limit_price)}" if order.limit_price is not None else None
    if order.stop_price is None or order.triggered:
        return f"the price {through}" if through else None
    reached = f"the price reaches {amounts.text(order.stop_price)}"
    return f"{reached}, then until it {through}" if through and order.kind is OrderKind.STOP_LIMIT else reached


def day_end(instrument: Instrument, at: float) -> float:
    """Returns when a day order expires: at the close of the session for stocks, at 17:00 New York for forex, else at the
    end of the UTC day. While the market is closed, the next day counts.
    """
    if instrument.asset_class is AssetClass.FOREX:
        closes = currency_days_between(at, at).close
        row = int(closes.searchsorted(at, side="right"))
        if row < len(closes):
            return float(closes[row])
    if instrument.asset_class is not AssetClass.STOCK:
        return float((at // _DAY + 1) * _DAY)
    session = session_on(eastern(at).date())
    if session is None or at >= session.close:
        session = next_open(at)
    return float(session.close) if session else float((at // _DAY + 1) * _DAY)
