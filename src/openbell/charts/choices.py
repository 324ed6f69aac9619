"""The allowed values of a chart's look. Servers and commands build their schemas from them without loading the renderer."""

from __future__ import annotations

from openbell.charts.themes import THEMES

STYLES = ("candles", "hollow", "bars", "line", "area", "heikin_ashi", "baseline", "hilo", "columns")
STYLES_OF_CONFIGS = {
    "bar": "bars",
    "candle": "candles",
    "line": "line",
    "area": "area",
    "heikinAshi": "heikin_ashi",
    "hollowCandle": "hollow",
    "baseline": "baseline",
    "hiLo": "hilo",
    "column": "columns",
}
"""Each style by its name in the configs of chart images, in the order in which their schema lists them."""
CLOSE_STYLES = frozenset({"line", "area", "baseline", "columns"})
"""Styles that draw closes only: their scale need not hold highs and lows."""
LINE_STYLES = frozenset({"line", "area"})
"""Styles that draw one line in the theme's accent colour."""
SCALES = ("linear", "log", "percent", "indexed")
THEME_NAMES = tuple(THEMES)
SMALLEST, LARGEST = 200, 8192
"""The limits of width and height in pixels, both before and after multiplication by the device scale."""
MOST_PIXELS = 16_000_000
"""The largest number of pixels of a picture, in device pixels."""
LEAST_SCALE, MOST_SCALE = 0.5, 4.0
