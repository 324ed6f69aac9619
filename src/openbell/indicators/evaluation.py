"""Requests for indicators, and their evaluation over bars.

`parse_requests` parses and validates names, aliases and settings as clients write them. `evaluate` computes over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from openbell.indicators.bounds import MAX_INDICATORS
from openbell.indicators.changes import Changes
from openbell.indicators.channels import Channels
from openbell.indicators.registry import get
from openbell.indicators.spec import Finer, Indicator, Setting
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.extras import Extra
from openbell.market.timeframes import Timeframe

NO_VOLUME = "no volume in these bars"


@dataclass(frozen=True, slots=True)
class IndicatorRequest:
    """A request for one indicator: its key in the result, and its settings."""

    key: str
    indicator: Indicator
    settings: Mapping[str, Setting]
    changes: Changes | None = None
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
