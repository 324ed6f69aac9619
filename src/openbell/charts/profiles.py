"""Draws profiles: rows at prices, strong inside the value area and pale outside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.charts.panels import ChartPicture
from openbell.charts.scales import Scale
from openbell.charts.scene import Boxes, Color, Layer
from openbell.charts.styles import style_for
from openbell.charts.themes import faded
from openbell.indicators.evaluation import Computed
from openbell.indicators.profiles import VALUE_AREA, control_row, value_area
from openbell.market.bars import Values

_OPACITY = 0.4
_OUTER = 0.45
"""The opacity of a profile's rows outside the value area, as a share of that of the rows inside."""
EDGE = 0.6
"""Rows at the edge are drawn this share of their width long, because a chart leaves room for them beside the newest bar."""
_LEAST_ROWS = 3
"""Fewer rows at one place are single levels, which have no value area."""


def profile(layer: Layer, picture: ChartPicture, scale: Scale, computed: Computed) -> None:
    """Draws the rows of a profile. A split profile has pairs of rows: first rising volume, then falling volume."""
    settings, theme = computed.request.settings, picture.theme
    if not computed.channels.hbars or not len(picture.bars):
        return
    rows = np.array(computed.channels.hbars, dtype=np.float64)
    alpha = round(255 * float(settings.get("opacity", _OPACITY)))
    split = bool(settings.get("split_up_down"))
    colors = (theme.up, theme.down) if split else (picture.inks[computed.request.key].main,)
    plot = picture.plots.get(computed.request.key)
    share = plot.value_area if plot and plot.value_area is not None else _share(computed)
    inside = _inside(rows, len(colors), share)
    edge = style_for(computed).profile == "edge"
    for number, color in enumerate(colors):
        part, strong = rows[number :: len(colors)], inside[number :: len(colors)]
        for chosen, tone in ((strong, faded(color, alpha)), (~strong, faded(color, round(alpha * _OUTER)))):
            if chosen.any():
                layer.items.append(_boxes(picture, scale, part[chosen], tone, edge=edge))


def _share(computed: Computed) -> float:
    return float(computed.request.settings.get("value_area", 100.0 * VALUE_AREA)) / 100.0


def _inside(rows: npt.NDArray[np.float64], sides: int, share: float) -> npt.NDArray[np.bool_]:
    """Returns True for each row in the value area of its profile. Rows with the same offset are one profile."""
    first = rows[::sides]
    begins = np.flatnonzero(np.diff(first[:, 3], prepend=np.nan))
    widths = rows[:, 2].reshape(-1, sides).sum(axis=1)
    inside = np.ones(len(first), dtype=bool)
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(first)], strict=True):
        volumes = widths[begin:end]
        if end - begin < _LEAST_ROWS or not volumes.any():
            continue
        below = np.concatenate(([0.0], np.cumsum(volumes)))
        low, high = value_area(below.tolist(), int(control_row(volumes, float(below[-1]))), share)
        inside[begin : begin + low] = inside[begin + high + 1 : end] = False
    return np.repeat(inside, sides)


def _boxes(picture: ChartPicture, scale: Scale, rows: npt.NDArray[np.float64], color: Color, *, edge: bool) -> Boxes:
    y, height, wide, offset, left = rows.T
    top, bottom = scale.y(y + height / 2), scale.y(y - height / 2)
    first, last = float(picture.x[0]) - picture.slot / 2, float(picture.x[-1]) + picture.slot / 2
    # A profile at the edge has the chart's width as its unit, one among the bars the width of all bars.
    reach, right = (picture.plot.width * EDGE, picture.plot.right) if edge else (last - first, last)
    start: Values = np.where(left > 0.0, first + offset * reach, right - (offset + wide) * reach)
    return Boxes(start, top, start + wide * reach, np.maximum(top + 1, bottom - 1), color)
