"""Williams' alligator: three smoothed averages of the bars' middles, each drawn a number of bars later.

The smoothed average is Wilder's, which starts with the simple average.
"""

from __future__ import annotations

from openbell.indicators.averages import wilder
from openbell.indicators.channels import Channels, Line
from openbell.indicators.lines import MAX_OFFSET, beyond_the_last, shifted_later
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars

PARTS = (("jaw", 21, 8), ("teeth", 13, 5), ("lips", 8, 3))
_TRADINGVIEW = {"jaw": 13, "teeth": 8, "lips": 5}


def _lines(chosen: dict[str, int]) -> list[tuple[int, int]]:
    """The length and the offset of each line."""
    return [(chosen[name], chosen[f"{name}_offset"]) for name, _, _ in PARTS]


def _compute(bars: Bars, **chosen: int) -> Channels:
    middle = (bars.high + bars.low) / 2.0
    lines = []
    for label, (length, offset) in zip(("Jaw", "Teeth", "Lips"), _lines(chosen), strict=True):
        values = wilder(middle, length)
        lines.append(Line(label, shifted_later(values, offset), beyond_the_last(values, offset)))
    return Channels(lines=tuple(lines))


INDICATOR = Indicator(
    name="alligator",
    title="Alligator",
    description="Williams' alligator: three smoothed averages of each bar's middle, drawn 8, 5 and 3 bars later",
    brief="Williams' alligator: three smoothed averages, drawn later",
    overlay=True,
    compute=_compute,
    warmup=lambda **chosen: max(map(sum, _lines(chosen))),
    parameters=(
        *(
            Parameter(name, length, 1, 500, aliases=(f"{name}_length",), tradingview=_TRADINGVIEW[name])
            for name, length, _ in PARTS
        ),
        *(Parameter(f"{name}_offset", offset, 0, MAX_OFFSET) for name, _, offset in PARTS),
    ),
    aliases=("williams_alligator",),
    inputs=("high", "low"),
)
