"""Cipher B: WaveTrend, RSI, stochastic RSI and money flow in one panel, with crosses, divergences and gold buys.

A fractal of an oscillator is a value above (top) or below (bottom) the two values before and the two after it, so it is
confirmed two bars after its centre. A divergence is two fractals that move against the price, and a signal of the bar that
confirms it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.indicators.catalogue.rsi import rsi
from openbell.indicators.catalogue.wavetrend import wave_trend, wave_warmup
from openbell.indicators.channels import Channels, Direction, Line, Segment, Signal, bounds
from openbell.indicators.float_ties import OSCILLATOR, Mask, above, at_least, at_most, below
from openbell.indicators.oscillators import stochastic_rsi
from openbell.indicators.rules import LazySignals, Rule, crosses_above, signals_at, signals_by_label, sort_by_bar
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.ta_lib import talib
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars, Values

LENGTH, SMOOTH = 14, 3
"""Of the RSI of the close, and of the stochastic RSI of the logarithm of the close."""
FLOW_LENGTH, FLOW_SCALE, FLOW_BASE = 60, 150.0, 2.5
"""Of the money-flow wave."""
WAVE_TOP, WAVE_BOTTOM = 45.0, -65.0
SECOND_TOP, SECOND_BOTTOM = 15.0, -40.0
RSI_TOP, RSI_BOTTOM = 60.0, 30.0
"""Limits of fractals: lower tops and higher bottoms are ignored. The wave has two tiers of limits, the stochastic none."""
GOLD, GOLD_RISE, GOLD_RSI = -75.0, 5.0, 30.0
"""A gold buy needs a deep bottom at or below GOLD with a low RSI, and a wave above GOLD and GOLD_RISE above that bottom."""
GOLD_KINDS = (0, 2)
"""Indexes into `KINDS`: a gold buy needs a divergence in the first tier of one of these."""
Indexes = npt.NDArray[np.intp]
CONFIRMS_AFTER = 2
WIDTH = 2 * CONFIRMS_AFTER + 1


def cipher_lines(bars: Bars, channel_length: int, average_length: int) -> CipherLines:
    """WT1, WT2, RSI and both lines of the stochastic."""
    # TA-Lib's LN calls the platform's logarithm; that of numpy depends on the processor.
    logarithms = talib.LN(bars.close)
    stoch = stochastic_rsi(logarithms, LENGTH, LENGTH, SMOOTH, SMOOTH)
    return CipherLines(*wave_trend(bars, channel_length, average_length), rsi(bars.close, LENGTH), *stoch)


def money_flow_wave(bars: Bars) -> Values:
    """The average of each bar's body over its range, scaled; a bar without a range counts as 0."""
    height = bars.high - bars.low
    body = np.divide(bars.close - bars.open, height, out=np.zeros(len(bars)), where=height > 0.0)
    return window_mean(body * FLOW_SCALE, FLOW_LENGTH) - FLOW_BASE


def _compute(
    bars: Bars,
    dot_mode: str,
    wt_channel_length: int,
    wt_average_length: int,
    wt_oversold: float,
    wt_overbought: float,
    show_divergences: bool,
) -> Channels:
    lines = cipher_lines(bars, wt_channel_length, wt_average_length)
    found = find_divergences(lines, bars)

    def signals() -> Iterator[list[Signal]]:
        yield from cross_signals(lines, wt_oversold, wt_overbought, dot_mode == "strict")
        yield from divergence_signals(lines, found)
        yield gold_signals(lines, found)

    return Channels(
        lines=(
            Line("WT1", lines.fast),
            Line("WT2", lines.slow),
            Line("RSI", lines.rsi),
            Line("StochK", lines.stoch),
            Line("StochD", lines.stoch_slow),
            Line("MoneyFlow", money_flow_wave(bars)),
        ),
        histogram=(Line("WT1-WT2", lines.fast - lines.slow),),
        divlines=tuple(segment for each in found for segment in each.segments()) if show_divergences else (),
        signals=LazySignals(lambda: sort_by_bar(signals())),
        hlines=bounds(wt_oversold, wt_overbought, middle=True),
    )


def _warmup(wt_channel_length: int, wt_average_length: int, **_signals: object) -> int:
    return max(wave_warmup(wt_channel_length, wt_average_length), FLOW_LENGTH)


class DivergenceKind(NamedTuple):
    """One kind of divergence."""

    label: str
    line: str
    """A field of `CipherLines`."""
    bullish: bool
    limits: tuple[float, ...]
    """The highest bottom, or the lowest top, that counts, for each tier."""


