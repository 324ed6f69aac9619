"""What paper trading costs, and how much of a minute its orders can have."""

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
"""More than all orders together: a volume beyond sense must not spoil the sums."""
_DAY = 86400


@dataclass(frozen=True, slots=True)
class Costs:
    """What trading on paper costs."""

    fee: Decimal = Decimal("0.001")
    """Of what is traded."""
    slippage: Decimal = Decimal("0.0005")
    """Of the price, against whoever takes it."""
    volume_share: Decimal = Decimal("0.1")
    """Of a bar's volume that can be had, where the instrument has a volume."""

    def fee_of(self, quantity: Decimal, price: Decimal) -> Decimal:
        """The fee for a fill."""
        with amounts.exact():
            return amounts.up(quantity * price * self.fee)

    def taken(self, price: Decimal, *, buying: bool) -> Decimal:
        """A price with slippage: what somebody pays or gets who takes it."""
        with amounts.exact():
            return amounts.against(price * (ONE + self.slippage * (1 if buying else -1)), buying)


def available(instrument: Instrument, volume: float, costs: Costs) -> Decimal:
    """How much orders can have of a minute: a share of its volume, and any amount of what has no volume."""
    if not instrument.has_volume:
        return _MOST
    with amounts.exact():
        return amounts.down(min(amounts.of_bar(volume) * costs.volume_share, _MOST))


def in_steps(quantity: Decimal, order: Order, instrument: Instrument) -> Decimal:
    """A quantity rounded down to what a fill of an order may be: of whole shares, if it is of whole shares."""
    whole = instrument.asset_class is AssetClass.STOCK and order.quantity == order.quantity.to_integral_value()
    return amounts.down(quantity, ONE if whole else CENT)


def tradable(bars: Bars) -> Iterable[int]:
    """The bars in which orders can fill: of stocks, those of regular hours."""
    if bars.instrument.asset_class is not AssetClass.STOCK or not len(bars):
        return range(len(bars))
    table = table_for(int(bars.time[0]) - _DAY, int(bars.time[-1]) + _DAY)
    inside: list[int] = (table.regular(bars.time) >= 0).nonzero()[0].tolist()
    return inside
