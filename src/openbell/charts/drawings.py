"""How an indicator is drawn if plain lines and areas are not enough: one entry in `DRAWINGS` each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from openbell.indicators.evaluation import Computed


@dataclass(frozen=True, slots=True)
class Drawing:
    """How the channels of an indicator are drawn."""

    lines: Literal["line", "dots", "trail", "candles"] = "line"
    """`trail` is a line with a gap where it crosses the price. `dots` and `trail` are green below the price, red above it.

    `candles` draws four lines (open, high, low, close) as pale candle bodies behind the price.
    """
    fills: Literal["plain", "sided"] = "plain"
    """`sided` is green where the first line is higher, red elsewhere."""
    green: frozenset[str] = frozenset()
    """Signals without a direction that are green; other signals without a direction are red."""


_PLAIN = Drawing()
DRAWINGS = {
    "heikin_ashi": Drawing(lines="candles"),
    "ichimoku": Drawing(fills="sided"),
    "sar": Drawing(lines="dots"),
    "squeeze": Drawing(green=frozenset({"squeeze_off"})),
    "supertrend": Drawing(lines="trail"),
}


def drawing_of(computed: Computed) -> Drawing:
    """Returns how this indicator is drawn."""
    return DRAWINGS.get(computed.request.indicator.name, _PLAIN)
