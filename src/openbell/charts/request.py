"""What a chart is asked for, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from openbell.charts.themes import THEMES
from openbell.indicators.channels import Channels
from openbell.indicators.registry import get
from openbell.indicators.spec import Indicator, Setting
from openbell.market.errors import InvalidParameter

Style = Literal["candles", "hollow", "bars", "line", "area", "heikin_ashi", "baseline"]
STYLES: tuple[str, ...] = ("candles", "hollow", "bars", "line", "area", "heikin_ashi", "baseline")
SCALES: tuple[str, ...] = ("linear", "log", "percent")
MOST_INDICATORS = 24
SMALLEST, LARGEST = 200, 4096
"""Pixels a side, the device scale included."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One indicator of a chart, under the key that the answer uses."""

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


@dataclass(frozen=True, slots=True)
class Look:
    """How a chart is to look."""

    width: int = 1200
    height: int = 675
    scale: float = 1.0
    style: str = "candles"
    theme: str = "dark"
    price_scale: str = "linear"
    volume: bool = True

    def __post_init__(self) -> None:
        one_of("style", self.style, STYLES)
        one_of("theme", self.theme, tuple(THEMES))
        one_of("price_scale", self.price_scale, SCALES)
        if not 0.5 <= self.scale <= 4:
            raise InvalidParameter(f"scale must be between 0.5 and 4, not {self.scale}")
        for name, side in (("width", self.width), ("height", self.height)):
            if side < SMALLEST or side * self.scale > LARGEST:
                raise InvalidParameter(
                    f"{name} must be at least {SMALLEST} and, times the scale, at most {LARGEST}, not {side}"
                )


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse what is not in a list, naming the nearest that is."""
    if value not in allowed:
        near = get_close_matches(str(value), allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidParameter(f"{name} must be one of {', '.join(allowed)}, not {value!r}{hint}")


def wanted_indicators(entries: list[str | dict[str, object]]) -> list[Wanted]:
    """Names, or objects with a name and overrides; the nth repeat of a name gets `_n`."""
    if len(entries) > MOST_INDICATORS:
        raise InvalidParameter(f"at most {MOST_INDICATORS} indicators, not {len(entries)}")
    seen: dict[str, int] = {}
    found = []
    for entry in entries:
        overrides = dict(entry) if isinstance(entry, dict) else {"name": entry}
        name = overrides.pop("name", None)
        if not isinstance(name, str):
            raise InvalidParameter('an indicator is a name, or an object such as {"name": "rsi", "length": 21}')
        indicator = get(name)
        seen[name] = seen.get(name, 0) + 1
        key = name if seen[name] == 1 else f"{name}_{seen[name]}"
        found.append(Wanted(key, indicator, indicator.settings(**overrides)))
    return found
