"""Advance an account through minute bars: fill its orders, update its prices, check its daily loss, minute by minute.

`Matcher` applies one bar to the orders of one symbol. `advance` applies the bars of all symbols of an account in order of
time. So a daily loss caused by one symbol cancels the resting orders of the others before the next minute can fill them,
also if many hours of bars are applied at once. Minutes in which nothing can happen are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from openbell.market.bars import MINUTE, Bars
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.costs import Costs
from openbell.trading.fills import Fill
from openbell.trading.matcher import Change, Matcher
from openbell.trading.orders import Order, OrderKind, OrderState, Side
from openbell.trading.risk import RiskLimits, lost_too_much

DAY = 86400
_NEVER = 2**62
_NEARLY = 1 - 1e-9
"""Tolerance of the fast float search for a daily loss; minutes that it finds are checked again with exact decimals."""


@dataclass(frozen=True, slots=True)
class AccountState:
    """The state of an account before it is advanced."""

    book: Book
    orders: tuple[Order, ...]
    """All orders that are not final."""
    prices: Mapping[str, Decimal]
    """By symbol, the last close before the first minute; symbols without a known close are missing."""
    day_start: Decimal | None
    """Equity when the UTC day of `since` began; None if it is not known."""
    since: int
    """The time of `book`. Earlier minutes can still fill orders, but the daily loss is not checked in them."""
    halted: bool = False
    matched_until: Mapping[str, int] = field(default_factory=dict)
    """By order id, the time before which all bars were already matched with the order.

    `updated_at` does not tell: a bar that left the order unchanged may have filled another order of the same symbol.
    """


@dataclass(frozen=True, slots=True)
class Rules:
    """The costs of fills and the risk limits."""

    costs: Costs
    limits: RiskLimits


def advance(state: AccountState, series: Mapping[str, Bars], start: int, until: int, rules: Rules) -> list[Change]:
    """Returns the changes of an account between `start` and `until`, in the order in which they happened.

    `series` has the minute bars of held and ordered symbols. Orders of a symbol without bars in `series` are left unchanged.
    No position is opened while a held symbol is not in `series` or has no price, because the daily loss is not known then.
    """
    run = _Run(state, series, rules)
    run.advance(start, until)
    return run.matcher.changes


@dataclass(slots=True)
class _Run:
    """One call of `advance`: the account as it is at the minute that has been reached."""

    state: AccountState
    series: Mapping[str, Bars]
    rules: Rules
    matcher: Matcher = field(init=False)
    """The current book and orders, and the changes so far."""
    prices: dict[str, Decimal] = field(init=False)
    """By symbol, the last close so far."""
    day_start: Decimal | None = field(init=False)
    """Equity when the current UTC day began."""

    def __post_init__(self) -> None:
        state = self.state
        self.matcher = Matcher(state.book, state.orders, self.rules.costs, state.matched_until)
        self.prices = dict(state.prices)
        self.day_start = state.day_start

    def advance(self, start: int, until: int) -> None:
        """Repeat: skip to the next minute in which something can happen, apply it, check the daily loss."""
        at = start
        while at < until:
            self.matcher.expire(at)
            midnight = (at // DAY + 1) * DAY
            priced = self._next_first_price(at)
            end = min(until, midnight, self._next_expiry(at), priced)
            fills_at = self._next_fill(at, end)
            breach = self._next_breach(at, min(fills_at, end))
            if breach is not None:  # before any fill
                self._update_prices(at, breach + MINUTE)
                self._cancel_on_loss(breach + MINUTE)
                at = breach + MINUTE
            elif fills_at < end:
                self._update_prices(at, fills_at)
                self._match(fills_at)
                self._update_prices(fills_at, fills_at + MINUTE)
                self._cancel_on_loss(fills_at + MINUTE)
                at = fills_at + MINUTE
            else:
                self._update_prices(at, end)
                if end == priced:  # the loss is known from here on
                    self._cancel_on_loss(end)
                at = end
            # `state.day_start` lacks fills of earlier days that this run records late, such as those after an outage.
            if at >= midnight and (at > self.state.since or self._has_filled):
                self.day_start = self._equity()
        self.matcher.expire(until)

    # Fills

    @property
    def _has_filled(self) -> bool:
        return any(isinstance(change, Fill) for change in self.matcher.changes)

    def _next_fill(self, at: int, end: int) -> int:
        """Returns the first minute in [at, end) in which an order may fill or be triggered; `_NEVER` if there is none."""
        found = _NEVER
        for symbol in {order.symbol for order in self.matcher.resting()} & set(self.series):
            bars = self.series[symbol]
            first, last = np.searchsorted(bars.time, (at, min(end, found)))
            reached = _first_match(self.matcher.resting(symbol), bars, int(first), int(last))
            if reached is not None:
                found = int(bars.time[reached])
        return found

    def _match(self, minute: int) -> None:
        """Match one minute's bars with the orders of every symbol. Whether they may open is decided when it begins."""
        may_open = self._may_open
        for symbol in sorted({order.symbol for order in self.matcher.resting()} & set(self.series)):
            bars = self.series[symbol]
            index = int(np.searchsorted(bars.time, minute))
            if index < len(bars) and bars.time[index] == minute:
                changes = self.matcher.match(bars, index, may_open=may_open)
                # A position that was opened in this minute has no close yet: it is valued at the price of its fill.
                for change in changes:
                    if isinstance(change, Fill):
                        self.prices.setdefault(change.symbol, change.price)

    def _next_expiry(self, at: int) -> int:
        """Returns the first end of a minute after `at` by which an order has expired; a later loss cannot cancel it."""
        ends = [-int(-o.expires_at // MINUTE) * MINUTE for o in self.matcher.resting() if o.expires_at is not None]
        return min((end for end in ends if end > at), default=_NEVER)

    # Prices

    def _update_prices(self, start: int, end: int) -> None:
        """Set the prices to the last closes in [start, end)."""
        for symbol, bars in self.series.items():
            first, last = np.searchsorted(bars.time, (start, end))
            if last > first:
                self.prices[symbol] = amounts.of_bar(bars.close[last - 1])

    def _next_first_price(self, at: int) -> int:
        """Returns the end of the first minute from `at` on in which a position without a price gets its first one."""
        found = _NEVER
        for symbol in set(self.matcher.book.positions) & set(self.series) - set(self.prices):
            times = self.series[symbol].time
            index = int(np.searchsorted(times, at))
            found = min(found, int(times[index]) + MINUTE) if index < len(times) else found
        return found

    def _equity(self) -> Decimal | None:
        """Returns the current equity; None if a position has no price."""
        known = all(symbol in self.prices for symbol in self.matcher.book.positions)
        return self.matcher.book.equity(self.prices) if known else None

    @property
    def _may_open(self) -> bool:
        """Whether orders may open positions: trading is not halted, and the daily loss is known."""
        known = self.day_start is not None and set(self.matcher.book.positions) <= set(self.series)
        return not self.state.halted and known and self._equity() is not None

    # The daily loss

    def _opening_orders(self, moment: float = _NEVER) -> list[Order]:
        """Returns the resting orders that could open a position and were placed before `moment`."""
        resting = [o for o in self.matcher.resting() if o.state is not OrderState.CANCELLING]
        return [o for o in resting if o.remaining_opening and o.placed_at < moment]

    def _next_breach(self, at: int, end: int) -> int | None:
        """Returns the first minute in [at, end) after which the daily loss has reached its limit.

        Returns None if there is none, or if there is no order that such a loss would cancel.
        """
        limit, day_start, opening = float(self.rules.limits.daily_loss), self.day_start, self._opening_orders()
        if not limit or day_start is None or day_start <= 0 or not opening:
            return None
        placed = int(min(order.placed_at for order in opening) // MINUTE * MINUTE)
        first = max(at, self.state.since, placed)
        if first >= end or self._equity() is None:
            return None
        held = {symbol: self.series[symbol] for symbol in self.matcher.book.positions if symbol in self.series}
        parts = {symbol: bars.between(at, end) for symbol, bars in held.items()}
        # The first minute is always checked: the loss may be older than it, and it may have no bar.
        minutes = np.unique(np.concatenate([[first], *(part.time for part in parts.values())]))
        minutes = minutes[minutes >= first]
        equity = np.full(len(minutes), float(self.matcher.book.cash))
        for symbol, position in self.matcher.book.positions.items():
            equity += float(position.quantity) * _closes_at(parts.get(symbol), minutes, float(self.prices[symbol]))
        lost = float(day_start) - equity >= limit * float(day_start) * _NEARLY
        for index in np.flatnonzero(lost).tolist():
            minute = int(minutes[index])
            if lost_too_much(day_start, self.matcher.book.equity(self._prices_at(held, minute)), self.rules.limits):
                return minute
        return None

    def _prices_at(self, held: Mapping[str, Bars], minute: int) -> dict[str, Decimal]:
        """Returns the prices with the closes of held symbols up to the end of a minute."""
        prices = dict(self.prices)
        for symbol, bars in held.items():
            index = int(np.searchsorted(bars.time, minute, side="right")) - 1
            if index >= 0:
                prices[symbol] = amounts.of_bar(bars.close[index])
        return prices

    def _cancel_on_loss(self, moment: int) -> None:
        """Cancel the orders that could open a position if the daily loss has reached its limit at `moment`."""
        equity = self._equity() if moment > self.state.since else None
        reason = None if equity is None else lost_too_much(self.day_start, equity, self.rules.limits)
        for order in self._opening_orders(moment) if reason else ():
            self.matcher.cancel(order, reason or "", float(moment))


def _closes_at(part: Bars | None, minutes: np.ndarray, before: float) -> np.ndarray:
    """Returns a symbol's last close at the end of each minute; `before` until its first bar."""
    if part is None or not len(part):
        return np.full(len(minutes), before)
    index = np.searchsorted(part.time, minutes, side="right") - 1
    return np.where(index >= 0, part.close[np.maximum(index, 0)], before)


def _first_match(orders: Iterable[Order], bars: Bars, first: int, last: int) -> int | None:
    """Returns the index of the first bar in [first, last) that may fill or trigger any of the orders."""
    if first >= last:
        return None
    below, above, always = -np.inf, np.inf, _NEVER
    for order in orders:
        level = _level(order)
        if level is None:
            always = min(always, int(np.searchsorted(bars.time, max(order.placed_at, order.updated_at))))
        elif (order.side is Side.BUY) == (order.kind is OrderKind.LIMIT or order.triggered):
            below = max(below, level)
        else:
            above = min(above, level)
    found = [max(first, always)] if max(first, always) < last else []
    touched = (bars.low[first:last] <= below) | (bars.high[first:last] >= above)
    if touched.any():
        found.append(first + int(touched.argmax()))
    return min(found, default=None)


def _level(order: Order) -> float | None:
    """Returns the price that a bar must reach to fill or trigger an order; None if every bar does."""
    if order.kind is OrderKind.MARKET or (order.kind is OrderKind.STOP and order.triggered):
        return None
    price = order.limit_price if order.kind is OrderKind.LIMIT or order.triggered else order.stop_price
    return float(price or ZERO)
