"""The signals of Cipher B: crosses of the waves, divergences of each line, and the gold buy.

A fractal is confirmed two bars after its centre, so a divergence is a signal of that bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from openbell.indicators.channels import Segment, Signal
from openbell.indicators.float_ties import OSCILLATOR, Mask, above, at_least, at_most, below
from openbell.indicators.fractals import CONFIRMS_AFTER, Divergences, bearish, bottoms, bullish
from openbell.indicators.rules import (
    Rule,
    crosses_above,
    signals_at,
    signals_by_label,
)
from openbell.market.bars import Bars, Values

WAVE_TOP, WAVE_BOTTOM = 45.0, -65.0
SECOND_TOP, SECOND_BOTTOM = 15.0, -40.0
RSI_TOP, RSI_BOTTOM = 60.0, 30.0
"""Limits of fractals: lower tops and higher bottoms are ignored. The wave has two tiers of limits, the stochastic none."""
GOLD, GOLD_RISE, GOLD_RSI = -75.0, 5.0, 30.0
"""A gold buy needs a deep bottom at or below GOLD with a low RSI, and a wave above GOLD and GOLD_RISE above that bottom."""


class Kind(NamedTuple):
    """One kind of divergence."""

    label: str
    line: str
    """A field of `CipherLines`."""
    bullish: bool
    limits: tuple[float, ...]
    """The highest bottom, or the lowest top, that counts, for each tier."""


KINDS = (
    Kind("wt_bull_div", "slow", True, (WAVE_BOTTOM, SECOND_BOTTOM)),
    Kind("wt_bear_div", "slow", False, (WAVE_TOP, SECOND_TOP)),
    Kind("rsi_bull_div", "rsi", True, (RSI_BOTTOM,)),
    Kind("rsi_bear_div", "rsi", False, (RSI_TOP,)),
    Kind("stoch_bull_div", "stoch", True, (inf,)),
    Kind("stoch_bear_div", "stoch", False, (-inf,)),
)
GOLD_KINDS = (0, 2)
"""Indexes into `KINDS`: a gold buy needs a divergence in the first tier of one of these."""


@dataclass(frozen=True, slots=True)
class CipherLines:
    """The lines, one value per bar."""

    fast: Values
    slow: Values
    rsi: Values
    stoch: Values
    stoch_slow: Values

    def warm_from(self) -> int:
        """The index of the first bar with values of both waves. No divergence is emitted before it."""
        return int(np.isnan(self.slow).sum())


@dataclass(frozen=True, slots=True)
class KindDivergences:
    """The divergences of one kind, in tiers."""

    label: str
    line: Values
    tiers: tuple[Divergences, ...]

    def confirmed(self) -> Mask:
        """The bars that confirm a divergence of any tier."""
        found = np.zeros(len(self.line), dtype=bool)
        for tier in self.tiers:
            found[tier.confirmed] = True
        return found

    def segments(self) -> Iterator[Segment]:
        """A segment between the two centres of each divergence; dashed if only the second tier has it."""
        drawn: set[tuple[int, int]] = set()
        for number, tier in enumerate(self.tiers):
            columns = (tier.first, self.line[tier.first], tier.second, self.line[tier.second])
            for x1, y1, x2, y2 in zip(*(column.tolist() for column in columns), strict=True):
                if (x1, x2) not in drawn:
                    drawn.add((x1, x2))
                    yield Segment(x1, y1, x2, y2, dashed=number > 0)


def cross_rules(
    before: Sequence[Values], now: Sequence[Values], oversold: float, overbought: float, strict: bool
) -> Sequence[Rule]:
    """`buy` and `sell` at crosses in the zones, small ones at other crosses; `strict` needs RSI and stochastic to agree."""
    (fast_before, slow_before, _, _), (fast, slow, rsi, stoch) = before, now
    up = crosses_above(fast_before, slow_before, fast, slow)
    down = crosses_above(slow_before, fast_before, slow, fast)
    buy, sell = up & at_most(slow, oversold, OSCILLATOR), down & at_least(slow, overbought, OSCILLATOR)
    if strict:
        buy = buy & below(rsi, 30.0, OSCILLATOR) & below(stoch, 20.0, OSCILLATOR)
        sell = sell & above(rsi, 70.0, OSCILLATOR) & above(stoch, 80.0, OSCILLATOR)
        up, down = up & below(rsi, 40.0, OSCILLATOR), down & above(rsi, 60.0, OSCILLATOR)
    return (
        ("buy", buy, slow),
        ("sell", sell, slow),
        ("buy_small", up & ~buy, slow),
        ("sell_small", down & ~sell, slow),
    )


def divergence_rules(
    found: Sequence[Mask], slow: Values, rsi: Values, stoch: Values
) -> Iterator[tuple[str, Mask, Values]]:
    """A signal for each of `KINDS`, and one for any of each direction."""
    values = {"slow": slow, "rsi": rsi, "stoch": stoch}
    for kind, condition in zip(KINDS, found, strict=True):
        yield kind.label, condition, values[kind.line]
    yield "any_bull_div", found[0] | found[2] | found[4], slow
    yield "any_bear_div", found[1] | found[3] | found[5], slow


def is_gold(deep: Values, deep_rsi: Values, slow: Values) -> Mask:
    """Returns True if the wave has risen from its last deep bottom, where the RSI was low: a gold buy, given a divergence.

    `deep` and `deep_rsi` are WT2 and RSI at the centre of that bottom.
    """
    low = at_most(deep, GOLD, OSCILLATOR) & below(deep_rsi, GOLD_RSI, OSCILLATOR)
    return low & above(slow, GOLD, OSCILLATOR) & at_least(slow - deep, GOLD_RISE, OSCILLATOR)


def cross_signals(lines: CipherLines, oversold: float, overbought: float, strict: bool) -> Iterator[list[Signal]]:
    """The signals of `cross_rules`, one list per label."""
    values = (lines.fast, lines.slow, lines.rsi, lines.stoch)
    return signals_by_label(cross_rules, values, oversold, overbought, strict)


def find_divergences(lines: CipherLines, bars: Bars) -> tuple[KindDivergences, ...]:
    """The divergences of each of `KINDS`."""
    warm = lines.warm_from()

    def tiers(kind: Kind) -> Iterable[Divergences]:
        find, price = (bullish, bars.low) if kind.bullish else (bearish, bars.high)
        return (find(getattr(lines, kind.line), price, limit).since(warm) for limit in kind.limits)

    return tuple(KindDivergences(kind.label, getattr(lines, kind.line), tuple(tiers(kind))) for kind in KINDS)


def divergence_signals(lines: CipherLines, found: tuple[KindDivergences, ...]) -> Iterator[list[Signal]]:
    """The signals of `divergence_rules`, one list per label."""
    masks = [each.confirmed() for each in found]
    for label, mask, values in divergence_rules(masks, lines.slow, lines.rsi, lines.stoch):
        yield signals_at(label, np.flatnonzero(mask), values)


def gold_signals(lines: CipherLines, found: tuple[KindDivergences, ...]) -> list[Signal]:
    """Gold buys: a bottom of the wave after a deep one, with a bullish divergence of the wave or of the RSI."""
    slow = lines.slow
    divergent = np.zeros(len(slow), dtype=bool)
    for place in GOLD_KINDS:
        divergent[found[place].tiers[0].confirmed] = True
    centres, deep = bottoms(slow), bottoms(slow, WAVE_BOTTOM)
    rank = np.searchsorted(deep, centres)  # the number of deep bottoms before each bottom
    centres, previous = centres[rank > 0], deep[rank[rank > 0] - 1]
    at_bar = centres + CONFIRMS_AFTER
    gold = is_gold(slow[previous], lines.rsi[previous], slow[at_bar])
    return signals_at("gold_buy", at_bar[gold & divergent[at_bar]], slow)
