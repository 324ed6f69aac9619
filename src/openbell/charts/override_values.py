"""Values of overrides in chart configs: numbers, and colours (`#rrggbb`, `rgb(8, 153, 129)`, `rgba(8, 153, 129, 0.5)`)."""

from __future__ import annotations

import re

from openbell.charts.scene import Color

_HEX = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})")
_PART = r"\s*(\d{1,3})\s*"
_RGB = re.compile(rf"rgba?\({_PART},{_PART},{_PART}(?:,\s*(\d{{0,3}}\.?\d{{0,10}})\s*)?\)")


def color_of(value: object) -> Color | None:
    """Returns the colour that a text names; None if it names none."""
    if not isinstance(value, str) or len(value) > 60:
        return None
    text = value.strip().lower()
    if found := _HEX.fullmatch(text):
        digits = found[1] if len(found[1]) > 3 else "".join(digit * 2 for digit in found[1])
        parts = [int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)]
        return (parts[0], parts[1], parts[2], parts[3] if len(parts) == 4 else 255)
    if not (found := _RGB.fullmatch(text)):
        return None
    try:
        opacity = 1.0 if found[4] is None else float(found[4])
    except ValueError:  # a dot alone, or nothing
        return None
    red, green, blue = (int(part) for part in found.groups()[:3])
    if max(red, green, blue) > 255 or opacity > 1.0:
        return None
    return (red, green, blue, round(opacity * 255))


def number_of(value: object, low: float, high: float) -> float | None:
    """Returns a number between two bounds; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        return None
    return float(value)
