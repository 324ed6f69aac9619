"""How an indicator is drawn if plain lines and areas are not enough: one entry in `DRAWINGS` each."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    hidden: frozenset[str] = frozenset()
    """Lines that results have but charts do not draw, such as a direction of 1 or −1 among prices."""


_PLAIN = Drawing()
_DIRECTION = frozenset({"direction"})
DRAWINGS = {
    "double_pattern": Drawing(hidden=frozenset({"pattern"})),
    "fibonacci": Drawing(hidden=_DIRECTION),
    "gann_swing": Drawing(hidden=_DIRECTION),
    "gap": Drawing(hidden=frozenset({"gap"})),
    "heikin_ashi": Drawing(lines="candles"),
    "ichimoku": Drawing(fills="sided"),
    "range_bars": Drawing(hidden=_DIRECTION | {"count"}),
    "regression_channel": Drawing(hidden=frozenset({"slope"})),
    "renko": Drawing(hidden=_DIRECTION | {"bricks"}),
    "sar": Drawing(lines="dots"),
    "squeeze": Drawing(green=frozenset({"squeeze_off"})),
    "supertrend": Drawing(lines="trail"),
    "volatility_stop": Drawing(lines="trail", hidden=_DIRECTION),
}


def drawing_of(computed: Computed) -> Drawing:
    """Returns how this indicator is drawn."""
    return DRAWINGS.get(computed.request.indicator.name, _PLAIN)


def drawn_lines(computed: Computed) -> Computed:
    """Returns the indicator without the lines that are not drawn."""
    hidden, channels = drawing_of(computed).hidden, computed.channels
    if not hidden:
        return computed
    lines = tuple(line for line in channels.lines if line.label not in hidden)
    return replace(computed, channels=replace(channels, lines=lines))
