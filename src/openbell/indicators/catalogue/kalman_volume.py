"""Kalman volume filter: a volume zone oscillator, smoothed by a Kalman filter, with a signal line."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import BarSignal, Channels, Direction, Line
from openbell.indicators.exact_averages import ema as running_ema
from openbell.indicators.rules import Rule, RunningRules, Value, array_signals, crosses_above
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars, Values

OVERBOUGHT, OVERSOLD = 40.0, -40.0


def volume_zone(bars: Bars, length: int) -> Values:
    """−100 to 100: average volume signed by the change of the close, in per cent of average volume; 0 without volume."""
    out = np.full(len(bars), np.nan)
    traded = ema(bars.volume[1:], length)
    signed = ema(np.sign(np.diff(bars.close)) * bars.volume[1:], length)
    out[1:] = 100.0 * np.divide(signed, traded, out=np.zeros(len(traded)), where=traded != 0.0)
    return out


def kalman(values: Values, gain: float) -> Values:
    """A scalar Kalman filter in its steady state: the estimate moves towards each value by the gain."""
    lead = int(np.isnan(values).sum())
    known = values[lead:].tolist()
    level = known[0] if known else nan
    for at, seen in enumerate(known):
        known[at] = level = level + gain * (seen - level)
    return np.concatenate((values[:lead], known))


def _compute(bars: Bars, vzo_length: int, k: float, sig_length: int) -> Channels:
    line = kalman(volume_zone(bars, vzo_length), k)
    trigger = ema(line, sig_length)
    return Channels(
        lines=(Line("KVF", line), Line("Signal", trigger)),
        signals=array_signals(_rules, (line, trigger)),
        hlines=(OVERSOLD, 0.0, OVERBOUGHT),
        y_range=(-100.0, 100.0),
    )


def _rules(before: Sequence[Value], now: Sequence[Value]) -> Sequence[Rule]:
    """Each cross is one signal, with its own label in the oversold and overbought zones."""
    (line_before, trigger_before), (line, trigger) = before, now
    up = crosses_above(line_before, trigger_before, line, trigger)
    down = crosses_above(trigger_before, line_before, trigger, line)
    return (
        ("buy", up & (line > OVERSOLD), line),
        ("sell", down & (line < OVERBOUGHT), line),
        ("buy_oversold", up & (line <= OVERSOLD), line),
        ("sell_overbought", down & (line >= OVERBOUGHT), line),
    )


class _Stream:
    def __init__(self, vzo_length: int, k: float, sig_length: int) -> None:
        self._signed = running_ema(vzo_length)
        self._traded = running_ema(vzo_length)
        self._trigger = running_ema(sig_length)
        self._gain = k
        self._close = self._level = nan
        self._rules = RunningRules(_rules, 2)

    def update(self, bar: Bar) -> tuple[float, ...]:
        before, self._close = self._close, bar.close
        if isnan(before):
            return nan, nan
        way = (bar.close > before) - (bar.close < before)
        signed, traded = self._signed.update(way * bar.volume), self._traded.update(bar.volume)
        if isnan(traded):
            return nan, nan
        seen = 100.0 * (signed / traded) if traded else 0.0
        level = self._level
        self._level = seen if isnan(level) else level + self._gain * (seen - level)
        return self._rules.update(self._level, self._trigger.update(self._level))

    def signals(self) -> tuple[BarSignal, ...]:
        return self._rules.signals()


INDICATOR = Indicator(
    name="kalman_volume",
    title="KVF",
    description="Volume zone oscillator smoothed by a scalar Kalman filter of gain k, and its EMA as signal",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda vzo_length, k, sig_length: vzo_length + sig_length,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("vzo_length", 70, 1, 500),
        Parameter("k", 0.06, 0.001, 1.0),
        Parameter("sig_length", 10, 1, 500),
    ),
    aliases=("kalman", "kvf"),
    inputs=("close", "volume"),
    signals={
        "buy": Direction.UP,
        "sell": Direction.DOWN,
        "buy_oversold": Direction.UP,
        "sell_overbought": Direction.DOWN,
    },
)
