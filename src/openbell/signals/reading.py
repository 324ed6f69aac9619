"""The newest signals in words, and when each crossing was last true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from openbell.indicators.ties import OSCILLATOR, TOLERANCE
from openbell.market.bars import Values
from openbell.signals.crossings import OVERBOUGHT, OVERSOLD, SQUEEZE, Snapshot

Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the numbers of one bar mean."""

    rsi: Literal["overbought", "oversold", "neutral"]
    macd: Literal["above signal", "below signal", "at signal"]
    bollinger: Literal["above upper", "inside", "below lower"]
    price_vs_ema9_pct: float
    bb_position_pct: float | None
    """Of the close between the lower band (0) and the upper one (100); None if the bands are equal."""


def read(last: Snapshot) -> Reading:
    """Returns what a snapshot means, by the limits of the crossings."""
    width = last.bb_upper - last.bb_lower
    return Reading(
        "overbought" if last.rsi >= OVERBOUGHT else "oversold" if last.rsi <= OVERSOLD else "neutral",
        "above signal" if last.macd > last.signal else "below signal" if last.macd < last.signal else "at signal",
        "above upper" if last.price > last.bb_upper else "below lower" if last.price < last.bb_lower else "inside",
        100 * (last.price / last.ema9 - 1),
        100 * (last.price - last.bb_lower) / width if width > 0 else None,
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """The numbers that crossings compare, at every bar; NaN before warm-up."""

    price: Values
    ema9: Values
    macd: Values
    signal: Values
    rsi: Values
    bb_upper: Values
    bb_middle: Values
    bb_lower: Values


def last_true(columns: Columns) -> dict[str, int | None]:
    """Returns for each crossing the newest bar at which it was true; None if there is none. Equals `find_crossings`."""
    price = columns.price
    ema9, upper, lower = (_at(level, price, price) for level in (columns.ema9, columns.bb_upper, columns.bb_lower))
    signal = _at(columns.signal, columns.macd, price)
    rsi = columns.rsi
    for level in (OVERSOLD, OVERBOUGHT):
        rsi = _at(rsi, np.full_like(rsi, level), OSCILLATOR)
    found: dict[str, Truths] = {
        "macd_cross_up": _crossed(signal, columns.macd),
        "macd_cross_dn": _crossed(columns.macd, signal),
        "ema_support_lost": _crossed(price, ema9),
        "ema_reclaim": _crossed(ema9, price),
        "rsi_overbought": rsi >= OVERBOUGHT,
        "rsi_oversold": rsi <= OVERSOLD,
        "bb_squeeze": (upper - lower) / columns.bb_middle < SQUEEZE,
        "bb_breakout_up": price > upper,
        "bb_breakout_dn": price < lower,
    }
    return {name: _newest(truths) for name, truths in found.items()}


def _at(values: Values, others: Values, scale: Values | float) -> Values:
    """The values, and the others where both are equal but for rounding."""
    return np.where(np.abs(values - others) <= TOLERANCE * scale, others, values)


def _crossed(above: Values, below: Values) -> Truths:
    """Where the first was not below the second at the bar before, and is below it."""
    out = np.zeros(len(above), dtype=bool)
    out[1:] = (above[:-1] >= below[:-1]) & (above[1:] < below[1:])
    return out


def _newest(truths: Truths) -> int | None:
    found = np.flatnonzero(truths)
    return int(found[-1]) if len(found) else None
