"""What indicators were asked for, checked, and their numbers over bars.

`wanted_indicators` reads names, aliases and settings as people and agents write them; it is the one place that refuses them.
`evaluate` computes them over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openbell.indicators.bounds import MOST_INDICATORS
from openbell.indicators.channels import Channels
from openbell.indicators.registry import get
from openbell.indicators.spec import Indicator, Setting
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.extras import Extra


@dataclass(frozen=True, slots=True)
class Wanted:
    """One indicator as it was asked for, under the key that the answer uses."""

    key: str
    indicator: Indicator
    settings: Mapping[str, Setting]

    @property
    def label(self) -> str:
        """`RSI(21)`."""
        return self.indicator.label(dict(self.settings))


@dataclass(frozen=True, slots=True)
class Computed:
    """An indicator with its numbers."""

    wanted: Wanted
    channels: Channels


def wanted_indicators(entries: Sequence[str | dict[str, object]]) -> list[Wanted]:
    """Names, or objects with a name and overrides; the nth repeat of a name gets `_n`. Raises `InvalidParameter`."""
    if len(entries) > MOST_INDICATORS:
        raise InvalidParameter(f"at most {MOST_INDICATORS} indicators, not {len(entries)}")
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
        found.append(Wanted(key, indicator, indicator.settings(**overrides)))
    return found


def evaluate(
    bars: Bars, count: int, wanted: Sequence[Wanted], extras: Mapping[str, Extra], regular: Bars | None
) -> list[Computed]:
    """The numbers of the newest `count` bars, computed on all bars so that they are warm.

    `extras` has what the indicators need beyond bars; `regular` what was traded of the bars in regular hours, where the bars
    themselves do not tell.
    """
    shown = bars.tail(count)
    first = len(bars) - len(shown)
    found = []
    for each in wanted:
        # A profile is of the bars that are seen; everything else begins before them.
        profile = each.indicator.profile
        given = shown if profile else bars
        part = None if regular is None else regular.tail(len(given))
        with np.errstate(all="ignore"):  # values that are not finite are null in answers and gaps in pictures
            channels = each.indicator.run(given, extras, part, **each.settings)
        found.append(Computed(each, channels if profile else channels.since(first)))
    return found
