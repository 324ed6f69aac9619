"""The types `Study`, `Input` and `Plot`.

A study has two names: the one of chart configs (`RSI@tv-basicstudies`) and the vendor's (`Relative Strength Index`). Each of
its inputs has two names as well: `length` in configs, `in_0` or a name of its own in the vendor's requests. `plots` are the
indicators of the registry that draw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from openbell.indicators.spec import Setting
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import check_one_of

SUFFIX = "@tv-basicstudies"
LONGEST = 500
"""The largest length that most indicators of the registry accept; inputs for the others have bounds of their own."""
SOURCES = ("close", "open", "high", "low", "hl2", "hlc3", "ohlc4")
METHODS = ("Simple", "Exponential", "Weighted")
SMOOTHINGS = ("SMA", "EMA", "WMA")


class Category(StrEnum):
    """The group of a study in the documentation."""

    TREND = "Trend"
    MOMENTUM = "Momentum"
    VOLATILITY = "Volatility"
    VOLUME = "Volume"


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a study: a number with bounds (whole if the default is an int), a choice or a switch."""

    name: str
    default: Setting
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    key: str = ""
    """The vendor's name. If empty, the catalogue sets `in_N` by the position of the input."""
    extra: bool = False
    """True if configs have it only when a client has asked for it."""
    description: str = ""

    @property
    def kind(self) -> str:
        """The type as the documentation names it."""
        if isinstance(self.default, bool):
            return "boolean"
        return "string" if isinstance(self.default, str) else "number"

    def check(self, value: object) -> Setting:
        """Returns a valid value. Raises `InvalidParameter` for others."""
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise InvalidParameter(f"{self.name} must be true or false, not {_shown(value)}")
            return value
        if isinstance(self.default, str):
            check_one_of(self.name, value, self.choices)
            return str(value)
        whole = isinstance(self.default, int)
        if isinstance(value, float) and whole and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise InvalidParameter(f"{self.name} must be a {'whole ' if whole else ''}number, not {_shown(value)}")
        if not self.low <= value <= self.high:
            raise InvalidParameter(f"{self.name} must be {self.low:g} to {self.high:g}, not {_shown(value)}")
        return value if whole else float(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


@dataclass(frozen=True, slots=True)
class Plot:
    """One indicator of the registry that draws a study, or a part of it."""

    indicator: str
    uses: Mapping[str, str]
    """Parameters of the indicator, each with the input that sets it."""
    fixed: Mapping[str, Setting]
    """Parameters of the indicator with a value of their own."""
    lines: tuple[str, ...] = ()
    """The lines that are drawn; all of them if empty."""


def plot(
    indicator: str, *, lines: tuple[str, ...] = (), fixed: Mapping[str, Setting] | None = None, **uses: str
) -> Plot:
    """Returns a plot whose parameters are set by inputs: `plot("macd", fast="fastLength")`."""
    return Plot(indicator, uses, fixed or {}, lines)


@dataclass(frozen=True, slots=True)
class Study:
    """One study."""

    short: str
    """The name without its suffix."""
    title: str
    """The vendor's name."""
    category: Category
    inputs: tuple[Input, ...] = ()
    plots: tuple[Plot, ...] = ()
    """Empty if the study is drawn otherwise (`Volume`), or not at all."""
    phrases: tuple[str, ...] = ()
    """How people call it, in lower case, besides its title."""
    overlay: bool = False
    """Drawn over the price."""
    display: str = ""
    """The name in the documentation, if it is not the title."""

    @property
    def name(self) -> str:
        """The name in chart configs."""
        return self.short + SUFFIX

    @property
    def display_name(self) -> str:
        """The name in the documentation."""
        return self.display or self.title

    def with_keys(self) -> Study:
        """Returns the study with the vendor's name of each input."""
        keyed = (each if each.key else replace(each, key=f"in_{at}") for at, each in enumerate(self.inputs))
        return replace(self, inputs=tuple(keyed))


def length(default: int, name: str = "length", key: str = "", *, least: int = 1, most: int = LONGEST) -> Input:
    """Returns an input that is a number of bars."""
    return Input(name, default, least, most, key=key, description="bars")


def factor(name: str, default: float, low: float = 0.1, high: float = 20.0, key: str = "") -> Input:
    """Returns an input that is a number with a fraction."""
    return Input(name, default, low, high, key=key)


def source(key: str = "") -> Input:
    """Returns the input for the price that a study is computed on."""
    return Input("source", "close", choices=SOURCES, key=key, extra=True, description="price of each bar")


def offset(key: str = "", name: str = "offset", *, least: int = -LONGEST) -> Input:
    """Returns the input that moves lines to the right, or to the left if it is negative."""
    return Input(name, 0, least, LONGEST, key=key, extra=True, description="bars to the right")


def method(key: str = "method") -> Input:
    """Returns the input for the kind of average."""
    return Input("method", "Simple", choices=METHODS, key=key, extra=True)


def smoothing(default: int) -> tuple[Input, Input]:
    """Returns the inputs of the line that smooths a study."""
    return (
        Input("smoothingLine", "SMA", choices=SMOOTHINGS, key="smoothingLine", extra=True),
        Input(
            "smoothingLength", default, 1, LONGEST, key="smoothingLength", extra=True, description="bars of the average"
        ),
    )
