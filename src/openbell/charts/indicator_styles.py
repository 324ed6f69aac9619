"""The colour and line width that a caller of a chart asks for beside the settings of an indicator."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.charts.annotations.overrides import color_of, number_of
from openbell.charts.config.plots import THINNEST_LINE, WIDEST_LINE, StudyPlot
from openbell.charts.scene import Color
from openbell.indicators.evaluation import IndicatorRequest, parse_requests
from openbell.market.errors import InvalidParameter


def parse_styled(entries: Sequence[str | dict[str, object]]) -> tuple[list[IndicatorRequest], list[StudyPlot]]:
    """Returns the requests of `parse_requests`, and how those with `color` or `width` are drawn.

    Raises `InvalidParameter` as `parse_requests` does, and for a bad colour or width.
    """
    plain: list[str | dict[str, object]] = []
    styles = []
    for entry in entries:
        settings: dict[str, object] = dict(entry) if isinstance(entry, dict) else {"name": entry}
        styles.append((_color(settings.pop("color", None)), _width(settings.pop("width", None))))
        plain.append(settings)
    requests = parse_requests(plain)
    plots = [
        StudyPlot(request, at, color=color, width=width)
        for at, (request, (color, width)) in enumerate(zip(requests, styles, strict=True))
        if color or width
    ]
    return requests, plots


def _color(value: object) -> Color | None:
    color = color_of(value)
    if value is not None and color is None:
        raise InvalidParameter(f"color must be like #ff9800, not {str(value)[:80]!r}")
    return color


def _width(value: object) -> float | None:
    width = number_of(value, THINNEST_LINE, WIDEST_LINE)
    if value is not None and width is None:
        raise InvalidParameter(f"width must be {THINNEST_LINE:g} to {WIDEST_LINE:g} pixels, not {str(value)[:80]!r}")
    return width
