"""What a chart may be asked for, in plain values: servers and commands declare themselves from it without drawing."""

from __future__ import annotations

from collections.abc import Collection

from openbell.charts.themes import THEMES
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import hint

STYLES = ("candles", "hollow", "bars", "line", "area", "heikin_ashi", "baseline")
SCALES = ("linear", "log", "percent")
THEME_NAMES = tuple(THEMES)
MOST_INDICATORS = 24
SMALLEST, LARGEST = 200, 4096
"""Pixels a side, before and after the device scale."""
LEAST_SCALE, MOST_SCALE = 0.5, 4.0


def one_of(name: str, value: object, allowed: Collection[str]) -> None:
    """Refuse what is not in a list, naming the nearest that is."""
    if value not in allowed:
        said = repr(value)
        shown = said if len(said) <= 80 else said[:77] + "..."
        raise InvalidParameter(f"{name} must be one of {', '.join(allowed)}, not {shown}{hint(value, allowed)}")
