"""Room at the right of the newest bar: for lines ahead of it, for a profile beside it, and for names."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from openbell.charts.profiles import EDGE
from openbell.charts.styles import style_for
from openbell.indicators.evaluation import Computed
from openbell.indicators.profiles import WIDEST

_MOST_AHEAD = 0.5
"""The most bars ahead, as a share of the bars shown: a chart of few bars is not mostly empty."""
_GAP = 0.01
"""The width between the newest bar and a profile, as a share of the chart's width."""
_NAME, _NAME_WITH_PRICE = 44.0, 110.0
"""The width in pixels for the names of lines and levels, and for the names of retracements, which have a price."""


def bars_ahead(overlays: Sequence[Computed], count: int) -> int:
    """Returns the number of bars after the last one for which lines have values, as far as there is room."""
    longest = max(
        (len(line.ahead) for each in overlays for line in each.channels.lines if line.ahead is not None), default=0
    )
    return min(longest, int(count * _MOST_AHEAD))


def bars_beside(overlays: Sequence[Computed], count: int, width: float) -> int:
    """Returns the number of bars whose room a profile or names at the right need, in a plot of this width."""
    share = 0.0
    for each in overlays:
        style = style_for(each)
        if style.profile == "edge" and any(not bar.left for bar in each.channels.hbars):
            share = max(share, WIDEST * EDGE + _GAP)
        elif style.lines == "retracement":
            share = max(share, min(_NAME_WITH_PRICE / width, 0.25))
        elif style.names or style.lines == "levels" or each.channels.hlines:
            share = max(share, min(_NAME / width, 0.25))
    return ceil(count * share / (1 - share))
