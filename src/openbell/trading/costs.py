"""The costs of paper fills, and how much of a minute's volume paper orders can get."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from openbell.market.bars import Bars
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import table_for
from openbell.trading import amounts
from openbell.trading.amounts import CENT, ONE
from openbell.trading.orders import Order

_MOST = Decimal("1e18")
"""An upper bound for volumes, above any sum of orders: absurd volumes must not overflow the arithmetic."""
_DAY = 86400


@dataclass(frozen=True, slots=True)
class Costs:
    """Fees, slippage and volume share of paper fills."""

    fee: Decimal = Decimal("0.001")
    """Share of the traded value."""
    slippage: Decimal = Decimal("0.0005")
    """Share of the price, always to the disadvantage of the order."""
    volume_share: Decimal = Decimal("0.1")
    """Share of a bar's volume that orders can get, if the instrument has a volume."""

    def fee_of(self, quantity: Decimal, price: Decimal) -> Decimal:
        """Returns the fee of a fill."""
        with amounts.exact():
            return amounts.up(quantity * price * self.fee)

    def taken(self, price: Decimal, *, buying: bool) -> Decimal:
        """Returns a price with slippage: higher if buying, lower if selling."""
        with amounts.exact():
            return amounts.against(price * (ONE + self.slippage * (1 if buying else -1)), buying)


def available(instrument: Instrument, volume: float, costs: Costs) -> Decimal:
    """Returns the quantity that orders can get in one minute: a share of its volume, or any quantity without volume."""
    if not instrument.has_volume:
        return _MOST
    with amounts.exact():
        return amounts.down(min(amounts.of_bar(volume) * costs.volume_share, _MOST))


def in_steps(quantity: Decimal, order: Order, instrument: Instrument) -> Decimal:
    """Returns a fill's quantity rounded down: to whole shares if a stock order is for whole shares, else to 1e-8."""
    whole = instrument.asset_class is AssetClass.STOCK and order.quantity == order.quantity.to_integral_value()
    return amounts.down(quantity, ONE if whole else CENT)


def tradable(bars: Bars) -> Iterable[int]:
    """Returns the indexes of bars in which orders can fill: for stocks, those in regular hours."""
    if bars.instrument.asset_class is not AssetClass.STOCK or not len(bars):
        return range(len(bars))
    table = table_for(int(bars.time[0]) - _DAY, int(bars.time[-1]) + _DAY)
    inside: list[int] = (table.regular(bars.time) >= 0).nonzero()[0].tolist()
    return inside
