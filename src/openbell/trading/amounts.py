"""Money, prices and quantities as exact decimals, never floats.

A JSON number arrives as a float; its shortest round-trip text equals what the caller wrote, up to 15 significant digits.
Callers that need more digits send a string. Products and sums are exact; each division rounds explicitly.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, localcontext
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
_FLOAT_TAIL = Decimal("1e-12")
"""The share of a quantity below which digits after its smallest step come from computing with floats."""
_LONGEST = 40
_EXACT = Context(prec=80)


def exact() -> Any:
    """Returns a decimal context in which products and sums of amounts are exact."""
    return localcontext(_EXACT)


def quantity(value: float | str | Decimal, name: str = "quantity") -> Decimal:
    """Returns a positive quantity with at most 8 decimal places. Raises `InvalidParameter`.

    The tail of a float's text is rounded away: 0.4485060000000001 means 0.448506, and 0.7999999999999999 means 0.8.
    """
    number = decimal(value, name)
    nearest = number.quantize(CENT, ROUND_HALF_EVEN, _EXACT)
    is_tail = abs(number - nearest) < number * _FLOAT_TAIL
    return _positive(nearest if is_tail else number, name, QUANTITY_PLACES)


def rounding_note(value: float | str | Decimal, rounded: Decimal, name: str = "quantity") -> str | None:
    """Returns that the tail of a quantity was rounded away by `quantity`; None if it was not."""
    given = decimal(value, name)
    return None if given == rounded else f"{name} {text(given)} was rounded to {text(rounded)}"


def price(value: float | str | Decimal, name: str = "price") -> Decimal:
    """Returns a positive price with at most 12 decimal places. Raises `InvalidParameter`."""
    return _positive(value, name, PRICE_PLACES)


def _positive(value: float | str | Decimal, name: str, places: int) -> Decimal:
    number = decimal(value, name)
    if not ZERO < number < _LARGEST:
        raise InvalidParameter(f"{name} must be more than 0 and less than {text(_LARGEST)}")
    if number != number.quantize(Decimal(1).scaleb(-places), context=_EXACT):
        raise InvalidParameter(f"{name} may have at most {places} decimal places")
    return number.normalize(_EXACT)


def decimal(value: float | str | Decimal, name: str) -> Decimal:
    """Returns the number with the digits that the caller wrote. Raises `InvalidParameter`."""
    try:
        written = str(value).strip()  # raises ValueError for an int of thousands of digits
        if isinstance(value, bool) or len(written) > _LONGEST or not written.isascii() or "_" in written:
            raise InvalidParameter(f"{name} must be a number")
        number = Decimal(written)
    except (InvalidOperation, ValueError):
        raise InvalidParameter(f"{name} must be a number") from None
    # A short text can have an exponent of thousands: the number would be very long.
    if not number.is_finite() or (number and not -_LONGEST < number.adjusted() < _LONGEST):
        raise InvalidParameter(f"{name} must be a number of ordinary size")
    return number


def of_bar(value: float) -> Decimal:
    """Returns a price or volume of a bar with the digits of the feed."""
    return Decimal(repr(float(value)))


def text(value: Decimal) -> str:
    """Returns an amount as text: plain digits, no exponent, no trailing zeros."""
    written = f"{value.normalize(_EXACT):f}"
    return "0" if written == "-0" else written


def number(value: Decimal) -> float:
    """Returns an amount as a float, for results in which the contract requires a JSON number."""
    return float(value)


def up(value: Decimal, step: Decimal = CENT) -> Decimal:
    """Returns a value rounded up to a multiple of `step`; for amounts that are owed."""
    return value.quantize(step, ROUND_CEILING, _EXACT)


def down(value: Decimal, step: Decimal = CENT) -> Decimal:
    """Returns a value rounded down to a multiple of `step`; for amounts that are available."""
    return value.quantize(step, ROUND_FLOOR, _EXACT)


def against(value: Decimal, buying: bool) -> Decimal:
    """Returns a price rounded to 12 places: up if buying, down if selling."""
    return up(value, _TICK) if buying else down(value, _TICK)


def share(part: Decimal, whole: Decimal) -> Decimal:
    """Returns `part / whole`, rounded down to 28 digits."""
    return Context(prec=28, rounding=ROUND_FLOOR).divide(part, whole)
