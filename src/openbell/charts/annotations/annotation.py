"""The type `Annotation`: how one kind of drawing is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from openbell.charts.annotations.overrides import Overrides
from openbell.charts.annotations.place import Place
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.scene import Item

Paint = Callable[[ConfigAnnotation, Overrides, Place], list[Item]]


@dataclass(frozen=True, slots=True)
class Annotation:
    """One kind of drawing."""

    name: str
    """That of its `AnnotationKind`."""
    paint: Paint
    honours: frozenset[str]
    """The overrides that have an effect."""
    every_panel: bool = False
    """True if it is drawn over the panels below the price too."""
    at_axis: bool = False
    """True if its price is written at the value axis."""
