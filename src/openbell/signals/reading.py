"""The newest signals in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from openbell.signals.crossings import OVERBOUGHT, OVERSOLD, Snapshot


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
