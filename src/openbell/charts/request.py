"""What a chart is asked for, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from openbell.charts.choices import (
    LARGEST,
    LEAST_SCALE,
    MOST_INDICATORS,
    MOST_SCALE,
    SCALES,
    SMALLEST,
    STYLES,
    THEME_NAMES,
    one_of,
)
from openbell.indicators.channels import Channels
from openbell.indicators.registry import all_indicators, get
from openbell.indicators.spec import Indicator, Setting
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import hint


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
        one_of("theme", self.theme, THEME_NAMES)
        one_of("price_scale", self.price_scale, SCALES)
        if not LEAST_SCALE <= self.scale <= MOST_SCALE:
            raise InvalidParameter(f"scale must be between {LEAST_SCALE:g} and {MOST_SCALE:g}, not {self.scale}")
        for name, side in (("width", self.width), ("height", self.height)):
            if min(side, side * self.scale) < SMALLEST or max(side, side * self.scale) > LARGEST:
                times = f" × scale {self.scale:g}" if self.scale != 1 else ""
                raise InvalidParameter(
                    f"{name} must be {SMALLEST} to {LARGEST} pixels, scale included, not {side}{times}"
                )


def wanted_indicators(entries: list[str | dict[str, object]]) -> list[Wanted]:
    """Names, or objects with a name and overrides; the nth repeat of a name gets `_n`."""
    if len(entries) > MOST_INDICATORS:
        raise InvalidParameter(f"at most {MOST_INDICATORS} indicators, not {len(entries)}")
    seen: dict[str, int] = {}
    found = []
    for entry in entries:
        overrides: dict[str, object] = dict(entry) if isinstance(entry, dict) else {"name": entry}
        name = overrides.pop("name", None)
        if not isinstance(name, str):
            raise InvalidParameter('an indicator is a name, or an object such as {"name": "rsi", "length": 21}')
        indicator = _named(name)
        seen[name] = seen.get(name, 0) + 1
        key = name if seen[name] == 1 else f"{name}_{seen[name]}"
        found.append(Wanted(key, indicator, _settings(indicator, overrides)))
    return found


def _named(name: str) -> Indicator:
    if name not in _names():
        raise InvalidParameter(f"no indicator {name[:80]!r}{hint(name, _names())}")
    return get(name)


@cache
def _names() -> frozenset[str]:
    return frozenset(name for each in all_indicators().values() for name in (each.name, *each.aliases))


def _settings(indicator: Indicator, overrides: dict[str, object]) -> Mapping[str, Setting]:
    """The settings, checked; names and choices with a hint."""
    known = {parameter.name: parameter for parameter in indicator.parameters}
    for name, value in overrides.items():
        if name not in known:
            said = hint(name, known) or f"; it has {', '.join(known) or 'none'}"
            raise InvalidParameter(f"{indicator.name} has no parameter {name[:80]!r}{said}")
        if known[name].choices:
            one_of(name, value, known[name].choices)
    return indicator.settings(**overrides)
