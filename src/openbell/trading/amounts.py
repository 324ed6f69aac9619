"""Money, prices and quantities: exact decimals from the caller's own digits, never floats.

A JSON number arrives as a float; its shortest round-trip text is what the caller wrote, to 15 significant digits. Who needs
more sends a string. Products and sums are exact; the few divisions are rounded where they stand.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation, localcontext
from typing import Any

from openbell.market.errors import InvalidParameter

ZERO = Decimal(0)
ONE = Decimal(1)
CENT = Decimal("1e-8")
"""The smallest step of a quantity, and what fees and released costs are rounded to."""
QUANTITY_PLACES = 8
PRICE_PLACES = 12
_TICK = Decimal("1e-12")
_LARGEST = Decimal("1e15")
_LONGEST = 40
_EXACT = Context(prec=80)


def exact() -> Any:
    """A context in which products and sums of amounts lose no digit."""
    return localcontext(_EXACT)


def quantity(value: float | str | Decimal, name: str = "quantity") -> Decimal:
    """A positive number of units with at most 8 decimal places. Raises `InvalidParameter`."""
    return _positive(value, name, QUANTITY_PLACES)


def price(value: float | str | Decimal, name: str = "price") -> Decimal:
    """A positive price with at most 12 decimal places. Raises `InvalidParameter`."""
    return _positive(value, name, PRICE_PLACES)


def _positive(value: float | str | Decimal, name: str, places: int) -> Decimal:
    number = decimal(value, name)
    if not ZERO < number < _LARGEST:
        raise InvalidParameter(f"{name} must be more than 0 and less than {text(_LARGEST)}")
    if number != number.quantize(Decimal(1).scaleb(-places), context=_EXACT):
        raise InvalidParameter(f"{name} may have at most {places} decimal places")
    return number.normalize(_EXACT)


def decimal(value: float | str | Decimal, name: str) -> Decimal:
    """The number as written. Raises `InvalidParameter`."""
    try:
        written = str(value).strip()  # a whole number of thousands of digits has no text
        if isinstance(value, bool) or len(written) > _LONGEST or not written.isascii() or "_" in written:
            raise InvalidParameter(f"{name} must be a number")
        number = Decimal(written)
    except (InvalidOperation, ValueError):
        raise InvalidParameter(f"{name} must be a number") from None
    # An exponent of thousands is a short text and a very long number.
    if not number.is_finite() or (number and not -_LONGEST < number.adjusted() < _LONGEST):
        raise InvalidParameter(f"{name} must be a number of ordinary size")
    return number


def of_bar(value: float) -> Decimal:
    """A bar's price: the feed's own digits."""
    return Decimal(repr(float(value)))


def text(value: Decimal) -> str:
    """The one way an amount is written: plain digits, no exponent, no trailing zeros."""
    written = f"{value.normalize(_EXACT):f}"
    return "0" if written == "-0" else written


def number(value: Decimal) -> float:
    """For answers that the contract wants as JSON numbers."""
    return float(value)


def up(value: Decimal, step: Decimal = CENT) -> Decimal:
    """Rounded up to a whole number of steps: what is owed."""
    return value.quantize(step, ROUND_CEILING, _EXACT)


def down(value: Decimal, step: Decimal = CENT) -> Decimal:
    """Rounded down to a whole number of steps: what may be had."""
    return value.quantize(step, ROUND_FLOOR, _EXACT)


def against(value: Decimal, buying: bool) -> Decimal:
    """A price rounded to its last place, against whoever trades."""
    return up(value, _TICK) if buying else down(value, _TICK)


def share(part: Decimal, whole: Decimal) -> Decimal:
    """A quotient, rounded down to 28 digits."""
    return Context(prec=28, rounding=ROUND_FLOOR).divide(part, whole)
