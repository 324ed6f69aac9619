"""The type `Indicator`: a name, parameters, and how to compute it from all bars at once.

No value depends on later bars: tests check this for every indicator of the registry.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from openbell.indicators.channels import Channels, Direction
from openbell.indicators.regular_hours import regular_part
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.extras import Extra
from openbell.market.nearest import check_one_of, did_you_mean
from openbell.market.timeframes import Timeframe

Number = int | float
Setting = int | float | str | bool
_ALMOST_EQUAL = 0.8
_COMMON = 3
"""A word in the names of more indicators than this, such as `average` or `channel`, distinguishes none."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting of an indicator: a number with bounds (whole if the default is an int), a choice, or a switch."""

    name: str
    default: Setting
    low: Number = 0
    high: Number = 0
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names that clients may use, such as those of the charting tool whose contract the servers speak."""
    tradingview: Number | None = None
    """The default of TradingView's built-in indicator, if it is another."""

    def check(self, value: object) -> Setting:
        """Returns the value if it is valid. Raises `InvalidParameter` if not."""
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise InvalidParameter(f"{self.name} must be true or false, not {value!r}")
            return value
        if isinstance(self.default, str):
            chosen = next((each for each in self.choices if each.lower() == str(value).lower()), value)
            check_one_of(self.name, chosen, self.choices)
            return str(chosen)
        return self._number(value)

    def _number(self, value: object) -> Number:
        whole = isinstance(self.default, int)
        allowed = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise InvalidParameter(f"{self.name} must be a {'whole ' if whole else ''}number, not {value!r}")
        if not self.low <= value <= self.high:
            raise InvalidParameter(f"{self.name} must be between {self.low} and {self.high}, not {value}")
        return value if whole else float(value)


class Finer(NamedTuple):
    """A need for bars that are finer than those shown."""

    timeframes: tuple[Timeframe, ...]
    """The best timeframe first."""
    bars: int
    """How many of the latest bars shown need them."""
    reason: str
    """Why it needs them, for the note that some bars have none."""


