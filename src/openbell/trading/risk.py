"""The risk gate: one function that says of any order whether it may be, why not, and how large it may be.

An order that only reduces a position always may. Everything else is judged by what it opens: first the rules that no size
passes (halt, symbol, short, stale price, collar, number of positions, daily loss), then what the account can pay, then the
shares of equity an order and a symbol may take. A reduce_only order is judged by one rule, that there is as much to reduce.
Orders that rest count as if they were filled. place_order and validate_trade ask
the same `judge`, so that `max_size` is exactly the size at which it changes its mind; the engine asks `lost_too_much`, and
ends what rests and could open when it says so.
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
"""What a JSON number carries exactly: no largest size has more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The rules' settings. Zero of an amount means that there is no such limit."""

    order_share: Decimal = Decimal("0.10")
    symbol_share: Decimal = Decimal("0.25")
    order_notional: Decimal = ZERO
    symbol_notional: Decimal = ZERO
    positions: int = 20
    daily_loss: Decimal = Decimal("0.05")
    leverage: Decimal = ONE
    collar: Decimal = Decimal("0.05")
    symbols: frozenset[str] = frozenset()
    """Allowed ones; none named: all."""
    fee: Decimal = ZERO
    """Of notional, kept back when an order is judged: fees, and what a price may slip."""
    short: bool = False
    """Whether more may be sold than is held, of what can be shorted."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is to be judged."""

    symbol: str
    side: Side
    quantity: Decimal
    price: Decimal | None = None
    """Its limit or stop; None: the market's."""
    limit: bool = True
    """Whether that price is the worst it can trade at."""
    reduce_only: bool = False
    """Whether it is refused rather than open anything."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What it is judged in."""

    book: Book
    marks: Mapping[str, Decimal]
    """The last price of every symbol that is held, ordered or proposed."""
    orders: tuple[Order, ...] = ()
    """Those of the account that are not final."""
    day_start: Decimal | None = None
    """Equity at the start of the UTC day."""
    halted: str | None = None
    """Why nothing may be opened."""
    stale: str | None = None
    """Why the proposed symbol's price cannot be relied on."""
    cut: bool = False
    """Whether fills are cut to the position, as on paper: then orders that reduce cannot get in each other's way."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says."""

    valid: bool
    rule: str
    """Which one decided; empty if none objects."""
    reason: str
    max_size: Decimal
    risk_score: Decimal
    """0 to 1: how much of the tightest limit it uses; 1 if it may not be."""
    opening: Decimal
    """How much of the quantity opens; the rest reduces."""


def judge(proposal: Proposal, situation: Situation, limits: Limits) -> Verdict:
    """The verdict on a proposal."""
    with amounts.exact():
        return _Judgement(proposal, situation, limits).verdict()


def reducible(side: Side, symbol: str, situation: Situation) -> Decimal:
    """How much an order of this side could take from the position, less what resting orders will take already."""
    held = situation.book.quantity(symbol) * -side.sign
    claimed = ZERO if situation.cut else _claimed(side, symbol, situation.orders)
    return max(ZERO, held - claimed) if held > 0 else ZERO


