"""What a chart may be asked for, in plain values: servers and commands declare themselves from it without drawing."""

from __future__ import annotations

from openbell.charts.themes import THEMES

STYLES = ("candles", "hollow", "bars", "line", "area", "heikin_ashi", "baseline")
SCALES = ("linear", "log", "percent")
THEME_NAMES = tuple(THEMES)
SMALLEST, LARGEST = 200, 4096
"""Pixels a side, before and after the device scale."""
LEAST_SCALE, MOST_SCALE = 0.5, 4.0
