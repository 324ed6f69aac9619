"""The risk rules: `judge` decides whether an order is allowed, how large it may be, and why a rule refuses it.

Orders that only reduce a position are always accepted. All others are judged by the quantity that opens a position: first by
rules that do not depend on the size (halt, symbol, short, stale price, collar, number of positions, daily loss), then by the
cash of the account, then by the shares of equity that one order and one symbol may take. A reduce_only order is accepted if
the position is at least as large. Resting orders count as if they were filled.

place_order and validate_trade both call `judge`, so that `max_size` is exactly the largest size that passes. The engine
calls `lost_too_much` and cancels resting orders that could open a position after a large daily loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from openbell.market.instruments import parse
from openbell.trading import amounts
from openbell.trading.amounts import CENT, ONE, ZERO
from openbell.trading.book import Book
from openbell.trading.halt import Halt
from openbell.trading.orders import EXPOSED, Order, Side

_DIGITS = 15
"""Significant digits that a JSON number carries exactly; `max_size` has no more."""

_ONLY_REDUCES = "it only reduces the position"
_NAMES = 200
"""The most characters of allowed symbols in a sentence."""


@dataclass(frozen=True, slots=True)
class RiskLimits:
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
    halted: Halt | None = None
    """Why trading is halted; None if it is not."""
    stale: str | None = None
    """Why the prices are too old or missing; None if they are current."""
    fills_cut_to_position: bool = False
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
    objection: Objection | None = None
    """Of the rule that refused."""
    largest_by: str = ""
    """What limits `max_size`, if it is not the rule that refused."""


def judge(proposal: Proposal, situation: Situation, limits: RiskLimits) -> Verdict:
    """Returns the verdict on a proposal."""
    with amounts.exact():
        return _Judgement(proposal, situation, limits).verdict()


def reducible(side: Side, symbol: str, situation: Situation) -> Decimal:
    """Returns by how much an order of this side could reduce the position, after the resting orders that reduce it too."""
    held = situation.book.quantity(symbol) * -side.sign
    claimed = ZERO if situation.fills_cut_to_position else _claimed(side, symbol, situation.orders)
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

    def __init__(self, proposal: Proposal, situation: Situation, limits: RiskLimits) -> None:
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
            return Verdict(True, "", "", self._largest()[0], ZERO, ZERO)
        for objection in (self._too_little_to_reduce(), *self._without_size(), *self._by_size()):
            if objection:
                size, source = self._largest()
                said = source == objection.source or objection.rule in {"short", "reduce_only"}
                largest_by = "" if said else source
                return Verdict(False, objection.rule, objection.reason, size, ONE, self.opening, objection, largest_by)
        return Verdict(True, "", "", self._largest()[0], self._score(), self.opening)

    def _without_size(self) -> Iterable[Objection | None]:
        """Yields the objection of each rule that does not depend on the size, or None."""
        situation, limits, symbol = self.situation, self.limits, self.proposal.symbol
        halt = situation.halted
        yield Objection("halt", f"{halt.text}; only reducing orders may pass until {halt.until}") if halt else None
        yield symbol_not_allowed(symbol, limits.symbols)
        yield self._short()
        yield Objection("stale_price", situation.stale) if situation.stale else None
        yield None if self.proposal.price is None else collar(self.proposal.price, self.last, limits.collar)
        symbols = set(situation.book.positions) | self.opening_symbols
        yield None if symbol in symbols else too_many_positions(len(symbols), limits.positions)
        yield daily_loss(situation.day_start, self.equity, limits.daily_loss)
        yield None if self.equity > 0 else Objection("equity", f"the account has no equity left: {money(self.equity)}")

    def _short(self) -> Objection | None:
        symbol = self.proposal.symbol
        if self.proposal.side is Side.BUY:
            return None
        shorted = parse(symbol).can_be_shorted
        if shorted and self.limits.short:
            return None
        why = "shorts are not allowed" if shorted else "spot crypto cannot be sold short"
        text = f"it sells {amounts.text(self.proposal.quantity)}, {self._to_sell()}, and {why}"
        return self._about_position("short", text, "OPENBELL_RISK_SHORT" if shorted else None)

    def _too_little_to_reduce(self) -> Objection | None:
        if not self.proposal.reduce_only:
            return None
        symbol, side = self.proposal.symbol, self.proposal.side
        left = f"only {amounts.text(self.reducible)} of {symbol} can be reduced"
        nothing = f"there is nothing of {symbol} for a {side} to reduce"
        return self._about_position(
            "reduce_only", f"it is reduce_only, and {left if self.reducible else nothing}", None
        )

    def _about_position(self, rule: str, text: str, setting: str | None) -> Objection:
        """Returns an objection whose limit is the quantity that the order could reduce."""
        return Objection(rule, text, amounts.text(self.proposal.quantity), amounts.text(self.reducible), setting)

    def _to_sell(self) -> str:
        held = self.situation.book.quantity(self.proposal.symbol)
        claimed = held - self.reducible if held > 0 else ZERO
        resting = f", of which resting orders sell {amounts.text(claimed)}" if claimed else ""
        return f"{amounts.text(max(ZERO, held))} of {self.proposal.symbol} is held{resting}"

    def _by_size(self) -> Iterable[Objection | None]:
        """Yields the objection of each rule about the size, or None."""
        return (each.objection for each in self._sizes(self.opening))

    def _sizes(self, opening: Decimal) -> Iterable[SizeRule]:
        """Yields each rule about the size, as it applies if the order opens `opening`."""
        limits, leverage = self.limits, self.limits.leverage
        worth = opening * self.price
        # Both sides are multiplied by the leverage: products are exact, quotients are not.
        with_fee = ONE + limits.fee * leverage
        taken = self.situation.book.exposure(self.situation.prices) + self.waiting * with_fee - self._freed()
        available = self.equity * leverage - taken
        costs = "with fees it needs" if limits.fee else "it needs"
        yield SizeRule("balance", worth * with_fee, available, "OPENBELL_RISK_LEVERAGE", costs, "{} is available")
        yield from self._caps(
            "order", worth, limits.order_share, limits.order_notional, "it would be worth", "an order may be worth {}"
        )
        here = abs(self.situation.book.quantity(self.proposal.symbol)) * self.last + self.waiting_here - self._freed()
        yield from self._caps(
            "symbol",
            here + worth,
            limits.symbol_share,
            limits.symbol_notional,
            f"{self.proposal.symbol} held and ordered would be worth",
            "one symbol may be worth {}",
        )

    def _caps(
        self, rule: str, need: Decimal, share: Decimal, notional: Decimal, what: str, allowed: str
    ) -> Iterable[SizeRule]:
        """Yields the two limits of a rule, a share of the equity and an amount; a limit of zero is switched off."""
        setting = f"OPENBELL_RISK_{rule.upper()}"
        if share:
            of_equity = f"{allowed}, {percent(share)} of the equity"
            yield SizeRule(rule, need, share * self.equity, f"{setting}_SHARE", what, of_equity)
        if notional:
            yield SizeRule(rule, need, notional, f"{setting}_NOTIONAL", what, allowed)

    def _freed(self) -> Decimal:
        """Returns the value that the reducing part of the proposal frees before the rest opens a position."""
        return self.reducible * self.last

    def _largest(self) -> tuple[Decimal, str]:
        """Returns the largest quantity that would be accepted, and what limits it."""
        if self.proposal.reduce_only or any(self._without_size()):
            return _exactly_sent(self.reducible), _ONLY_REDUCES
        most, source = min(
            (amounts.share(zero.have - zero.need, one.need - zero.need), zero.source)
            for zero, one in zip(self._sizes(ZERO), self._sizes(ONE), strict=True)
        )
        return _exactly_sent(self.reducible + max(ZERO, most)), source if most > 0 else _ONLY_REDUCES

    def _score(self) -> Decimal:
        used = [amounts.share(each.need, each.have) for each in self._sizes(self.opening)]
        start, most = self.situation.day_start, self.limits.daily_loss
        if start is not None and start > 0 and most:
            used.append(amounts.share(max(ZERO, start - self.equity), most * start))
        return min(ONE, max(used))


def lost_too_much(day_start: Decimal | None, equity: Decimal, limits: RiskLimits) -> str | None:
    """Returns why nothing may be opened today; None if the daily loss is below its limit or not known."""
    objection = daily_loss(day_start, equity, limits.daily_loss)
    return None if objection is None else objection.reason


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


@dataclass(frozen=True, slots=True)
class Objection:
    """The objection of one rule to one order. Values and limits have their units."""

    rule: str
    text: str
    """A sentence with the value and the limit, if the rule has one."""
    value: str | None = None
    limit: str | None = None
    setting: str | None = None
    """The name of the setting that holds the limit; None if the rule has none."""

    @property
    def reason(self) -> str:
        """The sentence; if the rule has a limit, with the names of the rule and its setting."""
        if self.limit is None:
            return self.text
        return f"{self.text} ({self.source})"

    @property
    def source(self) -> str:
        """The names of the rule and of its setting."""
        return ", ".join(filter(None, (f"rule {self.rule}", self.setting)))


@dataclass(frozen=True, slots=True)
class SizeRule:
    """A rule about the size of an order: the dollars that the order would reach, and those that are allowed."""

    rule: str
    need: Decimal
    have: Decimal
    setting: str
    what: str
    """What would be worth `need`."""
    allowed: str
    """The limit in words, with `{}` for the amount."""

    @property
    def objection(self) -> Objection | None:
        """The objection; None if the order is within the limit."""
        if self.need <= self.have:
            return None
        have = money(max(ZERO, self.have))
        need = _beyond(money(self.need), have)
        return self._with(f"{self.what} {need}, and {self.allowed.format(have)}", need, have)

    @property
    def source(self) -> str:
        """The names of the rule and of its setting."""
        return self._with("").source

    def _with(self, text: str, need: str = "", have: str = "") -> Objection:
        return Objection(self.rule, text, need, have, self.setting)


def collar(price: Decimal, last: Decimal, most: Decimal) -> Objection | None:
    """Returns the objection to a price that is too far from the last one; 0 allows any."""
    if not most or abs(price - last) <= most * last:
        return None
    limit = percent(most)
    away = _beyond(percent(amounts.share(abs(price - last), last)), limit)
    text = (
        f"the price {amounts.text(price)} is {away} from the last price, {amounts.text(last)}, "
        f"and at most {limit} is allowed"
    )
    return Objection("collar", text, away, limit, "OPENBELL_RISK_COLLAR")


def too_many_positions(count: int, most: int) -> Objection | None:
    """Returns the objection to one more position than `count`; 0 allows any number."""
    if not most or count < most:
        return None
    text = (
        f"{count} positions are open or being opened, this would be number {count + 1}, and at most {most} are allowed"
    )
    return Objection("positions", text, str(count + 1), str(most), "OPENBELL_RISK_POSITIONS")


def daily_loss(day_start: Decimal | None, equity: Decimal, most: Decimal) -> Objection | None:
    """Returns the objection to opening anything today; None if the loss is below its limit or not known."""
    if day_start is None or day_start <= 0 or not most or day_start - equity < most * day_start:
        return None
    lost, limit = percent(amounts.share(day_start - equity, day_start)), percent(most)
    text = f"the account has lost {lost} today, and opens nothing after {limit}"
    return Objection("daily_loss", text, lost, limit, "OPENBELL_RISK_DAILY_LOSS")


def symbol_not_allowed(symbol: str, allowed: frozenset[str]) -> Objection | None:
    """Returns the objection to a symbol that is not in the list; an empty list allows all."""
    if not allowed or symbol in allowed:
        return None
    names = ", ".join(sorted(allowed))
    text = f"{symbol} is not one of the allowed symbols: {names[:_NAMES]}{'…' if len(names) > _NAMES else ''}"
    return Objection("symbols", text, symbol, names, "OPENBELL_RISK_SYMBOLS")


def money(value: Decimal) -> str:
    """Returns an amount of dollars, such as `1,000.00 USD`."""
    return f"{value:,.2f} USD"


def percent(value: Decimal) -> str:
    """Returns a share in per cent."""
    return f"{float(value * 100):.4g} %"


def _beyond(value: str, limit: str) -> str:
    """Returns a value that is more than its limit, also if the two are rounded to the same text."""
    return f"more than {limit}" if value == limit else value
