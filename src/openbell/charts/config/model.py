"""A chart config that was read: all fields valid, names and forms unified; and the kinds of annotations that it can have.

`reading.read_config` makes it of a client's JSON, in the form of the contract or in that of the vendor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from openbell.charts.config.choices import DEFAULT_INTERVAL, HEIGHT, WIDTH
from openbell.charts.studies.study import Study
from openbell.indicators.spec import Setting

SYMBOL = re.compile(r"[A-Z0-9_]{1,20}:[A-Z0-9._!&/-]{1,30}")
"""EXCHANGE:SYMBOL, in upper case."""
_CORNERS = ("startDatetime", "startPrice", "endDatetime", "endPrice")
_POSITION = ("entryPrice", "targetPrice", "stopPrice")
_POINT = ("datetime", "price")
_TEXT = ("text",)


@dataclass(frozen=True, slots=True)
class ConfigStudy:
    """One study of a config."""

    study: Study
    inputs: Mapping[str, Setting]
    """The inputs that the config has; others have their defaults."""
    override: Mapping[str, Any] = field(default_factory=dict)
    force_overlay: bool = False

    def value(self, name: str) -> Setting:
        """Returns the value of an input."""
        if name in self.inputs:
            return self.inputs[name]
        return next(each.default for each in self.study.inputs if each.name == name)


@dataclass(frozen=True, slots=True)
class ConfigAnnotation:
    """One annotation of a config."""

    kind: AnnotationKind
    prices: Mapping[str, float]
    times: Mapping[str, datetime]
    text: str = ""
    override: Mapping[str, Any] = field(default_factory=dict)
    on_top: bool = True


@dataclass(frozen=True, slots=True)
class Watermark:
    """A text across the chart."""

    text: str
    size: float = 64.0
    opacity: float = 0.3


@dataclass(frozen=True, slots=True)
class ChartConfig:
    """A chart config."""

    symbol: str
    """EXCHANGE:SYMBOL."""
    interval: str = DEFAULT_INTERVAL
    range: str | None = None
    """In its written form, see `ranges`."""
    theme: str = "light"
    style: str = "candle"
    width: int = WIDTH
    height: int = HEIGHT
    scale: str = "regular"
    session: str = "regular"
    timezone: str = "Etc/UTC"
    format: str = "png"
    shift_left: int = 0
    """Bars by which the shown range is moved to the past."""
    shift_right: int = 0
    """Empty bars at the right."""
    watermark: Watermark | None = None
    override: Mapping[str, Any] = field(default_factory=dict)
    studies: tuple[ConfigStudy, ...] = ()
    drawings: tuple[ConfigAnnotation, ...] = ()

    @property
    def resolution(self) -> str:
        """The size, such as `1200x675`."""
        return f"{self.width}x{self.height}"

    @property
    def parameters(self) -> int:
        """Studies and annotations, which plans limit together."""
        return len(self.studies) + len(self.drawings)


class Coordinate(Enum):
    """The type of a coordinate."""

    PRICE = "price"
    TIME = "time"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class AnnotationKind:
    """One kind of annotation."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def coordinates(self) -> tuple[str, ...]:
        """All coordinates."""
        return self.required + self.optional


TYPES = {
    **dict.fromkeys(
        ("price", "startPrice", "endPrice", "entryPrice", "targetPrice", "stopPrice"),
        Coordinate.PRICE,
    ),
    **dict.fromkeys(("datetime", "startDatetime", "endDatetime"), Coordinate.TIME),
    "text": Coordinate.TEXT,
}
"""The type of each coordinate."""

KINDS = {
    kind.name: kind
    for kind in (
        AnnotationKind("Horizontal Line", ("price",), _TEXT),
        AnnotationKind("Vertical Line", ("datetime",), _TEXT),
        AnnotationKind("Trend Line", _CORNERS, _TEXT),
        AnnotationKind("Rectangle", _CORNERS, _TEXT),
        AnnotationKind("Fib Retracement", _CORNERS, _TEXT, ("Fibonacci Retracement",)),
        # Without a start, a position begins at three quarters of the chart.
        AnnotationKind("Long Position", _POSITION, ("startDatetime", "endDatetime")),
        AnnotationKind("Short Position", _POSITION, ("startDatetime", "endDatetime")),
        AnnotationKind("Date Range", ("startDatetime", "endDatetime"), ("startPrice", "endPrice", "text")),
        AnnotationKind("Date Price Range", _CORNERS, _TEXT, ("Date and Price Range",)),
        AnnotationKind("Arrow Marker", _CORNERS, _TEXT, ("Arrow",)),
        AnnotationKind("Arrow Mark Up", _POINT, _TEXT, ("Arrow Up",)),
        AnnotationKind("Arrow Mark Down", _POINT, _TEXT, ("Arrow Down",)),
        AnnotationKind("Text", (*_POINT, "text"), (), ("Text Note", "Note")),
        AnnotationKind("Callout", (*_POINT, "text"), ("endDatetime", "endPrice")),
        AnnotationKind("Order Line", ("price",), _TEXT),
    )
}
_BY_NAME = {name.lower(): kind for kind in KINDS.values() for name in (kind.name, *kind.aliases)}


def kind_of(name: str) -> AnnotationKind | None:
    """Returns the kind with a name or alias, in any case; None if there is none."""
    return _BY_NAME.get(name.strip().lower())
