"""Colour themes. To add one, add an entry to `THEMES`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
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


@lru_cache(maxsize=512)
def mixed(color: Color, ground: Color, share: float) -> Color:
    """Returns the opaque colour that `color` with opacity `share` has on `ground`. Opaque colours are faster to draw."""
    red, green, blue = (
        round(under + (over - under) * share) for over, under in zip(color[:3], ground[:3], strict=True)
    )
    return (red, green, blue, 255)


def ramp(color: Color, ground: Color, count: int) -> list[Color]:
    """Returns tones of one colour from the strongest contrast to the ground to the weakest, with `color` among them."""
    dark = sum(ground[:3]) < _LIGHT * 3
    strong = mixed(color, (255, 255, 255, 255) if dark else (0, 0, 0, 255), 0.45 if dark else 0.6)
    pale = mixed(color, ground, 0.5)
    shares = [at / (count - 1) if count > 1 else 0.5 for at in range(count)]
    return [mixed(color, strong, share * 2) if share <= 0.5 else mixed(pale, color, share * 2 - 1) for share in shares]


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
    hues: Mapping[str, Color]
    """The colours of indicators by name, in the order in which they are handed out. None looks like `up` or `down`."""


def _hues(**colors: str) -> Mapping[str, Color]:
    return {name: _rgb(text) for name, text in colors.items()}


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
        hues=_hues(
            blue="#2962ff",
            orange="#ff9800",
            purple="#ba68c8",
            cyan="#26c6da",
            pink="#f06292",
            lime="#aed581",
            brown="#a1887f",
            yellow="#fff176",
        ),
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
        hues=_hues(
            blue="#2962ff",
            orange="#f57c00",
            purple="#8e24aa",
            cyan="#0097a7",
            pink="#d81b60",
            lime="#689f38",
            brown="#795548",
            yellow="#bfa100",
        ),
    ),
}
