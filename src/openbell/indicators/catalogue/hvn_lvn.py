"""Nodes of the volume profile: prices at which much more, or much less, was traded than around them."""

from __future__ import annotations

from collections.abc import Iterable

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import WIDEST, PriceRows, all_in_one
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def peaks(heights: Values, neighborhood: int, least: float, count: int) -> list[int]:
    """The rows that no row of their neighbourhood tops, the most prominent `count` of them, from the bottom up.

    Of a plateau the lowest row counts. Beyond both ends there is nothing: height 0.
    """
    row = heights.tolist()
    found = []
    for at, height in enumerate(row):
        below, above = row[max(0, at - neighborhood) : at], row[at + 1 : at + 1 + neighborhood]
        if all(other < height for other in below) and all(other <= height for other in above):
            stands_out = height - max(_foot(height, [*row[:at][::-1], 0.0]), _foot(height, [*row[at + 1 :], 0.0]))
            if stands_out > 0.0 and stands_out >= least:
                found.append((-stands_out, at))
    return sorted(at for _, at in sorted(found)[:count])


def _foot(height: float, way: Iterable[float]) -> float:
    """The lowest point on the way to anything higher, or to the end."""
    lowest = height
    for other in way:
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
    rows = PriceRows(all_in_one(bars), bins)
    traded = rows.spread(bars.volume)[0]
    largest = traded.max()
    nodes: list[int] = []
    for shown, heights in ((show_hvn, traded), (show_lvn, -traded)):
        if shown:
            nodes += peaks(heights, neighborhood, min_prominence * float(largest), top_n)
    widths = (WIDEST / largest * traded[nodes]).tolist() if nodes else []
    return Channels(
        hbars=tuple(rows.mark(node, width, 0.0, False) for node, width in zip(nodes, widths, strict=True)),
        hlines=tuple(rows.price(node) for node in nodes),
    )


INDICATOR = Indicator(
    name="hvn_lvn",
    title="HVN/LVN",
    description="High and low volume nodes: the most prominent peaks and valleys of the volume profile as levels",
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
