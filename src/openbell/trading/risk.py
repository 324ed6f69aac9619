"""The risk rules: `judge` decides whether an order is allowed, why not, and how large it may be.

Orders that only reduce a position are always accepted. All others are judged by the quantity that opens a position: first by
rules that do not depend on the size (halt, symbol, short, stale price, collar, number of positions, daily loss), then by the
cash of the account, then by the shares of equity that one order and one symbol may take. A reduce_only order is accepted if
the position is at least as large. Resting orders count as if they were filled.

place_order and validate_trade both call `judge`, so that `max_size` is exactly the largest size that passes. The engine
calls `lost_too_much` and cancels resting orders that could open a position after a large daily loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from openbell.market.instruments import parse
from openbell.trading import amounts
from openbell.trading.amounts import CENT, ONE, ZERO
from openbell.trading.book import Book
from openbell.trading.orders import EXPOSED, Order, Side

_DIGITS = 15
"""Significant digits that a JSON number carries exactly; `max_size` has no more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of the rules. A limit of zero is switched off."""

    order_share: Decimal = Decimal("0.10")
    symbol_share: Decimal = Decimal("0.25")
    order_notional: Decimal = ZERO
    symbol_notional: Decimal = ZERO
    positions: int = 20
    daily_loss: Decimal = Decimal("0.05")
    leverage: Decimal = ONE
    collar: Decimal = Decimal("0.05")
    symbols: frozenset[str] = frozenset()
    """Symbols that may be opened; if empty, all."""
    fee: Decimal = ZERO
    """Share of an order's value that is reserved for fees and slippage."""
    short: bool = False
    """Whether stocks and forex may be sold short."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An order to be judged."""

    symbol: str
    side: Side
    quantity: Decimal
    price: Decimal | None = None
    """Its limit or stop price; None for a market order."""
    limit: bool = True
    """Whether `price` is a limit: the worst price at which it can fill."""
    reduce_only: bool = False
    """Whether it is refused if any part of it would open a position."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of the account and the market that an order is judged in."""

    book: Book
    prices: Mapping[str, Decimal]
    """The last price of every symbol that is held, ordered or proposed."""
    orders: tuple[Order, ...] = ()
    """The orders of the account that are not final."""
    day_start: Decimal | None = None
    """Equity at the start of the UTC day; None if it is not known."""
    halted: str | None = None
    """Why trading is halted; None if it is not."""
    stale: str | None = None
    """Why the prices are too old or missing; None if they are current."""
    cut: bool = False
    """Whether fills are cut to the position, as on paper; several orders may then reduce the same position."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of the risk gate."""

    valid: bool
    rule: str
    """The rule that refused; empty if the order is allowed."""
    reason: str
    max_size: Decimal
    risk_score: Decimal
    """0 to 1: the used share of the tightest limit; 1 if refused."""
    opening: Decimal
    """The part of the quantity that opens a position; the rest reduces one."""


def judge(proposal: Proposal, situation: Situation, limits: Limits) -> Verdict:
    """Returns the verdict on a proposal."""
    with amounts.exact():
        return _Judgement(proposal, situation, limits).verdict()


def reducible(side: Side, symbol: str, situation: Situation) -> Decimal:
    """Returns by how much an order of this side could reduce the position, after the resting orders that reduce it too."""
    held = situation.book.quantity(symbol) * -side.sign
    claimed = ZERO if situation.cut else _claimed(side, symbol, situation.orders)
    return max(ZERO, held - claimed) if held > 0 else ZERO


def _claimed(side: Side, symbol: str, orders: Iterable[Order]) -> Decimal:
    """Returns by how much the resting orders of a side will reduce a position.

    The exits of a bracket do not count: they are cancelled if another order closes the position.
    """
    return sum(
        (
            order.remaining - order.remaining_opening
            for order in orders
            if order.symbol == symbol and order.side is side and order.state in EXPOSED and not order.role.exit
        ),
        ZERO,
    )


