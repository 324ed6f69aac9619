"""The bar that caused a fill or an alert: its hash for the ledger, and the check that its prices allow the fill."""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256

from openbell.market.bars import Bars
from openbell.trading import amounts
from openbell.trading.amounts import ONE
from openbell.trading.fills import Fill
from openbell.trading.ledger import canonical
from openbell.trading.orders import Side

_SLIPPAGE = Decimal("0.5")
"""The largest slippage that the settings allow, as a share of the price."""
_ROUNDING = Decimal("1e-9")
"""Share of the price: a limit has more digits than the floats of a bar."""


def bar_hash(bars: Bars, index: int) -> str:
    """Returns the hash of one bar: symbol, timeframe, open time and its five numbers."""
    row = [column[index].item() for column in bars.columns()]
    return sha256(canonical([bars.instrument.symbol, bars.timeframe.seconds, *row]).encode()).hexdigest()


def outside_its_bar(fill: Fill, low: float, high: float) -> str | None:
    """Returns what is wrong with a paper fill's price in a bar from `low` to `high`; None if the bar allows it.

    The slippage setting at the time of the fill is not known; it makes a price worse for the order by at most 50 %.
    """
    least, most = amounts.of_bar(low), amounts.of_bar(high)
    buying = fill.side is Side.BUY
    with amounts.exact():
        floor = least * (ONE if buying else ONE - _SLIPPAGE) * (ONE - _ROUNDING)
        ceiling = most * (ONE + _SLIPPAGE if buying else ONE) * (ONE + _ROUNDING)
    if floor <= fill.price <= ceiling:
        return None
    return f"fill {fill.id} at {fill.price} cannot be: its bar went from {low!r} to {high!r}"