def _claimed(side: Side, symbol: str, orders: Iterable[Order]) -> Decimal:
    """What resting orders of a side will take from a position.

    The exits of a bracket claim nothing: whoever closes the position by hand takes it from them, and they end.
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
    """One proposal in its situation, with the sums that several rules need."""

    def __init__(self, proposal: Proposal, situation: Situation, limits: Limits) -> None:
        self.proposal, self.situation, self.limits = proposal, situation, limits
        symbol = proposal.symbol
        self.mark = situation.marks[symbol]
        self.price = self._worst_price()
        self.reducible = reducible(proposal.side, symbol, situation)
        self.opening = max(ZERO, proposal.quantity - self.reducible)
        self.equity = situation.book.equity(situation.marks)
        waiting = [
            (order, order.remaining_opening * price_of(order, situation.marks[order.symbol]))
            for order in situation.orders
            if order.state in EXPOSED and not order.role.exit
        ]
        self.waiting = sum((worth for _, worth in waiting), ZERO)
        self.waiting_here = sum((worth for order, worth in waiting if order.symbol == symbol), ZERO)
        self.opening_symbols = {order.symbol for order, worth in waiting if worth}

    def _worst_price(self) -> Decimal:
        """What a unit is counted at: a bought limit costs no more than that; what is sold may bring more than asked."""
        price = self.proposal.price
        if price is None:
            return self.mark
        bounded = self.proposal.limit and self.proposal.side is Side.BUY
        return price if bounded else max(price, self.mark)

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
        """Rules that object to opening anything."""
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
        if price is None or not collar or abs(price - self.mark) <= collar * self.mark:
            return None
        return (
            f"the price {amounts.text(price)} is more than {_percent(collar)} from the last, {amounts.text(self.mark)} "
            "(OPENBELL_RISK_COLLAR)"
        )

    def _too_many_positions(self) -> str | None:
        symbols = set(self.situation.book.positions) | self.opening_symbols
        most = self.limits.positions
        if not most or self.proposal.symbol in symbols or len(symbols) < most:
            return None
        return f"{len(symbols)} positions are open or being opened, the most allowed (OPENBELL_RISK_POSITIONS)"

    def _by_size(self) -> Iterable[tuple[str, str | None]]:
        """Rules that object to the size, each by comparing exact products."""
        for rule, need, have, words in self._sizes(self.opening):
            yield rule, None if need <= have else words(need, have)

    def _sizes(self, opening: Decimal) -> Iterable[tuple[str, Decimal, Decimal, Callable[[Decimal, Decimal], str]]]:
        """Each rule by size: what an opening quantity needs and what there is, both in dollars."""
        limits, leverage = self.limits, self.limits.leverage
        worth = opening * self.price
        # Multiplied by the leverage on both sides, which is exact where a quotient would not be.
        with_fee = ONE + limits.fee * leverage
        taken = self.situation.book.exposure(self.situation.marks) + self.waiting * with_fee - self._freed()
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
        here = abs(self.situation.book.quantity(self.proposal.symbol)) * self.mark + self.waiting_here - self._freed()
        share = limits.symbol_share * self.equity if limits.symbol_share else None
        for cap, name in ((share, "SYMBOL_SHARE"), (limits.symbol_notional or None, "SYMBOL_NOTIONAL")):
            if cap is not None:
                yield "symbol", here + worth, cap, _over(self.proposal.symbol, name)

    def _freed(self) -> Decimal:
        """What the reducing part of the proposal gives back before the rest opens."""
        return self.reducible * self.mark

    def _largest(self) -> Decimal:
        """The largest quantity that would pass."""
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
    """Why nothing may be opened today."""
    most = limits.daily_loss
    if day_start is None or day_start <= 0 or not most or day_start - equity < most * day_start:
        return None
    lost = amounts.share(day_start - equity, day_start)
    setting = "(OPENBELL_RISK_DAILY_LOSS)"
    return f"the account has lost {_percent(lost)} today, and opens nothing after {_percent(most)} {setting}"


def price_of(order: Order, mark: Decimal) -> Decimal:
    """What a unit of a resting order is counted at."""
    price = order.limit_price or order.stop_price
    if price is None:
        return mark
    return price if order.side is Side.BUY and order.limit_price is not None else max(price, mark)


def _exactly_sent(size: Decimal) -> Decimal:
    """Down to the step of quantities, and to as many digits as a JSON number carries."""
    step = max(CENT, Decimal(1).scaleb(size.adjusted() - _DIGITS + 1)) if size else CENT
    return amounts.down(size, step)


def _over(what: str, name: str) -> Callable[[Decimal, Decimal], str]:
    return lambda need, have: f"{what} may be worth {_money(have)}, this would be {_money(need)} (OPENBELL_RISK_{name})"


def _money(value: Decimal) -> str:
    return f"{value:,.2f} USD"


def _percent(value: Decimal) -> str:
    return f"{value * 100:.4g} %"
