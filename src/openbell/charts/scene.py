"""The display list: the items to draw, in order, as plain values. PNG, JPEG and SVG are all rendered from it.

Coordinates are CSS pixels from the top left; a renderer multiplies them by the device scale. Colours are RGBA, 0 to 255.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from openbell.market.bars import Values

Color = tuple[int, int, int, int]
Anchor = Literal["left", "center", "right"]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle's edges."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Filled rectangles of one colour, such as candle bodies; snapped to whole pixels."""

    left: Values
    top: Values
    right: Values
    bottom: Values
    color: Color


@dataclass(frozen=True, slots=True, eq=False)
class Stroke:
    """A line with one y for each x; NaN leaves a gap."""

    x: Values
    y: Values
    color: Color
    width: float = 1.5
    dash: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The area between two lines; NaN leaves a gap."""

    x: Values
    upper: Values
    lower: Values
    color: Color


@dataclass(frozen=True, slots=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float
    color: Color


@dataclass(frozen=True, slots=True)
class Label:
    """A text, vertically centred at `y`."""

    x: float
    y: float
    text: str
    size: float
    color: Color
    anchor: Anchor = "left"
    bold: bool = False


Item = Boxes | Stroke | Band | Dot | Label


@dataclass(slots=True)
class Layer:
    """Items that are drawn only inside a box."""

    clip: Box
    items: list[Item] = field(default_factory=list)


@dataclass(slots=True)
class Scene:
    """A whole picture."""

    width: int
    height: int
    background: Color
    layers: list[Layer] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)
    """The positions of the annotations of a config of which nothing is seen, because their times or prices are not shown."""

    def layer(self, clip: Box | None = None) -> Layer:
        """Adds a layer on top of the others and returns it."""
        made = Layer(clip or Box(0, 0, self.width, self.height))
        self.layers.append(made)
        return made

    def text(self) -> str:
        """Returns the display list as text, for comparisons in tests."""
        lines = [f"scene {self.width}x{self.height} {_hex(self.background)}"]
        for layer in self.layers:
            clip = layer.clip
            lines.append(f"layer {_n(clip.left)} {_n(clip.top)} {_n(clip.right)} {_n(clip.bottom)}")
            lines += [f"  {_line(item)}" for item in layer.items]
        return "\n".join(lines) + "\n"


def box(left: float, top: float, right: float, bottom: float, color: Color) -> Boxes:
    """Returns `Boxes` with one rectangle."""
    edges = [np.array([edge], dtype=np.float64) for edge in (left, top, right, bottom)]
    return Boxes(edges[0], edges[1], edges[2], edges[3], color)


def _n(value: float) -> str:
    return "-" if value != value else f"{value:.2f}".rstrip("0").rstrip(".")  # noqa: PLR0124 - NaN


def _hex(color: Color) -> str:
    return "#" + "".join(f"{part:02x}" for part in color)


def _many(values: Values) -> str:
    return ",".join(_n(float(value)) for value in values)


def _line(item: Item) -> str:
    match item:
        case Boxes():
            edges = " ".join(f"{name}={_many(getattr(item, name))}" for name in ("left", "top", "right", "bottom"))
            return f"boxes {_hex(item.color)} {edges}"
        case Stroke():
            return f"stroke {_hex(item.color)} {_n(item.width)} {item.dash or ''} x={_many(item.x)} y={_many(item.y)}"
        case Band():
            return f"band {_hex(item.color)} x={_many(item.x)} upper={_many(item.upper)} lower={_many(item.lower)}"
        case Dot():
            return f"dot {_hex(item.color)} {_n(item.x)} {_n(item.y)} r={_n(item.radius)}"
        case Label():
            weight = "bold" if item.bold else "plain"
            where = f"{_n(item.x)} {_n(item.y)} {item.anchor}"
            return f"label {_hex(item.color)} {where} {_n(item.size)} {weight} {item.text!r}"
