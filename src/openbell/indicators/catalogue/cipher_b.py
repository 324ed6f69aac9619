"""Cipher B: WaveTrend, RSI and stochastic RSI in one panel, with crosses, divergences and gold buys as signals."""

from __future__ import annotations

from math import log

import numpy as np

from openbell.indicators.catalogue.rsi import RunningRsi, rsi
from openbell.indicators.channels import BarSignal, Channels, Direction, Line
from openbell.indicators.cipher import CipherLines, cross_signals, divergence_signals, find_divergences, gold_signals
from openbell.indicators.oscillators import RunningStochasticRsi, stochastic_rsi
from openbell.indicators.rules import sort_by_bar
from openbell.indicators.running_cipher import RunningCipher
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.waves import RunningWave, wave_trend, wave_warmup
from openbell.market.bars import Bars

LENGTH, SMOOTH = 14, 3
"""Of the RSI of the close, and of the stochastic RSI of the logarithm of the close."""


def cipher_lines(bars: Bars, channel_length: int, average_length: int) -> CipherLines:
    """WT1, WT2, RSI and stochastic."""
    # Not np.log: it may round differently from math.log, which the stream uses.
    logarithms = np.array([log(close) for close in bars.close.tolist()])
    stoch, _ = stochastic_rsi(logarithms, LENGTH, LENGTH, SMOOTH, 1)
    return CipherLines(*wave_trend(bars, channel_length, average_length), rsi(bars.close, LENGTH), stoch)


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
    signals = [
        *cross_signals(lines, wt_oversold, wt_overbought, dot_mode == "strict"),
        *divergence_signals(lines, found),
        gold_signals(lines, found),
    ]
    return Channels(
        lines=(Line("WT1", lines.fast), Line("WT2", lines.slow), Line("RSI", lines.rsi), Line("StochK", lines.stoch)),
        histogram=(Line("WT1-WT2", lines.fast - lines.slow),),
        divlines=tuple(segment for each in found for segment in each.segments()) if show_divergences else (),
        signals=sort_by_bar(signals),
        hlines=(wt_oversold, 0.0, wt_overbought),
    )


class _Stream:
    def __init__(
        self,
        dot_mode: str,
        wt_channel_length: int,
        wt_average_length: int,
        wt_oversold: float,
        wt_overbought: float,
        show_divergences: bool,  # noqa: ARG002 - takes every parameter
    ) -> None:
        self._wave = RunningWave(wt_channel_length, wt_average_length)
        self._rsi = RunningRsi(LENGTH)
        self._stoch = RunningStochasticRsi(LENGTH, LENGTH, SMOOTH, 1)
        self._signals = RunningCipher(wt_oversold, wt_overbought, dot_mode == "strict")

    def update(self, bar: Bar) -> tuple[float, ...]:
        fast, slow = self._wave.update(bar)
        stoch, _ = self._stoch.update(log(bar.close))
        strength = self._rsi.update(bar.close)
        self._signals.update((fast, slow, strength, stoch), bar.high, bar.low)
        return fast, slow, strength, stoch, fast - slow

    def signals(self) -> tuple[BarSignal, ...]:
        return self._signals.signals()


def _warmup(wt_channel_length: int, wt_average_length: int, **_signals: object) -> int:
    return max(wave_warmup(wt_channel_length, wt_average_length), 2 * LENGTH + SMOOTH - 1)


INDICATOR = Indicator(
    name="cipher_b",
    title="Cipher B",
    description="WaveTrend with RSI and stochastic RSI: dots on crosses (strict: where RSI and stochastic agree; classic: "
    "on every cross), divergences of each, gold buy",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=_warmup,
    parameters=(
        Parameter("dot_mode", "strict", choices=("strict", "classic")),
        Parameter("wt_channel_length", 9, 2, 500),
        Parameter("wt_average_length", 12, 1, 500),
        Parameter("wt_oversold", -53.0, -300.0, 0.0),
        Parameter("wt_overbought", 53.0, 0.0, 300.0),
        Parameter("show_divergences", True),
    ),
    aliases=("cipher", "cb"),
    inputs=("high", "low", "close"),
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
)
