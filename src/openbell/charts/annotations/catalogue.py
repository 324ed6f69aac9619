"""All kinds of drawings by name, and how the drawings of a config are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from openbell.charts.annotations import areas, lines
from openbell.charts.annotations.areas import position_span
from openbell.charts.annotations.lines import trend_ends
from openbell.charts.annotations.overrides import Overrides
from openbell.charts.annotations.place import AnnotationPlace, crosses, x_of
from openbell.charts.config.model import ConfigAnnotation
from openbell.charts.panels import ChartPicture, Mark, Panel, TimeMark
from openbell.charts.scene import Layer
from openbell.charts.themes import Theme
from openbell.charts.time_axis import zone_of

ANNOTATIONS = {each.name: each for each in (*lines.ANNOTATIONS, *areas.ANNOTATIONS)}

_VERTICAL = "Vertical Line"


def draw_all(layer: Layer, drawings: Iterable[ConfigAnnotation], picture: ChartPicture, panel: Panel) -> None:
    """Draws over a panel. Panels below the price get only the drawings that cross all panels."""
    if not len(picture.bars):
        return
    place = AnnotationPlace(picture, panel)
    for drawing in drawings:
        annotation = ANNOTATIONS[drawing.kind.name]
        if panel.indicator is None or annotation.every_panel:
            layer.items += annotation.paint(drawing, Overrides(drawing.override), place)


def marks_of(drawings: Iterable[ConfigAnnotation], theme: Theme) -> tuple[Mark, ...]:
    """Returns the prices that are written at the value axis."""
    found = []
    for drawing in drawings:
        overrides = Overrides(drawing.override)
        if ANNOTATIONS[drawing.kind.name].at_axis and overrides.shows("showPrice"):
            found.append(Mark(drawing.prices["price"], overrides.color("lineColor", theme.accent)))
    return tuple(found)


def time_marks_of(drawings: Iterable[ConfigAnnotation], picture: ChartPicture) -> list[TimeMark]:
    """Returns the times that are written at the time axis."""
    if not len(picture.bars):
        return []
    zone = zone_of(picture.bars, picture.options.zone)
    form = "{0.day} {0:%b %H:%M}" if picture.bars.timeframe.intraday else "{0.day} {0:%b %Y}"
    found = []
    for drawing in drawings:
        if drawing.kind.name == _VERTICAL:
            moment, overrides = drawing.times["datetime"], Overrides(drawing.override)
            x = x_of(picture, moment.timestamp())
            if picture.plot.left <= x <= picture.plot.right:
                color = overrides.color("lineColor", picture.theme.accent)
                found.append(TimeMark(x, form.format(moment.astimezone(zone)), color))
    return found


def outside(drawings: Sequence[ConfigAnnotation], picture: ChartPicture, panel: Panel) -> list[int]:
    """Returns the positions of the drawings of which nothing is seen, because their times or prices are not shown."""
    if not len(picture.bars):
        return list(range(len(drawings)))
    place = AnnotationPlace(picture, panel)
    return [at for at, each in enumerate(drawings) if not _seen(each, place)]


def _seen(drawing: ConfigAnnotation, place: AnnotationPlace) -> bool:
    overrides, area = Overrides(drawing.override), place.box
    if drawing.kind.name in {"Trend Line", "Arrow Marker"}:
        return crosses(area, *trend_ends(drawing, overrides, place))
    y = [place.y(price) for price in drawing.prices.values()]
    x = [place.x(time) for time in drawing.times.values()]
    if drawing.kind.name == "Callout":
        x, y = [place.x(drawing.times["datetime"])], [place.y(drawing.prices["price"])]
    if len(y) < 2 and drawing.kind.name == "Date Range":
        y = []
    if "Position" in drawing.kind.name:
        x = list(position_span(drawing, place))
    if x and overrides.shows("extendRight", False):
        x.append(area.right)
    return _overlap(x, area.left, area.right) and _overlap(y, area.top, area.bottom)


def _overlap(places: Sequence[float], low: float, high: float) -> bool:
    return not places or (min(places) <= high and max(places) >= low)
