"""Colour themes. To add one, add an entry to `THEMES`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openbell.charts.scene import Color


_LIGHT = 170.0
"""The brightness, 0 to 255, above which black text is easier to read than white text."""


def _rgb(text: str, alpha: int = 255) -> Color:
    return (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16), alpha)


def faded(color: Color, alpha: int) -> Color:
    """Returns the same colour with this opacity (0 to 255)."""
    return (*color[:3], alpha)


def mixed(color: Color, ground: Color, share: float) -> Color:
    """Returns the opaque colour that `color` with opacity `share` has on `ground`. Opaque colours are faster to draw."""
    red, green, blue = (
        round(under + (over - under) * share) for over, under in zip(color[:3], ground[:3], strict=True)
    )
    return (red, green, blue, 255)


def text_on(ground: Color) -> Color:
    """Returns white, or black if the ground is light."""
    red, green, blue, _ = ground
    return (0, 0, 0, 255) if 0.299 * red + 0.587 * green + 0.114 * blue > _LIGHT else (255, 255, 255, 255)


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a chart."""

    background: Color
    grid: Color
    border: Color
    text: Color
    faint: Color
    up: Color
    down: Color
    accent: Color
    highlight: Color
    """The badge of simulated data, divergence lines and strong signals."""
    lines: tuple[Color, ...]
    """The colours of indicator lines, used in turn."""


_LINES = ("#2962ff", "#ff6d00", "#ab47bc", "#00bcd4", "#f23645", "#4caf50", "#fbc02d", "#8d6e63")

THEMES = {
    "dark": Theme(
        background=_rgb("#131722"),
        grid=_rgb("#1f2430"),
        border=_rgb("#2a2e39"),
        text=_rgb("#d1d4dc"),
        faint=_rgb("#868b98"),
        up=_rgb("#089981"),
        down=_rgb("#f23645"),
        accent=_rgb("#2962ff"),
        highlight=_rgb("#fbc02d"),
        lines=tuple(_rgb(text) for text in _LINES),
    ),
    "light": Theme(
        background=_rgb("#ffffff"),
        grid=_rgb("#f0f2f5"),
        border=_rgb("#e0e3eb"),
        text=_rgb("#131722"),
        faint=_rgb("#787b86"),
        up=_rgb("#089981"),
        down=_rgb("#f23645"),
        accent=_rgb("#2962ff"),
        highlight=_rgb("#b26a00"),
        lines=tuple(_rgb(text) for text in _LINES),
    ),
}
