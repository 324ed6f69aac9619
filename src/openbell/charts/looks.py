"""How an indicator is drawn where lines and plain areas would not do: one entry each, and nothing elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from openbell.indicators.evaluation import Computed


@dataclass(frozen=True, slots=True)
class Drawing:
    """What becomes of an indicator's channels."""

    lines: Literal["line", "dots", "trail", "candles"] = "line"
    """`trail` is a line that breaks where it changes sides of the price; `dots` and `trail` have the side's colour.

    `candles` are four lines (open, high, low, close) as pale bodies behind the price.
    """
    fills: Literal["plain", "sided"] = "plain"
    """`sided` is green where the first line is the higher one, red elsewhere."""
    green: frozenset[str] = frozenset()
    """Signals that speak for neither direction and are green all the same; the others are red."""


_PLAIN = Drawing()
DRAWINGS = {
    "heikin_ashi": Drawing(lines="candles"),
    "ichimoku": Drawing(fills="sided"),
    "sar": Drawing(lines="dots"),
    "squeeze": Drawing(green=frozenset({"squeeze_off"})),
    "supertrend": Drawing(lines="trail"),
}


def drawing_of(computed: Computed) -> Drawing:
    """How this one is drawn."""
    return DRAWINGS.get(computed.wanted.indicator.name, _PLAIN)
