"""Indicators of the registry with the inputs that only studies have. They are no entries of the registry themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openbell.indicators.averages import sma, wilder
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.catalogue.dpo import lag
from openbell.indicators.channels import ZERO, Channels, Fill, Line
from openbell.indicators.registry import get
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def simple_keltner() -> Indicator:
    """Returns Keltner channels around the simple average."""
    return replace(get("keltner"), compute=_simple_keltner)


def _simple_keltner(bars: Bars, length: int, multiplier: float, atr_length: int) -> Channels:
    middle, width = sma(bars.close, length), multiplier * atr(bars, atr_length)
    upper, lower = middle + width, middle - width
    lines = (Line("upper", upper), Line("middle", middle), Line("lower", lower))
    return Channels(lines=lines, fills=(Fill(upper, lower),))


def centered_dpo() -> Indicator:
    """Returns the detrended price oscillator with each close compared with the average around it, not before it."""
    return replace(get("dpo"), compute=_centered_dpo, displaced=("DPO",))


def _centered_dpo(bars: Bars, length: int) -> Channels:
    back = lag(length)
    values = np.full(len(bars), np.nan)
    values[:-back] = bars.close[:-back] - sma(bars.close, length)[back:]
    return Channels(lines=(Line("DPO", values),), hlines=(ZERO,))


def smoothed_adx() -> Indicator:
    """Returns the directional movement whose ADX is smoothed over another length than +DI and −DI."""
    plain = get("adx")
    return replace(
        plain,
        compute=_smoothed_adx,
        warmup=lambda length, smoothing: length + smoothing,
        parameters=(*plain.parameters, Parameter("smoothing", 14, 1, 500)),
    )


def _smoothed_adx(bars: Bars, length: int, smoothing: int) -> Channels:
    plain = get("adx").run(bars, length=length)
    _, plus, minus = (line.values for line in plain.lines)
    both = plus + minus
    apart = 100.0 * np.divide(np.abs(plus - minus), both, out=np.where(np.isnan(both), np.nan, 0.0), where=both > 0.0)
    return replace(plain, lines=(Line("ADX", wilder(apart, smoothing)), *plain.lines[1:]))
