"""Writes a scene as SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape

import numpy as np

from openbell.charts.fonts import CAP_HEIGHT
from openbell.charts.scene import Band, Boxes, Color, Dot, Item, Label, Layer, Scene, Stroke
from openbell.market.bars import Values
from openbell.market.foreign_text import without_invisible

_ANCHORS = {"left": "start", "center": "middle", "right": "end"}


def svg(scene: Scene, scale: float = 1.0, prefix: str = "c") -> str:
    """Returns a self-contained document that is displayed at `scale` times the size of the scene.

    Ids begin with `prefix`: pictures in one HTML page need different ones.
    """
    shown = f'width="{_n(scene.width * scale)}" height="{_n(scene.height * scale)}"'
    size = f'{shown} viewBox="0 0 {scene.width} {scene.height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Inter, Helvetica, Arial, sans-serif">',
        f'<rect width="100%" height="100%" {_fill(scene.background)}/>',
    ]
    for number, layer in enumerate(scene.layers):
        parts += _layer(f"{prefix}{number}", layer)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _layer(name: str, layer: Layer) -> list[str]:
    clip = layer.clip
    area = f'x="{_n(clip.left)}" y="{_n(clip.top)}" width="{_n(clip.width)}" height="{_n(clip.height)}"'
    lines = [f'<clipPath id="{name}"><rect {area}/></clipPath>', f'<g clip-path="url(#{name})">']
    for item in layer.items:
        lines += _item(item)
    return [*lines, "</g>"]


def _item(item: Item) -> list[str]:
    match item:
        case Boxes():
            return _boxes(item)
        case Stroke():
            dash = f' stroke-dasharray="{_n(item.dash[0])} {_n(item.dash[1])}"' if item.dash else ""
            paint = f'fill="none" {_ink("stroke", item.color)} stroke-width="{_n(item.width)}"{dash} stroke-linejoin="round"'
            return [f'<polyline points="{points}" {paint}/>' for points in _pieces(item.x, item.y)]
        case Band():
            return _band(item)
        case Dot():
            return [f'<circle cx="{_n(item.x)}" cy="{_n(item.y)}" r="{_n(item.radius)}" {_fill(item.color)}/>']
        case Label():
            y = item.y + item.size * CAP_HEIGHT / 2
            look = f'font-size="{_n(item.size)}" font-weight="{600 if item.bold else 400}" xml:space="preserve"'
            place = f'x="{_n(item.x)}" y="{_n(y)}" text-anchor="{_ANCHORS[item.anchor]}"'
            return [f"<text {place} {look} {_fill(item.color)}>{escape(without_invisible(item.text))}</text>"]


def _boxes(item: Boxes) -> list[str]:
    """Returns all rectangles as one path, snapped to whole pixels as in the raster."""
    edges = [np.rint(edge) for edge in (item.left, item.top, item.right, item.bottom)]
    path = "".join(
        f"M{_n(left)} {_n(top)}H{_n(right)}V{_n(bottom)}H{_n(left)}Z"
        for left, top, right, bottom in zip(*(edge.tolist() for edge in edges), strict=True)
        if right > left and bottom > top
    )
    return [f'<path d="{path}" {_fill(item.color)}/>'] if path else []


def _band(item: Band) -> list[str]:
    good = ~(np.isnan(item.upper) | np.isnan(item.lower))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False]))))
    found = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        x = np.concatenate((item.x[first:last], item.x[first:last][::-1]))
        y = np.concatenate((item.upper[first:last], item.lower[first:last][::-1]))
        found.append(f'<polygon points="{_points(x, y)}" {_fill(item.color)}/>')
    return found


def _pieces(x: Values, y: Values) -> list[str]:
    good = ~np.isnan(y)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False]))))
    return [_points(x[a:b], y[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 1]


def _points(x: Values, y: Values) -> str:
    return " ".join(f"{_n(a)},{_n(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _fill(color: Color) -> str:
    return _ink("fill", color)


def _ink(what: str, color: Color) -> str:
    solid = f'{what}="#{color[0]:02x}{color[1]:02x}{color[2]:02x}"'
    return solid if color[3] == 255 else f'{solid} {what}-opacity="{color[3] / 255:.3f}"'


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
