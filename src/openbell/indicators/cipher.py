"""What traders read from Cipher B's lines: crosses of the waves, divergences of each line, and the gold buy.

Fractals are known two bars after their centre; every signal stands at the bar that confirms it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from openbell.indicators.channels import Segment, Signal
from openbell.indicators.dots import Mask, dots
from openbell.indicators.fractals import CONFIRMS_AFTER, Divergences, bearish, bottoms, bullish
from openbell.indicators.rules import Condition, Number, Rule, array_signals, crosses_above, negated
from openbell.market.bars import Bars, Values

WAVE_TOP, WAVE_BOTTOM = 45.0, -65.0
SECOND_TOP, SECOND_BOTTOM = 15.0, -40.0
RSI_TOP, RSI_BOTTOM = 60.0, 30.0
"""A fractal counts from its limit on. The wave has two tiers of them; the stochastic has none."""
GOLD, GOLD_RISE, GOLD_RSI = -75.0, 5.0, 30.0
STOCH_SCALE = 1e9
"""The stochastic is rounded to 9 digits: it often rests at 0 or 100, where a last digit would make a plateau a fractal."""


class Kind(NamedTuple):
    """One kind of divergence."""

    label: str
    line: str
    """The field of `CipherLines`."""
    bullish: bool
    limits: tuple[float, ...]
    """One for each tier: the highest bottom, or the lowest top, that counts."""


KINDS = (
    Kind("wt_bull_div", "slow", True, (WAVE_BOTTOM, SECOND_BOTTOM)),
    Kind("wt_bear_div", "slow", False, (WAVE_TOP, SECOND_TOP)),
    Kind("rsi_bull_div", "rsi", True, (RSI_BOTTOM,)),
    Kind("rsi_bear_div", "rsi", False, (RSI_TOP,)),
    Kind("stoch_bull_div", "stoch", True, (inf,)),
    Kind("stoch_bear_div", "stoch", False, (-inf,)),
)
GOLD_KINDS = (0, 2)
"""The places in `KINDS` whose first tier a gold buy needs one of."""


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


def cross_rules(
    before: Sequence[Number], now: Sequence[Number], oversold: float, overbought: float, strict: bool
) -> Sequence[Rule]:
    """Large dots in the zones, small ones elsewhere; strict ones only where RSI and stochastic agree."""
    (fast_before, slow_before, _, _), (fast, slow, rsi, stoch) = before, now
    up = crosses_above(fast_before, slow_before, fast, slow)
    down = crosses_above(slow_before, fast_before, slow, fast)
    buy, sell = up & (slow <= oversold), down & (slow >= overbought)
    if strict:
        buy = buy & (rsi < 30.0) & (stoch < 20.0)
        sell = sell & (rsi > 70.0) & (stoch > 80.0)
        up, down = up & (rsi < 40.0), down & (rsi > 60.0)
    return (
        ("buy", buy, slow),
        ("sell", sell, slow),
        ("buy_small", up & negated(buy), slow),
        ("sell_small", down & negated(sell), slow),
    )


def divergence_rules(found: Sequence[Condition], slow: Number, rsi: Number, stoch: Number) -> Iterator[Rule]:
    """One dot for each of `KINDS` that is found, and one for any of a direction."""
    values = {"slow": slow, "rsi": rsi, "stoch": stoch}
    for kind, condition in zip(KINDS, found, strict=True):
        yield kind.label, condition, values[kind.line]
    yield "any_bull_div", found[0] | found[2] | found[4], slow
    yield "any_bear_div", found[1] | found[3] | found[5], slow


def is_gold(deep: Number, slow: Number, rsi_at_centre: Number) -> Condition:
    """True if the wave turns up after a very deep bottom while the RSI is weak: a gold buy, given a divergence."""
    return (deep <= GOLD) & (slow > GOLD) & (slow - deep >= GOLD_RISE) & (rsi_at_centre < GOLD_RSI)


def crosses(lines: CipherLines, oversold: float, overbought: float, strict: bool) -> Iterator[list[Signal]]:
    """The dots of `cross_rules`."""
    rows = (lines.fast, lines.slow, lines.rsi, lines.stoch)
    return array_signals(cross_rules, rows, oversold, overbought, strict)


def families(lines: CipherLines, bars: Bars) -> tuple[Family, ...]:
    """Bullish and bearish divergences of the wave, the RSI and the stochastic."""
    stoch = np.rint(lines.stoch * STOCH_SCALE) / STOCH_SCALE
    compared = {"slow": lines.slow, "rsi": lines.rsi, "stoch": stoch}
    warm = lines.warm_from()

    def tiers(kind: Kind) -> Iterable[Divergences]:
        find, price = (bullish, bars.low) if kind.bullish else (bearish, bars.high)
        return (find(compared[kind.line], price, limit).since(warm) for limit in kind.limits)

    return tuple(Family(kind.label, getattr(lines, kind.line), tuple(tiers(kind))) for kind in KINDS)


def divergences(lines: CipherLines, found: tuple[Family, ...]) -> Iterator[list[Signal]]:
    """The dots of `divergence_rules`."""
    masks = [family.confirmed() for family in found]
    for label, mask, values in divergence_rules(masks, lines.slow, lines.rsi, lines.stoch):
        yield dots(label, mask, values)


def gold_buys(lines: CipherLines, found: tuple[Family, ...]) -> list[Signal]:
    """The wave turns up from a bottom after a very deep one, with a bullish divergence of it or of a weak RSI."""
    slow = lines.slow
    divergent = np.zeros(len(slow), dtype=bool)
    for place in GOLD_KINDS:
        divergent[found[place].tiers[0].confirmed] = True
    centres, deep = bottoms(slow), bottoms(slow, WAVE_BOTTOM)
    rank = np.searchsorted(deep, centres)  # how many deep ones came before
    centres, previous = centres[rank > 0], slow[deep[rank[rank > 0] - 1]]
    at_bar = centres + CONFIRMS_AFTER
    gold = is_gold(previous, slow[at_bar], lines.rsi[centres])
    return dots("gold_buy", at_bar[gold & divergent[at_bar]], slow)
