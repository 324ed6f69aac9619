"""The signals of Cipher B, one bar at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isnan, nan

from openbell.indicators.channels import BarSignal
from openbell.indicators.cipher import (
    GOLD_KINDS,
    KINDS,
    STOCH_SCALE,
    WAVE_BOTTOM,
    Kind,
    cross_rules,
    divergence_rules,
    is_gold,
)
from openbell.indicators.fractals import CONFIRMS_AFTER, WIDTH, RunningDivergences, is_top
from openbell.indicators.rules import RunningRules


class _RunningKind:
    """The divergences of one kind. `sign` turns bottoms and lows into tops and highs."""

    __slots__ = ("_sign", "_tiers")

    def __init__(self, kind: Kind) -> None:
        self._sign = -1.0 if kind.bullish else 1.0
        self._tiers = [RunningDivergences(self._sign * limit) for limit in kind.limits]

    def update(self, value: float, price: float) -> list[bool]:
        """Whether the next fractal, given its value and the price at its centre, diverges in each tier."""
        return [tier.update(self._sign * value, self._sign * price) for tier in self._tiers]


class RunningCipher:
    """Takes the lines at each bar with the bar's high and low; keeps the latest five bars and the latest fractals."""

    __slots__ = ("_crosses", "_deep", "_found", "_kinds", "_lines", "_prices")

    def __init__(self, oversold: float, overbought: float, strict: bool) -> None:
        self._crosses = RunningRules(cross_rules, 4, oversold, overbought, strict)
        self._kinds = [_RunningKind(kind) for kind in KINDS]
        self._lines = {name: deque([nan] * WIDTH, maxlen=WIDTH) for name in ("slow", "rsi", "stoch")}
        self._prices = deque([(nan, nan)] * WIDTH, maxlen=WIDTH)
        self._deep = nan
        """The wave at its latest deep bottom."""
        self._found: tuple[BarSignal, ...] = ()

    def update(self, lines: tuple[float, float, float, float], high: float, low: float) -> None:
        """Add the next bar: WT1, WT2, RSI and stochastic, high and low."""
        _, slow, rsi, stoch = self._crosses.update(*lines)
        self._lines["slow"].append(slow)
        self._lines["rsi"].append(rsi)
        self._lines["stoch"].append(stoch if isnan(stoch) else round(stoch * STOCH_SCALE) / STOCH_SCALE)
        self._prices.append((high, low))
        fractals = {name: _fractal(values) for name, values in self._lines.items()}
        self._found = ()
        if not any(fractals.values()):
            return
        tiers = [self._diverges(place, fractals[kind.line]) for place, kind in enumerate(KINDS)]
        if isnan(slow):
            return
        found = divergence_rules([any(each) for each in tiers], slow, rsi, stoch)
        signals = [BarSignal(label, value) for label, condition, value in found if condition]
        if fractals["slow"] < 0:
            divergent = any(tiers[place][:1] == [True] for place in GOLD_KINDS)
            if divergent and is_gold(self._deep, slow, self._lines["rsi"][CONFIRMS_AFTER]):
                signals.append(BarSignal("gold_buy", slow))
            bottom = self._lines["slow"][CONFIRMS_AFTER]
            if bottom <= WAVE_BOTTOM:
                self._deep = bottom
        self._found = tuple(signals)

    def _diverges(self, place: int, fractal: int) -> Sequence[bool]:
        """Whether each tier of a kind has a divergence at this bar, given the fractal of its line."""
        kind = KINDS[place]
        if fractal != (-1 if kind.bullish else 1):
            return ()
        high, low = self._prices[CONFIRMS_AFTER]
        return self._kinds[place].update(self._lines[kind.line][CONFIRMS_AFTER], low if kind.bullish else high)

    def signals(self) -> tuple[BarSignal, ...]:
        """The signals of the latest bar."""
        return self._crosses.signals() + self._found


def _fractal(values: Sequence[float]) -> int:
    """1 if the middle of five values is a top, −1 if it is a bottom, 0 if it is neither."""
    if is_top(values):
        return 1
    return -1 if is_top([-value for value in values]) else 0
