"""Why a rule refuses an order: the rule, its limit, the value that the order would reach, and the setting of the limit."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from openbell.trading import amounts
from openbell.trading.amounts import ZERO


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


_NAMES = 200
"""The most characters of allowed symbols in a sentence."""


def money(value: Decimal) -> str:
    """Returns an amount of dollars, such as `1,000.00 USD`."""
    return f"{value:,.2f} USD"


def percent(value: Decimal) -> str:
    """Returns a share in per cent."""
    return f"{float(value * 100):.4g} %"


def _beyond(value: str, limit: str) -> str:
    """Returns a value that is more than its limit, also if the two are rounded to the same text."""
    return f"more than {limit}" if value == limit else value
