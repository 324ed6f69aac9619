"""What a working order waits for, and until when: the `reason` of an order that has none of its own.

It follows from the order, the clock and what was traded since the order could last have filled. Nothing of it is stored:
the next minute it may be something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from math import ceil

from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import iso
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import EASTERN, Phase, eastern, next_open, phase
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.costs import Costs, available, in_steps, tradable
from openbell.trading.orders import RESTING, Kind, Order, State

_FOREX_OPENS = time(17, 0)
_SUNDAY = 6
_WORDS = {
    State.PENDING: "waits for the broker's answer",
    State.UNKNOWN: "the broker is being asked what became of it",
    State.LOST: "the broker is being asked what became of it",
    State.CANCELLING: "waits for the broker to confirm its cancellation",
}


@dataclass(frozen=True, slots=True)
class Traded:
    """What was traded in the minutes since an order last changed."""

    since: float
    """When the first of them opened."""
    volume: float
    most: Decimal
    """The largest part of the order that one of them could have filled."""


def traded(order: Order, bars: Bars, costs: Costs) -> Traded | None:
    """What some minute bars say about the volume that a paper order needs; None if that is nothing.

    Bars that opened before the order was placed or last changed are left out, and so are those in which it cannot fill.
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


def waiting(
    order: Order,
    instrument: Instrument,
    now: float,
    *,
    halted: str | None = None,
    traded: Traded | None = None,
    on_paper: bool = True,
) -> str | None:
    """What an order waits for, and until when; None if it is final or has a reason of its own.

    `halted` is why nothing may be opened. `on_paper`: it is filled from bars here, and not by a broker. The account must
    have caught up with the bars that closed by `now`.
    """
    if order.final or order.reason:
        return None
    if order.state is State.HELD:
        return f"held until its entry {order.parent} fills"
    if order.state not in RESTING or order.state is State.CANCELLING:
        return _WORDS[order.state]
    clauses = []
    if halted and order.remaining_opening:
        stopped = f"trading is halted: {halted}; until openbell resume"
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
    if order.expires_at is not None:
        clauses.append(f"until {iso(order.expires_at)}")
    elif price:
        clauses.append("good till cancelled")
    return "; ".join(clauses)


def _subject(order: Order) -> str:
    return "the remainder " if order.filled else ""


def _next_minute(order: Order) -> float:
    """The open of the first minute that can still fill it."""
    return float(ceil(max(order.placed_at, order.updated_at) / MINUTE) * MINUTE)


def _closed(instrument: Instrument, moment: float) -> str | None:
    """When the market opens in which it can fill; None if it is open."""
    if phase(instrument, moment) is Phase.REGULAR:
        return None
    if instrument.asset_class is AssetClass.FOREX:
        return f"waits for the forex market, which opens at {iso(_forex_opens(moment))}"
    session = next_open(moment)
    return f"waits for the regular session, which opens at {iso(session.open)}" if session else "the market is closed"


def _forex_opens(moment: float) -> float:
    """Sunday 17:00 in New York, after a moment of the weekend."""
    today = eastern(moment).date()
    sunday = today + timedelta((_SUNDAY - today.weekday()) % 7)
    return datetime.combine(sunday, _FOREX_OPENS, EASTERN).timestamp()


def _dry(traded: Traded | None) -> str | None:
    if traded is None or traded.most > ZERO:
        return None
    had = "too little" if traded.volume else "none"
    return f"waits for volume: the minutes since {iso(traded.since)} had {had}"


def _price(order: Order) -> str | None:
    """The price that must come first; None if it takes any."""
    through = f"trades through {amounts.text(order.limit_price)}" if order.limit_price is not None else None
    if order.stop_price is None or order.triggered:
        return f"the price {through}" if through else None
    reached = f"the price reaches {amounts.text(order.stop_price)}"
    return f"{reached}, then until it {through}" if through and order.kind is Kind.STOP_LIMIT else reached
