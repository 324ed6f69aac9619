"""The overrides of an annotation: colours, widths, fonts and switches. `OVERRIDES` reads each of them.

Colours are written as `#rrggbb`, `rgb(8, 153, 129)` or `rgba(8, 153, 129, 0.5)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from openbell.charts.scene import Color
from openbell.charts.themes import faded

Dash = tuple[float, float]
_DASHES: dict[object, Dash | None] = {"solid": None, "dotted": (2.0, 3.0), "dashed": (6.0, 4.0)}
_NUMBERS = ("solid", "dotted", "dashed")
"""The vendor's numbers for the styles of lines."""
LINE = frozenset({"lineColor", "lineWidth", "lineStyle"})
TEXT = frozenset({"textColor", "fontSize", "fontBold", "showLabel"})
FILL = frozenset({"backgroundColor", "fillBackground", "transparency"})
_HEX = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})")
_PART = r"\s*(\d{1,3})\s*"
_RGB = re.compile(rf"rgba?\({_PART},{_PART},{_PART}(?:,\s*(\d{{0,3}}\.?\d{{0,10}})\s*)?\)")


def _number(low: float, high: float) -> Callable[[object], float | None]:
    return lambda value: number_of(value, low, high)


def _switch(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _line_style(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return _NUMBERS[value] if 0 <= value < len(_NUMBERS) else None
    return value if isinstance(value, str) and value in _DASHES else None


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


OVERRIDES: dict[str, Callable[[object], object]] = {
    **dict.fromkeys(("lineColor", "textColor", "backgroundColor", "arrowColor"), color_of),
    **dict.fromkeys(
        ("fontBold", "showLabel", "extendRight", "fillBackground", "showPrice", "showStats"),
        _switch,
    ),
    "lineWidth": _number(0.5, 20.0),
    "lineStyle": _line_style,
    "fontSize": _number(6.0, 64.0),
    "transparency": _number(0.0, 100.0),
}
"""How each override is read; None if its value is not valid."""


class Overrides:
    """The overrides of one annotation, with defaults for those that are missing or not valid."""

    def __init__(self, override: Mapping[str, Any]) -> None:
        read = {key: OVERRIDES[key](value) for key, value in override.items() if key in OVERRIDES}
        self._given: dict[str, Any] = {key: value for key, value in read.items() if value is not None}

    def color(self, key: str, default: Color) -> Color:
        """Returns a colour."""
        found: Color = self._given.get(key, default)
        return found

    def number(self, key: str, default: float) -> float:
        """Returns a number."""
        return float(self._given.get(key, default))

    def shows(self, key: str, default: bool = True) -> bool:
        """Returns a switch."""
        return bool(self._given.get(key, default))

    def dash(self, default: str = "solid") -> Dash | None:
        """Returns the dashes of lines; None for solid lines."""
        return _DASHES[self._given.get("lineStyle", default)]

    def fill(self, default: Color, opacity: float = 0.18) -> Color:
        """Returns the colour of areas; fully transparent if they are not filled."""
        color = self.color("backgroundColor", faded(default, round(255 * opacity)))
        if "transparency" in self._given:
            color = faded(color, round(255 * (1 - self._given["transparency"] / 100)))
        return color if self.shows("fillBackground") else faded(color, 0)