class _Judgement:
    """The judgement of one proposal, with the sums that several rules need."""

    def __init__(self, proposal: Proposal, situation: Situation, limits: Limits) -> None:
        self.proposal, self.situation, self.limits = proposal, situation, limits
        symbol = proposal.symbol
        self.last = situation.prices[symbol]
        self.price = self._worst_price()
        self.reducible = reducible(proposal.side, symbol, situation)
        self.opening = max(ZERO, proposal.quantity - self.reducible)
        self.equity = situation.book.equity(situation.prices)
        waiting = [
            (order, order.remaining_opening * price_of(order, situation.prices[order.symbol]))
            for order in situation.orders
            if order.state in EXPOSED and not order.role.exit
        ]
        self.waiting = sum((worth for _, worth in waiting), ZERO)
        self.waiting_here = sum((worth for order, worth in waiting if order.symbol == symbol), ZERO)
        self.opening_symbols = {order.symbol for order, worth in waiting if worth}

    def _worst_price(self) -> Decimal:
        """Returns the price that the order is valued at: a buy's limit, else the higher of its price and the last price."""
        price = self.proposal.price
        if price is None:
            return self.last
        bounded = self.proposal.limit and self.proposal.side is Side.BUY
        return price if bounded else max(price, self.last)

    def verdict(self) -> Verdict:
        if not self.opening:
            return Verdict(True, "", "", self._largest(), ZERO, ZERO)
        if self.proposal.reduce_only:
            return Verdict(False, "reduce_only", self._too_little_to_reduce(), self._largest(), ONE, self.opening)
        for rule, objection in (*self._without_size(), *self._by_size()):
            if objection:
                return Verdict(False, rule, objection, self._largest(), ONE, self.opening)
        return Verdict(True, "", "", self._largest(), self._score(), self.opening)

    def _without_size(self) -> Iterable[tuple[str, str | None]]:
        """Yields each rule that does not depend on the size, with its objection or None."""
        situation, limits, symbol = self.situation, self.limits, self.proposal.symbol
        yield (
            "halt",
            situation.halted
            and f"trading is halted: {situation.halted}; only reducing orders may pass until openbell resume",
        )
        allowed = not limits.symbols or symbol in limits.symbols
        yield "symbols", None if allowed else f"{symbol} is not one of the allowed symbols (OPENBELL_RISK_SYMBOLS)"
        yield "short", self._short()
        yield "stale_price", situation.stale
        yield "collar", self._outside_collar()
        yield "positions", self._too_many_positions()
        yield "daily_loss", lost_too_much(situation.day_start, self.equity, limits)
        yield "equity", None if self.equity > 0 else "the account has no equity left"

    def _short(self) -> str | None:
        symbol = self.proposal.symbol
        if self.proposal.side is Side.BUY:
            return None
        shorted = parse(symbol).can_be_shorted
        if shorted and self.limits.short:
            return None
        why = "shorts are not allowed (OPENBELL_RISK_SHORT)" if shorted else "spot crypto cannot be sold short"
        return f"{self._to_sell()}, and {why}"

    def _too_little_to_reduce(self) -> str:
        if not self.reducible:
            return f"it is reduce_only, and there is nothing of {self.proposal.symbol} for a {self.proposal.side} to reduce"
        return f"it is reduce_only, and only {amounts.text(self.reducible)} of {self.proposal.symbol} can be reduced"

    def _to_sell(self) -> str:
        held = self.situation.book.quantity(self.proposal.symbol)
        claimed = held - self.reducible if held > 0 else ZERO
        resting = f", of which resting orders sell {amounts.text(claimed)}" if claimed else ""
        return f"{amounts.text(max(ZERO, held))} of {self.proposal.symbol} is held{resting}"

    def _outside_collar(self) -> str | None:
        price, collar = self.proposal.price, self.limits.collar
        if price is None or not collar or abs(price - self.last) <= collar * self.last:
            return None
        return (
            f"the price {amounts.text(price)} is more than {_percent(collar)} from the last, {amounts.text(self.last)} "
            "(OPENBELL_RISK_COLLAR)"
        )

    def _too_many_positions(self) -> str | None:
        symbols = set(self.situation.book.positions) | self.opening_symbols
        most = self.limits.positions
        if not most or self.proposal.symbol in symbols or len(symbols) < most:
            return None
        return f"{len(symbols)} positions are open or being opened, the most allowed (OPENBELL_RISK_POSITIONS)"

    def _by_size(self) -> Iterable[tuple[str, str | None]]:
        """Yields each rule about the size, with its objection or None."""
        for rule, need, have, words in self._sizes(self.opening):
            yield rule, None if need <= have else words(need, have)

    def _sizes(self, opening: Decimal) -> Iterable[tuple[str, Decimal, Decimal, Callable[[Decimal, Decimal], str]]]:
        """Yields each rule about the size: its name, the dollars that `opening` needs, the dollars allowed, its text."""
        limits, leverage = self.limits, self.limits.leverage
        worth = opening * self.price
        # Both sides are multiplied by the leverage: products are exact, quotients are not.
        with_fee = ONE + limits.fee * leverage
        taken = self.situation.book.exposure(self.situation.prices) + self.waiting * with_fee - self._freed()
        yield (
            "balance",
            worth * with_fee,
            self.equity * leverage - taken,
            lambda need, have: f"it needs {_money(need)} and {_money(max(ZERO, have))} is available",
        )
        share = limits.order_share * self.equity if limits.order_share else None
        for cap, name in ((share, "ORDER_SHARE"), (limits.order_notional or None, "ORDER_NOTIONAL")):
            if cap is not None:
                yield "order", worth, cap, _over("an order", name)
        here = abs(self.situation.book.quantity(self.proposal.symbol)) * self.last + self.waiting_here - self._freed()
        share = limits.symbol_share * self.equity if limits.symbol_share else None
        for cap, name in ((share, "SYMBOL_SHARE"), (limits.symbol_notional or None, "SYMBOL_NOTIONAL")):
            if cap is not None:
                yield "symbol", here + worth, cap, _over(self.proposal.symbol, name)

    def _freed(self) -> Decimal:
        """Returns the value that the reducing part of the proposal frees before the rest opens a position."""
        return self.reducible * self.last

    def _largest(self) -> Decimal:
        """Returns the largest quantity that would be accepted."""
        if self.proposal.reduce_only or any(objection for _, objection in self._without_size()):
            return _exactly_sent(self.reducible)
        most = min(
            amounts.share(have - fixed, unit)
            for fixed, unit, have in (
                (zero, one - zero, have)
                for (_, zero, have, _), (_, one, _, _) in zip(self._sizes(ZERO), self._sizes(ONE), strict=True)
            )
        )
        return _exactly_sent(self.reducible + max(ZERO, most))

    def _score(self) -> Decimal:
        used = [amounts.share(need, have) for _, need, have, _ in self._sizes(self.opening)]
        start, most = self.situation.day_start, self.limits.daily_loss
        if start is not None and start > 0 and most:
            used.append(amounts.share(max(ZERO, start - self.equity), most * start))
        return min(ONE, max(used))