@dataclass(frozen=True, slots=True)
class Indicator:
    """One entry of the catalogue."""

    name: str
    title: str
    description: str
    overlay: bool
    """Drawn over the price; otherwise in a panel of its own."""
    compute: Callable[..., Channels]
    """(bars, **parameters), with the series of `needs` and the `regular` bars as further keyword arguments."""
    warmup: Callable[..., int]
    """(**parameters): the number of bars up to the first value of the slowest line."""
    parameters: tuple[Parameter, ...] = ()
    aliases: tuple[str, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Parameters that it lacks, each with the indicator that a caller of it may mean."""
    inputs: tuple[str, ...] = ("close",)
    needs: tuple[str, ...] = ()
    """Series beyond bars that the feed must provide: `funding`, `open_interest`, …"""
    regular: bool = False
    """Computed on the regular-hours part of each bar (see `regular_part`)."""
    by_day: bool = False
    """Its values depend on where trading days begin."""
    lookback: Callable[..., int] | None = None
    """(timeframe, **parameters): the seconds before a bar whose bars determine its value, if it looks at sessions."""
    finer: Callable[..., Finer | None] | None = None
    """(timeframe, **parameters): the finer bars that it needs instead of the bars themselves; None if these will do."""
    settles: int = 24
    """Multiples of `warmup` after which the start of the series changes no value by more than 1e-10; 1 if a value depends on
    the latest `warmup` bars alone."""
    crosses: tuple[LinePair, ...] = ()
    """Pairs of its lines whose crosses traders read."""
    signals: Mapping[str, Direction] = field(default_factory=dict)
    """The labels of the signals that it can emit, and the move that each indicates."""
    profile: bool = False
    """Computed only on the bars shown, not on earlier ones."""
    cumulative: bool = False
    """Its values depend on all bars before them, such as those of a running sum, whose level depends on the first bar."""
    displaced: tuple[str, ...] = ()
    """Lines that are drawn at earlier bars than those that determine them, such as Ichimoku's lagging span."""
    brief: str = ""
    """The description in at most 60 characters, for the whole catalogue; empty if the description has no more."""
    differs: str = ""
    """How it differs from TradingView's built-in indicator besides its defaults, in sentences for its page. Empty if it does
    not, or if there is none."""
    sparse: tuple[str, ...] = ()
    """Lines that have a value only after certain prices, or only for some bars, such as the level of an open gap."""

    @property
    def differences(self) -> str:
        """Sentences for its page: which defaults TradingView has instead of ours, and how it differs besides."""
        others = [f"{each.name} {each.tradingview:g}" for each in self.parameters if each.tradingview is not None]
        defaults = f"TradingView's defaults are {', '.join(others)}." if others else ""
        return " ".join(filter(None, (defaults, self.differs)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its signals."""
        return tuple(self.signals)

    def settings(self, **overrides: object) -> dict[str, Setting]:
        """The defaults with a caller's overrides. Raises `InvalidParameter` if one is unknown or invalid."""
        given: dict[str, object] = {}
        for spelled, value in overrides.items():
            name = self.parameter(spelled).name
            if name in given:
                raise InvalidParameter(f"{self.name} was given {name} twice: {spelled!r} is another name for it")
            given[name] = value
        return {p.name: p.check(given[p.name]) if p.name in given else p.default for p in self.parameters}

    def parameter(self, name: str) -> Parameter:
        """The parameter with a name or alias, in any spelling. Raises `InvalidParameter` if there is none."""
        for each in self.parameters:
            if name == each.name:
                return each
        asked = plain(name[:80])
        for each in self.parameters:
            if asked in map(plain, (each.name, *each.aliases)):
                return each
        known = [each.name for each in self.parameters]
        advice = did_you_mean(name, known) or f"; it has {', '.join(known) or 'none'}"
        if other := self.elsewhere.get(asked):
            advice = f"; {other} has it"
        raise InvalidParameter(f"{self.name} has no parameter {name[:80]!r}{advice}")

    def label(self, settings: Mapping[str, Setting]) -> str:
        """The label in a legend: the title and the numbers among the settings, such as `RSI(14)`."""
        numbers = [value for value in settings.values() if not isinstance(value, bool | str)]
        return f"{self.title}({','.join(f'{value:g}' for value in numbers)})" if numbers else self.title

    def run(
        self,
        bars: Bars,
        extras: Mapping[str, Extra] | None = None,
        regular: Bars | None = None,
        finer: Bars | None = None,
        /,
        **overrides: object,
    ) -> Channels:
        """Compute with validated settings; `extras` holds the series that `needs` names, `finer` bars those of `finer`.

        If `regular` is None, it is derived from the bars, which raises `DataError` if they hold more than regular hours.
        """
        given: dict[str, Extra | Bars | None] = {name: (extras or {})[name] for name in self.needs}
        if self.finer:
            given["finer"] = finer
        if self.regular:
            given["regular"] = regular_part(bars) if regular is None else regular
        return self.compute(bars, **given, **self.settings(**overrides))


class Unit(Enum):
    """What the values of a pair are: it decides which differences are rounding alone."""

    PRICE = "price"
    VOLUME = "volume"
    RATIO = "ratio"
    """Shares, per cent and other numbers that do not grow with the price."""


class LinePair(NamedTuple):
    """Two lines, by their labels."""

    line: str
    other: str
    unit: Unit = Unit.RATIO


def plain(name: str) -> str:
    """The letters and digits of a name in lower case, by which names are compared."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def words(name: str) -> frozenset[str]:
    """The words of a name in lower case and in the singular."""
    return frozenset(word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", name.lower()))


def suggestion(name: str, known: Mapping[str, Collection[str]]) -> str:
    """Returns "; did you mean 'rsi'?", or "" if no name is near. `known` has the other names of each name.

    A misspelt name comes first, then a name that shares a rare word. Similar letters count only for names of one word:
    the words of a longer one would match any name that ends alike.
    """
    every = [each for key, others in known.items() for each in (key, *others)]
    asked = name[:80].strip().lower()
    found = did_you_mean(asked.replace(" ", "_"), every, _ALMOST_EQUAL)
    return found or _by_words(asked, known) or (did_you_mean(asked, every) if len(words(asked)) == 1 else "")


def _by_words(name: str, known: Mapping[str, Collection[str]]) -> str:
    of_each = {key: frozenset[str]().union(*map(words, (key, *others))) for key, others in known.items()}
    count = Counter(word for each in of_each.values() for word in each)
    asked = {word for word in words(name) if len(word) > 1 and count[word] <= _COMMON}
    near = max(of_each, key=lambda key: len(asked & of_each[key]))
    return f"; did you mean {near!r}?" if asked & of_each[near] else ""
