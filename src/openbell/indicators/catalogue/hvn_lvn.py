"""Nodes of the volume profile: prices with much more, or much less, volume than the prices around them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from openbell.indicators.channels import Channels, Level
from openbell.indicators.profiles import EQUAL, WIDEST, PriceRows, one_session
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def peaks(heights: Values, neighborhood: int, least: float, count: int) -> list[int]:
    """The indexes of the `count` most prominent peaks, in ascending order. `least` is the smallest prominence that counts.

    A peak is the highest row of its neighbourhood; of a plateau the lowest row counts. Beyond both ends the height is 0.
    """
    # In units in which different volumes are whole numbers: equal ones must not differ by rounding.
    unit = EQUAL * float(np.abs(heights).sum()) or 1.0
    row, least = np.rint(heights / unit).tolist(), least / unit - 1.0
    found = []
    for at, height in enumerate(row):
        below, above = row[max(0, at - neighborhood) : at], row[at + 1 : at + 1 + neighborhood]
        if all(other < height for other in below) and all(other <= height for other in above):
            prominence = height - max(_foot(height, [*row[:at][::-1], 0.0]), _foot(height, [*row[at + 1 :], 0.0]))
            if prominence > 0.0 and prominence >= least:
                found.append((-prominence, at))
    return sorted(at for _, at in sorted(found)[:count])


def _foot(height: float, heights: Iterable[float]) -> float:
    """The lowest of the heights up to the first one above `height`, or to the end."""
    lowest = height
    for other in heights:
        if other > height:
            break
        lowest = min(lowest, other)
    return lowest


def _compute(
    bars: Bars,
    bins: int,
    neighborhood: int,
    min_prominence: float,
    top_n: int,
    show_hvn: bool,
    show_lvn: bool,
) -> Channels:
    if not bars.volume.any():
        return Channels()
    rows = PriceRows(one_session(bars), bins)
    traded = rows.spread(bars.volume)[0]
    largest = traded.max()
    nodes: list[tuple[int, str]] = []
    for shown, heights, label in ((show_hvn, traded, "HVN"), (show_lvn, -traded, "LVN")):
        if shown:
            nodes += ((row, label) for row in peaks(heights, neighborhood, min_prominence * float(largest), top_n))
    widths = [float(WIDEST / largest * traded[row]) for row, _ in nodes]
    return Channels(
        hbars=tuple(rows.thin_bar(row, width, 0.0, False) for (row, _), width in zip(nodes, widths, strict=True)),
        hlines=tuple(Level(rows.price(row), label) for row, label in nodes),
    )


INDICATOR = Indicator(
    name="hvn_lvn",
    title="HVN/LVN",
    description="High and low volume nodes: the most prominent peaks and valleys of the volume profile as levels",
    brief="High and low volume nodes of the profile, as levels",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(
        Parameter("bins", 48, 3, 500),
        Parameter("neighborhood", 2, 1, 50),
        Parameter("min_prominence", 0.1, 0.0, 1.0),
        Parameter("top_n", 5, 1, 50),
        Parameter("show_hvn", True),
        Parameter("show_lvn", True),
    ),
    aliases=("vp_nodes", "volume_nodes"),
    inputs=("high", "low", "volume"),
)
