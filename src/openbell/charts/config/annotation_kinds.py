"""The kinds of annotations: one value each, with the vendor's name and coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
_CORNERS = ("startDatetime", "startPrice", "endDatetime", "endPrice")
_POSITION = ("entryPrice", "targetPrice", "stopPrice")
_POINT = ("datetime", "price")
_TEXT = ("text",)

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


def kind_of(name: str) -> AnnotationKind | None:
    """Returns the kind with a name or alias, in any case; None if there is none."""
    return _BY_NAME.get(name.strip().lower())


_BY_NAME = {name.lower(): kind for kind in KINDS.values() for name in (kind.name, *kind.aliases)}
