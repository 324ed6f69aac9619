"""Cipher B: WaveTrend, RSI, stochastic RSI and money flow in one panel, with crosses, divergences and gold buys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openbell.indicators.catalogue.rsi import rsi
from openbell.indicators.channels import Channels, Direction, Line, Signal, bounds
from openbell.indicators.cipher import CipherLines, cross_signals, divergence_signals, find_divergences, gold_signals
from openbell.indicators.line_pairs import LinePair
from openbell.indicators.oscillators import stochastic_rsi
from openbell.indicators.rules import LazySignals, sort_by_bar
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.indicators.waves import wave_trend, wave_warmup
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars, Values

LENGTH, SMOOTH = 14, 3
"""Of the RSI of the close, and of the stochastic RSI of the logarithm of the close."""
FLOW_LENGTH, FLOW_SCALE, FLOW_BASE = 60, 150.0, 2.5
"""Of the money-flow wave."""


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
