"""The signals of Cipher B, one bar at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isnan, nan

from openbell.indicators.channels import BarSignal
from openbell.indicators.cipher import (
    GOLD_KINDS,
    KINDS,
    WAVE_BOTTOM,
    Kind,
    cross_rules,
    divergence_rules,
    is_gold,
)
from openbell.indicators.fractals import CONFIRMS_AFTER, WIDTH, RunningDivergences
from openbell.indicators.rules import RunningRules
from openbell.indicators.ties import OSCILLATOR, TOLERANCE, at_most

_EQUAL = TOLERANCE * OSCILLATOR
"""Values of a line that differ by no more are equal."""


class _RunningKind:
    """The divergences of one kind. A sign of −1 turns bottoms and lows into tops and highs."""

    __slots__ = ("_sign", "_tiers")

    def __init__(self, kind: Kind) -> None:
        self._sign = -1.0 if kind.bullish else 1.0
        self._tiers = [RunningDivergences(self._sign * limit) for limit in kind.limits]

    def update(self, value: float, price: float) -> list[bool]:
        """For each tier, True if the next fractal (its value, and the price of its bar) is a divergence."""
        return [tier.update(self._sign * value, self._sign * price) for tier in self._tiers]


class RunningCipher:
    """State: the lines and prices of the latest five bars, and the latest fractal of each tier."""

    __slots__ = ("_crosses", "_deep", "_found", "_kinds", "_prices", "_rsi", "_slow", "_stoch")

    def __init__(self, oversold: float, overbought: float, strict: bool) -> None:
        self._crosses = RunningRules(cross_rules, 4, oversold, overbought, strict)
        self._kinds = [_RunningKind(kind) for kind in KINDS]
        self._slow, self._rsi, self._stoch = (deque([nan] * WIDTH, maxlen=WIDTH) for _ in range(3))
        self._prices = deque([(nan, nan)] * WIDTH, maxlen=WIDTH)
        self._deep = (nan, nan)
        """WT2 and RSI at the latest deep bottom of WT2."""
        self._found: tuple[BarSignal, ...] = ()

    def update(self, lines: tuple[float, float, float, float], high: float, low: float) -> None:
        """Add the next bar: its lines (WT1, WT2, RSI, stochastic), high and low."""
        _, slow, rsi, stoch = self._crosses.update(*lines)
        self._slow.append(slow)
        self._rsi.append(rsi)
        self._stoch.append(stoch)
        self._prices.append((high, low))
        wave, strength, place = _fractal(*self._slow), _fractal(*self._rsi), _fractal(*self._stoch)
        self._found = self._divergences((wave, strength, place)) if wave or strength or place else ()

    def _divergences(self, fractals: Sequence[int]) -> tuple[BarSignal, ...]:
        """The signals of a bar that confirms a fractal of a line: 1 for a top, −1 for a bottom, 0 for neither."""
        high, low = self._prices[CONFIRMS_AFTER]
        tiers: list[list[bool]] = [[] for _ in KINDS]
        for number, (line, fractal) in enumerate(zip((self._slow, self._rsi, self._stoch), fractals, strict=True)):
            if fractal:
                kind = 2 * number + (fractal > 0)  # for each line, `KINDS` has that of bottoms, then that of tops
                tiers[kind] = self._kinds[kind].update(line[CONFIRMS_AFTER], high if fractal > 0 else low)
        slow, found = self._slow[-1], [True in each for each in tiers]
        signals: list[BarSignal] = []
        if isnan(slow):
            return ()
        if True in found:
            rules = divergence_rules(found, slow, self._rsi[-1], self._stoch[-1])
            signals += [BarSignal(label, value) for label, condition, value in rules if condition]
        if fractals[0] < 0:
            divergent = any(tiers[number][:1] == [True] for number in GOLD_KINDS)
            if divergent and is_gold(*self._deep, slow):
                signals.append(BarSignal("gold_buy", slow))
            bottom = self._slow[CONFIRMS_AFTER]
            if at_most(bottom, WAVE_BOTTOM, OSCILLATOR):
                self._deep = bottom, self._rsi[CONFIRMS_AFTER]
        return tuple(signals)

    def signals(self) -> tuple[BarSignal, ...]:
        """The signals of the latest bar."""
        return self._crosses.signals() + self._found


def _fractal(first: float, second: float, centre: float, fourth: float, fifth: float) -> int:
    """1 if the middle of five values is a top, −1 if it is a bottom, 0 if it is neither; as `is_top`."""
    if centre - second > _EQUAL:
        return 1 if centre - first > _EQUAL and centre - fourth > _EQUAL and centre - fifth > _EQUAL else 0
    if second - centre > _EQUAL:
        return -1 if first - centre > _EQUAL and fourth - centre > _EQUAL and fifth - centre > _EQUAL else 0
    return 0