def lost_too_much(day_start: Decimal | None, equity: Decimal, limits: Limits) -> str | None:
    """Returns why nothing may be opened today; None if the daily loss is below its limit or not known."""
    most = limits.daily_loss
    if day_start is None or day_start <= 0 or not most or day_start - equity < most * day_start:
        return None
    lost = amounts.share(day_start - equity, day_start)
    setting = "(OPENBELL_RISK_DAILY_LOSS)"
    return f"the account has lost {_percent(lost)} today, and opens nothing after {_percent(most)} {setting}"


def price_of(order: Order, last: Decimal) -> Decimal:
    """Returns the price that a resting order is valued at: a buy's limit, else the higher of its price and the last."""
    price = order.limit_price or order.stop_price
    if price is None:
        return last
    return price if order.side is Side.BUY and order.limit_price is not None else max(price, last)


def _exactly_sent(size: Decimal) -> Decimal:
    """Returns a size rounded down to 1e-8, and to the digits that a JSON number carries exactly."""
    step = max(CENT, Decimal(1).scaleb(size.adjusted() - _DIGITS + 1)) if size else CENT
    return amounts.down(size, step)


def _over(what: str, name: str) -> Callable[[Decimal, Decimal], str]:
    return lambda need, have: f"{what} may be worth {_money(have)}, this would be {_money(need)} (OPENBELL_RISK_{name})"


def _money(value: Decimal) -> str:
    return f"{value:,.2f} USD"


def _percent(value: Decimal) -> str:
    return f"{value * 100:.4g} %"
