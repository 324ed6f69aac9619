"""Zigzag: the legs between swings that are far enough apart. Only confirmed swings are drawn: they never move.

As in TradingView, a candidate is the extreme of `depth // 2` bars on either side (the first of equal ones), known that many
bars later. A more extreme candidate of the same kind replaces the latest swing; one of the other kind that is at least
`deviation` per cent away confirms it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, repeat
from typing import NamedTuple

from openbell.indicators.channels import Channels, Direction, Segment, Signal
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import tops
from openbell.market.bars import Bars

SIGNALS = {"swing_high": Direction.DOWN, "swing_low": Direction.UP}
_HIGH, _LOW = SIGNALS


class Swing(NamedTuple):
    """A candidate, which is a swing once it is confirmed."""

    at: int
    kind: int
    """−1 for a high, 1 for a low."""
    price: float


def _candidates(bars: Bars, half: int) -> list[tuple[int, int, float]]:
    """Index, kind (−1 for a high, 1 for a low) and price of each candidate, sorted; at one bar the high comes first."""
    highs, lows = tops(bars.high, half), tops(-bars.low, half)
    found = list(zip(highs.tolist(), repeat(-1), bars.high[highs].tolist(), strict=False))
    found += zip(lows.tolist(), repeat(1), bars.low[lows].tolist(), strict=False)
    return sorted(found)


def _swings(candidates: Iterable[tuple[int, int, float]], deviation: float) -> Iterator[tuple[int, Swing]]:
    """The swings that are confirmed, each with the bar of the candidate that confirms it."""
    latest: Swing | None = None
    for at, kind, price in candidates:
        away = 0.0 if latest is None else (latest.price - price) * kind
        if latest is not None and kind == latest.kind:
            if away <= 0.0:
                continue
        elif latest is not None:
            # Compared as `float_ties` does, with numbers instead of arrays.
            if away - deviation / 100.0 * latest.price < -TOLERANCE * latest.price:
                continue
            yield at, latest
        latest = Swing(at, kind, price)


def _compute(bars: Bars, deviation: float, depth: int) -> Channels:
    half = depth // 2
    confirmed = list(_swings(_candidates(bars, half), deviation))
    signals = tuple(
        Signal(at + half, swing.price, _LOW if swing.kind > 0 else _HIGH, extreme=swing.at) for at, swing in confirmed
    )
    legs = tuple(Segment(begin.at, begin.price, end.at, end.price) for (_, begin), (_, end) in pairwise(confirmed))
    return Channels(divlines=legs, signals=signals)


INDICATOR = Indicator(
    name="zigzag",
    title="Zigzag",
    description="Legs between confirmed swings that lie a percentage apart",
    overlay=True,
    compute=_compute,
    warmup=lambda deviation, depth: 2 * (depth // 2) + 1,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("deviation", 5.0, 0.01, 100.0, aliases=("price_deviation", "price_deviation_for_reversals")),
        Parameter("depth", 10, 2, 200, aliases=("pivot_legs",)),
    ),
    inputs=("high", "low"),
    signals=SIGNALS,
    differs="TradingView also draws the last leg, which can still move.",
)
