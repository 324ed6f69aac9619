"""An account walked through minute bars: in each minute first its fills, then its prices, then its limits.

`Matcher` says what one bar does to the orders of one symbol. `advance` takes all symbols of an account through the same
minutes, in the order of time, so that a daily loss that arises in one symbol ends the resting orders of the others before
the next minute fills them, however long nobody looked. It visits only minutes in which something can happen.
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
from openbell.trading.orders import Kind, Order, Side, State
from openbell.trading.risk import Limits, lost_too_much

DAY = 86400
_NEVER = 2**62
_NEARLY = 1 - 1e-9
"""Sums of floats find the minutes that are worth an exact sum."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An account at the moment from which it is walked on."""

    book: Book
    orders: tuple[Order, ...]
    """Those that are not final."""
    marks: Mapping[str, Decimal]
    """The last close of each symbol before that moment, as far as it is known."""
    day_start: Decimal | None
    """Equity when the UTC day of `since` began; None: unknown."""
    since: int
    """The book is of this time: before it fills are made up for, but no loss is judged."""
    halted: bool = False
    met: Mapping[str, int] = field(default_factory=dict)
    """By order, the time before which it has met every bar, though none has changed it: another order of the same symbol may
    have taken what was traded."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What trading costs and what is allowed."""

    costs: Costs
    limits: Limits


def advance(standing: Standing, series: Mapping[str, Bars], start: int, until: int, rules: Rules) -> list[Change]:
    """What becomes of an account from `start` to `until`; the changes are in the order in which they happened.

    `series` has the minute bars of symbols that are held or ordered. Orders of a symbol that is not in it are left alone,
    and while a held symbol is not in it, or has no price, nothing is opened: what the account has lost is not known.
    """
    walk = _Walk(standing, series, rules)
    walk.run(start, until)
    return walk.account.changes


