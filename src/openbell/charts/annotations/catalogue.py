"""All kinds of annotations by name, and how the annotations of a config are drawn."""

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
    """Draws over a panel. Panels below the price get only the annotations that cross all panels."""
    if not len(picture.bars):
        return
    place = AnnotationPlace(picture, panel)
    for annotation in drawings:
        kind = ANNOTATIONS[annotation.kind.name]
        if panel.indicator is None or kind.every_panel:
            layer.items += kind.paint(annotation, Overrides(annotation.override), place)


def marks_of(drawings: Iterable[ConfigAnnotation], theme: Theme) -> tuple[Mark, ...]:
    """Returns the prices that are written at the value axis."""
    found = []
    for annotation in drawings:
        overrides = Overrides(annotation.override)
        if ANNOTATIONS[annotation.kind.name].at_axis and overrides.shows("showPrice"):
            found.append(Mark(annotation.prices["price"], overrides.color("lineColor", theme.accent)))
    return tuple(found)


def time_marks_of(drawings: Iterable[ConfigAnnotation], picture: ChartPicture) -> list[TimeMark]:
    """Returns the times that are written at the time axis."""
    if not len(picture.bars):
        return []
    zone = zone_of(picture.bars, picture.options.zone)
    form = "{0.day} {0:%b %H:%M}" if picture.bars.timeframe.intraday else "{0.day} {0:%b %Y}"
    found = []
    for annotation in drawings:
        if annotation.kind.name == _VERTICAL:
            moment, overrides = annotation.times["datetime"], Overrides(annotation.override)
            x = x_of(picture, moment.timestamp())
            if picture.plot.left <= x <= picture.plot.right:
                color = overrides.color("lineColor", picture.theme.accent)
                found.append(TimeMark(x, form.format(moment.astimezone(zone)), color))
    return found


def outside(drawings: Sequence[ConfigAnnotation], picture: ChartPicture, panel: Panel) -> list[int]:
    """Returns the positions of the annotations of which nothing is seen, because their times or prices are not shown."""
    if not len(picture.bars):
        return list(range(len(drawings)))
    place = AnnotationPlace(picture, panel)
    return [at for at, each in enumerate(drawings) if not _seen(each, place)]


def _seen(annotation: ConfigAnnotation, place: AnnotationPlace) -> bool:
    overrides, area = Overrides(annotation.override), place.box
    if annotation.kind.name in {"Trend Line", "Arrow Marker"}:
        return crosses(area, *trend_ends(annotation, overrides, place))
    y = [place.y(price) for price in annotation.prices.values()]
    x = [place.x(time) for time in annotation.times.values()]
    if annotation.kind.name == "Callout":
        x, y = [place.x(annotation.times["datetime"])], [place.y(annotation.prices["price"])]
    if len(y) < 2 and annotation.kind.name == "Date Range":
        y = []
    if "Position" in annotation.kind.name:
        x = list(position_span(annotation, place))
    if x and overrides.shows("extendRight", False):
        x.append(area.right)
    return _overlap(x, area.left, area.right) and _overlap(y, area.top, area.bottom)


def _overlap(places: Sequence[float], low: float, high: float) -> bool:
    return not places or (min(places) <= high and max(places) >= low)