def is_top(values: Sequence[Values]) -> Mask:
    """Returns True if the middle one of five consecutive values is higher than the others."""
    first, second, centre, fourth, fifth = values
    lower = [above(centre, other, OSCILLATOR) for other in (first, second, fourth, fifth)]
    return lower[0] & lower[1] & lower[2] & lower[3]


def is_bearish(value_before: Values, high_before: Values, value: Values, high: Values) -> Mask:
    """Returns True if the second of two tops is lower in the oscillator and higher in the price."""
    return (high > high_before) & above(value_before, value, OSCILLATOR)


@dataclass(frozen=True, slots=True)
class Divergences:
    """The indexes of the centres of two consecutive fractals, one pair per divergence."""

    first: Indexes
    second: Indexes

    @property
    def confirmed(self) -> Indexes:
        """The bars that confirm them."""
        return self.second + CONFIRMS_AFTER

    def since(self, bar: int) -> Divergences:
        """Those that are confirmed at a bar or later."""
        kept = self.confirmed >= bar
        return Divergences(self.first[kept], self.second[kept])


def tops(values: Values, limit: float = -inf) -> Indexes:
    """The indexes of values higher than two on either side and not below a limit."""
    count = max(0, len(values) - WIDTH + 1)
    higher = is_top([values[at : at + count] for at in range(WIDTH)])
    centre = values[CONFIRMS_AFTER : CONFIRMS_AFTER + count]
    return np.flatnonzero(higher & at_least(centre, limit, OSCILLATOR)) + CONFIRMS_AFTER


def bearish(values: Values, high: Values, limit: float = -inf) -> Divergences:
    """A lower top of the oscillator under a higher high of the price."""
    centres = tops(values, limit)
    first, second = centres[:-1], centres[1:]
    found = is_bearish(values[first], high[first], values[second], high[second])
    return Divergences(first[found], second[found])


def bullish(values: Values, low: Values, limit: float = inf) -> Divergences:
    """A higher bottom of the oscillator over a lower low of the price."""
    return bearish(-values, -low, -limit)


KINDS = (
    DivergenceKind("wt_bull_div", "slow", True, (WAVE_BOTTOM, SECOND_BOTTOM)),
    DivergenceKind("wt_bear_div", "slow", False, (WAVE_TOP, SECOND_TOP)),
    DivergenceKind("rsi_bull_div", "rsi", True, (RSI_BOTTOM,)),
    DivergenceKind("rsi_bear_div", "rsi", False, (RSI_TOP,)),
    DivergenceKind("stoch_bull_div", "stoch", True, (inf,)),
    DivergenceKind("stoch_bear_div", "stoch", False, (-inf,)),
)


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

    def tiers(kind: DivergenceKind) -> Iterable[Divergences]:
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


def bottoms(values: Values, limit: float = inf) -> Indexes:
    """The indexes of values lower than two on either side and not above a limit."""
    return tops(-values, -limit)


INDICATOR = Indicator(
    name="cipher_b",
    title="Cipher B",
    description="WaveTrend with RSI, stochastic RSI and money flow: dots on crosses (strict: where RSI and "
    "stochastic agree; classic: on every cross), divergences of each, gold buy",
    brief="WaveTrend, RSI, money flow: dots, divergences, gold buy",
    overlay=False,
    compute=_compute,
    warmup=_warmup,
    parameters=(
        Parameter("dot_mode", "strict", choices=("strict", "classic")),
        Parameter("wt_channel_length", 9, 2, 500, aliases=("ch_len",)),
        Parameter("wt_average_length", 12, 1, 500, aliases=("avg_len",)),
        Parameter("wt_oversold", -53.0, -300.0, 0.0),
        Parameter("wt_overbought", 53.0, 0.0, 300.0),
        Parameter("show_divergences", True),
    ),
    aliases=("cipher", "cb"),
    inputs=("open", "high", "low", "close"),
    signals={
        "buy": Direction.UP,
        "sell": Direction.DOWN,
        "buy_small": Direction.UP,
        "sell_small": Direction.DOWN,
        "wt_bull_div": Direction.UP,
        "wt_bear_div": Direction.DOWN,
        "rsi_bull_div": Direction.UP,
        "rsi_bear_div": Direction.DOWN,
        "stoch_bull_div": Direction.UP,
        "stoch_bear_div": Direction.DOWN,
        "any_bull_div": Direction.UP,
        "any_bear_div": Direction.DOWN,
        "gold_buy": Direction.STRONGLY_UP,
    },
    differs=(
        "While the price does not move the waves are 0, and while the RSI does not move the stochastic is 50, where the "
        "published script has no value. A divergence is stamped at the bar that confirms it."
    ),
    crosses=(LinePair("WT1", "WT2"),),
)
