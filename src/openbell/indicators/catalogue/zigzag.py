"""Zigzag: the legs between swings that are far enough apart. Only confirmed swings are drawn: they never move.

As in TradingView, a candidate is the extreme of `depth // 2` bars on either side (the first of equal ones), known that many
bars later. A more extreme candidate of the same kind replaces the latest swing; one of the other kind that is at least
`deviation` per cent away confirms it.
"""

from __future__ import annotations

from itertools import pairwise, repeat
from math import isnan, nan

from openbell.indicators.channels import BarSignal, Channels, Direction, Segment, Signal
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.swings import RunningSwings, tops
from openbell.indicators.ties import at_least
from openbell.market.bars import Bars

SIGNALS = {"swing_high": Direction.DOWN, "swing_low": Direction.UP}
_HIGH, _LOW = SIGNALS


class _Swings:
    """The latest swing, which is not confirmed yet."""

    __slots__ = ("_deviation", "at", "kind", "price")

    def __init__(self, deviation: float) -> None:
        self._deviation = deviation
        self.at, self.kind, self.price = -1, 0, nan

    def follow(self, at: int, kind: int, price: float) -> tuple[int, BarSignal] | None:
        """The bar and the signal of the swing that the next candidate confirms, if it does; kind is −1 (high) or 1 (low)."""
        confirmed = None
        away = (self.price - price) * kind
        if kind == self.kind:
            if away <= 0.0:
                return None
        elif self.kind:
            if not at_least(away, self._deviation / 100.0 * self.price, self.price):
                return None
            confirmed = self.at, BarSignal(_LOW if self.kind > 0 else _HIGH, self.price)
        self.at, self.kind, self.price = at, kind, price
        return confirmed


def _candidates(bars: Bars, half: int) -> list[tuple[int, int, float]]:
    """Index, kind (−1 for a high, 1 for a low) and price of each candidate, sorted; at one bar the high comes first."""
    highs, lows = tops(bars.high, half), tops(-bars.low, half)
    found = list(zip(highs.tolist(), repeat(-1), bars.high[highs].tolist(), strict=False))
    found += zip(lows.tolist(), repeat(1), bars.low[lows].tolist(), strict=False)
    return sorted(found)


def _compute(bars: Bars, deviation: float, depth: int) -> Channels:
    half = depth // 2
    swings = _Swings(deviation)
    signals: list[Signal] = []
    confirmed: list[tuple[int, float]] = []
    for at, kind, price in _candidates(bars, half):
        if found := swings.follow(at, kind, price):
            swing_at, (label, value) = found
            confirmed.append((swing_at, value))
            signals.append(Signal(at + half, value, label, extreme=swing_at))
    legs = tuple(Segment(*begin, *end) for begin, end in pairwise(confirmed))
    return Channels(divlines=legs, signals=tuple(signals))


class _Stream:
    """Emits only signals: the zigzag has no lines."""

    def __init__(self, deviation: float, depth: int) -> None:
        self._swings = _Swings(deviation)
        self._candidates = RunningSwings(depth // 2)
        self._found: tuple[BarSignal, ...] = ()

    def update(self, bar: Bar) -> tuple[float, ...]:
        high, low = self._candidates.update(bar)
        found = []
        if not isnan(high):
            found.append(self._swings.follow(0, -1, high))
        if not isnan(low):
            found.append(self._swings.follow(0, 1, low))
        self._found = tuple([each[1] for each in found if each])
        return ()

    def signals(self) -> tuple[BarSignal, ...]:
        return self._found


INDICATOR = Indicator(
    name="zigzag",
    title="Zigzag",
    description="Legs between confirmed swings that lie a percentage apart",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda deviation, depth: 2 * (depth // 2) + 1,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("deviation", 5.0, 0.01, 100.0, aliases=("price_deviation", "price_deviation_for_reversals")),
        Parameter("depth", 10, 2, 200, aliases=("pivot_legs",)),
    ),
    inputs=("high", "low"),
    signals=SIGNALS,
    differs="TradingView also draws the last leg, which can still move.",
)
