"""Requests for indicators, with what they change about them, and their evaluation over bars.

`parse_requests` parses and validates names, aliases and settings as clients write them. `evaluate` computes over arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from openbell.indicators.averages import ema, linear_weights, sma, weighted_average
from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.registry import MAX_INDICATORS, get
from openbell.indicators.spec import Finer, Indicator, Setting
from openbell.market.bars import Bars, Values
from openbell.market.errors import InvalidParameter
from openbell.market.extras import Extra
from openbell.market.timeframes import Timeframe

NO_VOLUME = "no volume in these bars"
PRICE_SOURCES: dict[str, Callable[[Bars], Values]] = {
    "close": lambda bars: bars.close,
    "open": lambda bars: bars.open,
    "high": lambda bars: bars.high,
    "low": lambda bars: bars.low,
    "hl2": lambda bars: (bars.high + bars.low) / 2.0,
    "hlc3": lambda bars: (bars.high + bars.low + bars.close) / 3.0,
    "ohlc4": lambda bars: (bars.open + bars.high + bars.low + bars.close) / 4.0,
}
"""The prices that may stand in for the close."""
SMOOTHING_AVERAGES: dict[str, Callable[[Values, int], Values]] = {
    "SMA": sma,
    "EMA": ema,
    "WMA": lambda values, length: weighted_average(values, linear_weights(length)),
}
"""The averages that may smooth a line."""
SMOOTHED = "Smoothed MA"
"""The label of the line that an average adds."""


@dataclass(frozen=True, slots=True)
class IndicatorRequest:
    """A request for one indicator: its key in the result, and its settings."""

    key: str
    indicator: Indicator
    settings: Mapping[str, Setting]
    changes: IndicatorChanges | None = None
    """None for the indicator as it is."""

    @property
    def label(self) -> str:
        """The label in a legend, such as `RSI(21)`."""
        label = self.indicator.label(dict(self.settings))
        return label if self.changes is None or self.changes.source == "close" else f"{label} {self.changes.source}"

    def finer(self, timeframe: Timeframe) -> Finer | None:
        """The finer bars that it needs instead of bars of this timeframe, if it does."""
        return self.indicator.finer(timeframe, **self.settings) if self.indicator.finer else None

    def lookback(self, timeframe: Timeframe) -> int:
        """The seconds before a bar whose bars determine its value, if it looks at earlier sessions."""
        return self.indicator.lookback(timeframe, **self.settings) if self.indicator.lookback else 0

    @property
    def warmup(self) -> int:
        """The number of bars up to the first value of the slowest line."""
        return self.indicator.warmup(**self.settings) + (self.changes.warmup if self.changes else 0)


@dataclass(frozen=True, slots=True)
class Computed:
    """A request with its result."""

    request: IndicatorRequest
    channels: Channels
    note: str | None = None
    """Why values are missing, or say nothing, although there are enough bars."""
    earlier: Channels | None = field(default=None, compare=False, repr=False)
    """The channels on all bars that it was computed on, if those are more than the bars shown."""

    @property
    def whole(self) -> Channels:
        """The channels on all bars that it was computed on."""
        return self.earlier or self.channels


def parse_requests(entries: Sequence[str | dict[str, object]]) -> list[IndicatorRequest]:
    """Parse names, or objects with a name and settings. The key of the nth request for a name ends in `_n`.

    Raises `InvalidParameter` for unknown names, bad settings and too many entries.
    """
    if len(entries) > MAX_INDICATORS:
        raise InvalidParameter(f"at most {MAX_INDICATORS} indicators, not {len(entries)}")
    seen: dict[str, int] = {}
    found = []
    for entry in entries:
        overrides: dict[str, object] = dict(entry) if isinstance(entry, dict) else {"name": entry}
        name = overrides.pop("name", None)
        if not isinstance(name, str):
            raise InvalidParameter('an indicator is a name, or an object such as {"name": "rsi", "length": 21}')
        indicator = get(name)
        seen[name] = seen.get(name, 0) + 1
        key = name if seen[name] == 1 else f"{name}_{seen[name]}"
        found.append(IndicatorRequest(key, indicator, indicator.settings(**overrides)))
    return found


def evaluate(
    bars: Bars,
    count: int,
    requests: Sequence[IndicatorRequest],
    extras: Mapping[str, Extra],
    regular: Bars | None,
    finer: Mapping[str, Bars] | None = None,
) -> list[Computed]:
    """The results for the latest `count` bars, computed on all bars so that they are warm.

    `extras` holds the series beyond bars that the indicators need. `regular` is the regular-hours part of each bar; if it is
    None, it is derived from the bars. `finer` holds the finer bars of the requests that need them, by their keys.
    """
    shown = bars.tail(count)
    first = len(bars) - len(shown)
    found = []
    for each in requests:
        # A profile covers only the bars shown; other indicators start earlier.
        profile = each.indicator.profile
        given = shown if profile else bars
        part = None if regular is None else regular.tail(len(given))
        if each.changes:
            given, part = each.changes.before(given), None if part is None else each.changes.before(part)
        with np.errstate(all="ignore"):  # values that are not finite become null in results and gaps in charts
            channels = each.indicator.run(given, extras, part, (finer or {}).get(each.key), **each.settings)
            if each.changes:
                channels = each.changes.after(channels, len(given))
        note = (
            NO_VOLUME if "volume" in each.indicator.inputs and _untraded((finer or {}).get(each.key, shown)) else None
        )
        shown_part = channels if profile else channels.since(first)
        found.append(Computed(each, shown_part, note, None if profile else channels))
    return found


def _untraded(bars: Bars) -> bool:
    """Returns True if there are bars, and none has volume, as in files of forex."""
    return len(bars) > 0 and not (bars.volume > 0.0).any()


@dataclass(frozen=True, slots=True)
class IndicatorChanges:
    """The changes of one request. By default there are none."""

    source: str = "close"
    """One of `PRICE_SOURCES`: the indicator is computed on bars with this price as their close."""
    lines: tuple[str, ...] = ()
    """The labels of the lines that are kept; all of them if empty."""
    average: str = ""
    """One of `SMOOTHING_AVERAGES`: adds a line `SMOOTHED`, this average of the first line. Empty for none."""
    average_length: int = 1
    offset: int = 0
    """Bars by which everything is moved to the right; to the left if negative."""

    @property
    def warmup(self) -> int:
        """Bars that are needed in addition to those of the indicator."""
        return max(0, self.offset) + (self.average_length if self.average else 0)

    def before(self, bars: Bars) -> Bars:
        """Returns the bars to compute on."""
        return bars if self.source == "close" else replace(bars, close=PRICE_SOURCES[self.source](bars))

    def after(self, channels: Channels, count: int) -> Channels:
        """Returns the changed result for `count` bars."""
        if self.lines:
            kept, steps = (
                tuple(line for line in lines if line.label in self.lines)
                for lines in (channels.lines, channels.histogram)
            )
            channels = replace(channels, lines=kept, histogram=steps, fills=())
        if self.average and channels.lines:
            smooth = SMOOTHING_AVERAGES[self.average](channels.lines[0].values, self.average_length)
            channels = replace(channels, lines=(*channels.lines, Line(SMOOTHED, smooth)))
        return moved(channels, self.offset, count) if self.offset else channels


def moved(channels: Channels, by: int, count: int) -> Channels:
    """Returns the channels moved by a number of bars. What leaves the bars is cut off."""

    def shifted(values: Values) -> Values:
        out = np.full(len(values), np.nan)
        if by > 0:
            out[by:] = values[:-by]
        else:
            out[:by] = values[-by:]
        return out

    return replace(
        channels,
        lines=tuple(Line(line.label, shifted(line.values)) for line in channels.lines),
        histogram=tuple(Line(line.label, shifted(line.values)) for line in channels.histogram),
        fills=tuple(FilledBand(shifted(fill.upper), shifted(fill.lower)) for fill in channels.fills),
        hlines=tuple(each.moved(by) for each in channels.hlines),
        divlines=tuple(
            replace(each, x1=each.x1 + by, x2=each.x2 + by)
            for each in channels.divlines
            if each.x1 + by >= 0 and each.x2 + by < count
        ),
        signals=tuple(each.moved(by) for each in channels.signals if 0 <= each.index + by < count),
    )
