"""What traders read from Cipher B's lines: crosses of the waves, divergences of each line, and the gold buy.

Fractals are known two bars after their centre; every signal stands at the bar that confirms it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from openbell.indicators.channels import Segment, Signal
from openbell.indicators.dots import Mask, crosses_above, dots
from openbell.indicators.fractals import CONFIRMS_AFTER, Divergences, bearish, bottoms, bullish
from openbell.market.bars import Bars, Values

WAVE_TOP, WAVE_BOTTOM = 45.0, -65.0
SECOND_TOP, SECOND_BOTTOM = 15.0, -40.0
RSI_TOP, RSI_BOTTOM = 60.0, 30.0
"""A fractal counts from its limit on. The wave has two tiers of them; the stochastic has none."""
GOLD, GOLD_RISE = -75.0, 5.0


@dataclass(frozen=True, slots=True)
class CipherLines:
    """The lines, one value per bar."""

    fast: Values
    slow: Values
    rsi: Values
    stoch: Values

    def warm_from(self) -> int:
        """The first bar with a value of both waves: no signal before."""
        return int(np.isnan(self.slow).sum())


@dataclass(frozen=True, slots=True)
class Family:
    """The divergences of one line in one direction, in tiers."""

    label: str
    line: Values
    tiers: tuple[Divergences, ...]

    def confirmed(self) -> Mask:
        """Where one of any tier is confirmed."""
        found = np.zeros(len(self.line), dtype=bool)
        for tier in self.tiers:
            found[tier.confirmed] = True
        return found

    def segments(self) -> Iterator[Segment]:
        """A line between the two centres of each; dashed where only the second tier has it."""
        drawn: set[tuple[int, int]] = set()
        for number, tier in enumerate(self.tiers):
            for first, second in zip(tier.first.tolist(), tier.second.tolist(), strict=True):
                if (first, second) not in drawn:
                    drawn.add((first, second))
                    yield Segment(first, float(self.line[first]), second, float(self.line[second]), dashed=number > 0)


def crosses(lines: CipherLines, oversold: float, overbought: float, strict: bool) -> Iterator[list[Signal]]:
    """Large dots in the zones, small ones elsewhere; strict ones only where RSI and stochastic agree."""
    slow = lines.slow
    up, down = crosses_above(lines.fast, slow), crosses_above(slow, lines.fast)
    buy, sell = up & (slow <= oversold), down & (slow >= overbought)
    if strict:
        buy &= (lines.rsi < 30.0) & (lines.stoch < 20.0)
        sell &= (lines.rsi > 70.0) & (lines.stoch > 80.0)
        up &= lines.rsi < 40.0
        down &= lines.rsi > 60.0
    yield dots("buy", buy, slow)
    yield dots("sell", sell, slow)
    yield dots("buy_small", up & ~buy, slow)
    yield dots("sell_small", down & ~sell, slow)


def families(lines: CipherLines, bars: Bars) -> tuple[Family, ...]:
    """Bullish and bearish divergences of the wave, the RSI and the stochastic."""
    slow, rsi, high, low = lines.slow, lines.rsi, bars.high, bars.low
    stoch = np.round(lines.stoch, 9)  # it often rests at 0 or 100, where a last digit would make a fractal of a plateau
    found = (
        ("wt_bull_div", slow, (bullish(slow, low, WAVE_BOTTOM), bullish(slow, low, SECOND_BOTTOM))),
        ("wt_bear_div", slow, (bearish(slow, high, WAVE_TOP), bearish(slow, high, SECOND_TOP))),
        ("rsi_bull_div", rsi, (bullish(rsi, low, RSI_BOTTOM),)),
        ("rsi_bear_div", rsi, (bearish(rsi, high, RSI_TOP),)),
        ("stoch_bull_div", lines.stoch, (bullish(stoch, low),)),
        ("stoch_bear_div", lines.stoch, (bearish(stoch, high),)),
    )
    warm = lines.warm_from()
    return tuple(Family(label, line, tuple(tier.since(warm) for tier in tiers)) for label, line, tiers in found)


def divergences(lines: CipherLines, found: tuple[Family, ...]) -> Iterator[list[Signal]]:
    """One dot for each kind and bar, and one for any of a direction."""
    masks = [family.confirmed() for family in found]
    for family, mask in zip(found, masks, strict=True):
        yield dots(family.label, mask, family.line)
    yield dots("any_bull_div", masks[0] | masks[2] | masks[4], lines.slow)
    yield dots("any_bear_div", masks[1] | masks[3] | masks[5], lines.slow)


def gold_buys(lines: CipherLines, found: tuple[Family, ...]) -> list[Signal]:
    """The wave turns up from a bottom after a very deep one, with a bullish divergence of it or of a weak RSI."""
    slow = lines.slow
    divergent = np.zeros(len(slow), dtype=bool)
    for family in (found[0], found[2]):
        divergent[family.tiers[0].confirmed] = True
    centres, deep = bottoms(slow), bottoms(slow, WAVE_BOTTOM)
    rank = np.searchsorted(deep, centres)  # how many deep ones came before
    centres, previous = centres[rank > 0], slow[deep[rank[rank > 0] - 1]]
    at_bar = centres + CONFIRMS_AFTER
    now = slow[at_bar]
    gold = (previous <= GOLD) & (now > GOLD) & (now - previous >= GOLD_RISE) & (lines.rsi[centres] < 30.0)
    return dots("gold_buy", at_bar[gold & divergent[at_bar]], slow)