@dataclass(slots=True)
class _Walk:
    standing: Standing
    series: Mapping[str, Bars]
    rules: Rules
    account: Matcher = field(init=False)
    marks: dict[str, Decimal] = field(init=False)
    day_start: Decimal | None = field(init=False)

    def __post_init__(self) -> None:
        standing = self.standing
        self.account = Matcher(standing.book, standing.orders, self.rules.costs, standing.met)
        self.marks = dict(self.standing.marks)
        self.day_start = self.standing.day_start

    def run(self, start: int, until: int) -> None:
        at = start
        while at < until:
            self.account.expire(at)
            midnight = (at // DAY + 1) * DAY
            priced = self._next_price(at)
            end = min(until, midnight, self._next_expiry(at), priced)
            fills_at = self._next_fill(at, end)
            breach = self._next_breach(at, min(fills_at, end))
            if breach is not None:
                self._see(at, breach + MINUTE)
                self._end_opening(breach + MINUTE)
                at = breach + MINUTE
            elif fills_at < end:
                self._see(at, fills_at)
                self._fill(fills_at)
                self._see(fills_at, fills_at + MINUTE)
                self._end_opening(fills_at + MINUTE)
                at = fills_at + MINUTE
            else:
                self._see(at, end)
                if end == priced:
                    self._end_opening(end)
                at = end
            if at >= midnight and at > self.standing.since:
                self.day_start = self._equity()
        self.account.expire(until)

    # Fills

    def _next_fill(self, at: int, end: int) -> int:
        """The first minute in [at, end) in which an order may fill or be triggered."""
        found = _NEVER
        for symbol in {order.symbol for order in self.account.resting()} & set(self.series):
            bars = self.series[symbol]
            first, last = np.searchsorted(bars.time, (at, min(end, found)))
            reached = _reached(self.account.resting(symbol), bars, int(first), int(last))
            if reached is not None:
                found = int(bars.time[reached])
        return found

    def _fill(self, minute: int) -> None:
        """Show one minute's bars to the orders of every symbol: whether they may open was known when it began."""
        may_open = self._may_open
        for symbol in sorted({order.symbol for order in self.account.resting()} & set(self.series)):
            bars = self.series[symbol]
            index = int(np.searchsorted(bars.time, minute))
            if index < len(bars) and bars.time[index] == minute:
                changes = self.account.meet(bars, index, may_open=may_open)
                # What was opened in this minute has a price before the minute has closed: what it was bought or sold at.
                for change in changes:
                    if isinstance(change, Fill):
                        self.marks.setdefault(change.symbol, change.price)

    def _next_expiry(self, at: int) -> int:
        """The end of the minute after `at` in which the time of an order is over: a later loss does not end it."""
        ends = [-int(-o.expires_at // MINUTE) * MINUTE for o in self.account.resting() if o.expires_at is not None]
        return min((end for end in ends if end > at), default=_NEVER)

    # Prices

    def _see(self, start: int, end: int) -> None:
        """Take over the last closes of [start, end)."""
        for symbol, bars in self.series.items():
            first, last = np.searchsorted(bars.time, (start, end))
            if last > first:
                self.marks[symbol] = amounts.of_bar(bars.close[last - 1])

    def _next_price(self, at: int) -> int:
        """The end of the first minute from `at` on in which a position that has had no price gets one."""
        found = _NEVER
        for symbol in set(self.account.book.positions) & set(self.series) - set(self.marks):
            times = self.series[symbol].time
            index = int(np.searchsorted(times, at))
            found = min(found, int(times[index]) + MINUTE) if index < len(times) else found
        return found

    def _equity(self) -> Decimal | None:
        known = all(symbol in self.marks for symbol in self.account.book.positions)
        return self.account.book.equity(self.marks) if known else None

    @property
    def _may_open(self) -> bool:
        known = self.day_start is not None and set(self.account.book.positions) <= set(self.series)
        return not self.standing.halted and known and self._equity() is not None

    # Limits

    def _opening(self, moment: float = _NEVER) -> list[Order]:
        """The orders that could open something, of those that were placed before a moment."""
        resting = [o for o in self.account.resting() if o.state is not State.CANCELLING]
        return [o for o in resting if o.remaining_opening and o.placed_at < moment]

    def _next_breach(self, at: int, end: int) -> int | None:
        """The first minute in [at, end) after which too much is lost, if that would end anything."""
        most, day_start, opening = float(self.rules.limits.daily_loss), self.day_start, self._opening()
        if not most or day_start is None or day_start <= 0 or not opening:
            return None
        placed = int(min(order.placed_at for order in opening) // MINUTE * MINUTE)
        first = max(at, self.standing.since, placed)
        if first >= end or self._equity() is None:
            return None
        held = {symbol: self.series[symbol] for symbol in self.account.book.positions if symbol in self.series}
        parts = {symbol: bars.between(at, end) for symbol, bars in held.items()}
        # The first minute too: what was lost before it, or with no bar in it, is lost.
        minutes = np.unique(np.concatenate([[first], *(part.time for part in parts.values())]))
        minutes = minutes[minutes >= first]
        equity = np.full(len(minutes), float(self.account.book.cash))
        for symbol, position in self.account.book.positions.items():
            equity += float(position.quantity) * _followed(parts.get(symbol), minutes, float(self.marks[symbol]))
        lost = float(day_start) - equity >= most * float(day_start) * _NEARLY
        for index in np.flatnonzero(lost).tolist():
            minute = int(minutes[index])
            if lost_too_much(day_start, self.account.book.equity(self._marks_at(held, minute)), self.rules.limits):
                return minute
        return None

    def _marks_at(self, held: Mapping[str, Bars], minute: int) -> dict[str, Decimal]:
        marks = dict(self.marks)
        for symbol, bars in held.items():
            index = int(np.searchsorted(bars.time, minute, side="right")) - 1
            if index >= 0:
                marks[symbol] = amounts.of_bar(bars.close[index])
        return marks

    def _end_opening(self, moment: int) -> None:
        """End the orders that could open something if the account has lost too much by now."""
        equity = self._equity() if moment > self.standing.since else None
        reason = None if equity is None else lost_too_much(self.day_start, equity, self.rules.limits)
        for order in self._opening(moment) if reason else ():
            self.account.cancel(order, reason or "", float(moment))


def _followed(part: Bars | None, minutes: np.ndarray, before: float) -> np.ndarray:
    """A symbol's last close at each of some minutes."""
    if part is None or not len(part):
        return np.full(len(minutes), before)
    index = np.searchsorted(part.time, minutes, side="right") - 1
    return np.where(index >= 0, part.close[np.maximum(index, 0)], before)


def _reached(orders: Iterable[Order], bars: Bars, first: int, last: int) -> int | None:
    """The first bar of [first, last) that may do something to any of the orders."""
    if first >= last:
        return None
    below, above, always = -np.inf, np.inf, _NEVER
    for order in orders:
        level = _level(order)
        if level is None:
            always = min(always, int(np.searchsorted(bars.time, max(order.placed_at, order.updated_at))))
        elif (order.side is Side.BUY) == (order.kind is Kind.LIMIT or order.triggered):
            below = max(below, level)
        else:
            above = min(above, level)
    found = [max(first, always)] if max(first, always) < last else []
    touched = (bars.low[first:last] <= below) | (bars.high[first:last] >= above)
    if touched.any():
        found.append(first + int(touched.argmax()))
    return min(found, default=None)


def _level(order: Order) -> float | None:
    """The price that a bar must reach; None if every bar will do."""
    if order.kind is Kind.MARKET or (order.kind is Kind.STOP and order.triggered):
        return None
    price = order.limit_price if order.kind is Kind.LIMIT or order.triggered else order.stop_price
    return float(price or ZERO)
