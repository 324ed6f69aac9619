"""The names and limits of the quotes API, contract v1, its query parameters, and the port of those who answer them.

All faults of a request are reported together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol, TypeVar

from openbell.desk.quotes.arche.errors import ApiFault
from openbell.market.errors import InvalidSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import BarFacts
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

TRUTH = "x-openbell-truth"
"""The header of the gateway's responses that describes the data behind them."""


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """What is known about the bars behind an answer of this process."""

    instrument: Instrument | None = None
    """The only instrument of the answer, if there is just one."""
    newest: int | None = None
    """The end of the newest bar; of several prices, the end of the oldest."""
    bars: BarFacts = BarFacts()


@dataclass(frozen=True, slots=True)
class ArcheResponse:
    """A response of the quotes API."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case. `x-request-id` is always there: the id that was sent, or the API's own."""
    body: bytes
    facts: AnswerFacts | None = None
    """Set if this process has made the answer."""
    truth: Mapping[str, Any] | None = None
    """The truth header of the gateway of the same home, if that has made the answer."""


class Upstream(Protocol):
    """Answers requests of the quotes API."""

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """Returns the response, also if it is an error. Raises `UpstreamUnreachable` and `UpstreamTooLarge`."""


API_VERSION = "v2"
CONTRACT_VERSION = "v1"
LIVE = f"/{API_VERSION}/quotes"
HISTORICAL = f"/{API_VERSION}/quotes/historical"
HEALTH = "/healthz"

MOST_TICKERS = 50
MOST_DAYS = 365
"""Days of a range, its first and its last included."""
LARGEST_PAGE = 200
DEFAULT_PAGE = 50
LAST_PAGE = 10**18 - 1
INTERVALS = {"1d": Timeframe.D1, "1m": Timeframe.M1}

TICKER = r"[A-Za-z0-9][A-Za-z0-9./:_-]{0,63}"
"""The form of a ticker. A text of this form that no instrument has is unknown; any other text is a mistake."""
T = TypeVar("T")
Params = Sequence[tuple[str, str]]
"""Query parameters in their order; a name may be repeated."""
_TICKER = re.compile(TICKER)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WHOLE = re.compile(r"[0-9]{1,18}")
_UNIX_DAY = date(1970, 1, 1).toordinal()
_DAY = 86400
_SHOWN = 40
"""Characters of a text that a message repeats."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A ticker without an answer."""

    ticker: str
    reason: str
    known: bool
    """True if it names an instrument of this desk, whose data cannot be had now."""
    hint: str = ""
    """The nearest tickers that exist, such as "; did you mean 'AAPL'?"."""


@dataclass(frozen=True, slots=True)
class Tickers:
    """The tickers of a request, each once, in their order."""

    instruments: tuple[Instrument, ...]
    unknown: tuple[Missing, ...]
    """Texts of the form of a ticker that name no instrument."""


@dataclass(frozen=True, slots=True)
class HistoricalRequest:
    """A page of bars of some tickers in a range of UTC days."""

    tickers: Tickers
    span: Span
    """From the first second of the first day to the last second of the last day."""
    interval: str
    page: int
    page_size: int

    @property
    def timeframe(self) -> Timeframe:
        """The timeframe of the bars."""
        return INTERVALS[self.interval]


def read_live(params: Params) -> Tickers:
    """Returns the tickers of a request for live quotes. Raises `ApiFault`."""
    read = _Reader(params, ("tickers",))
    tickers = read.required("tickers", _tickers)
    read.finish()
    assert tickers is not None
    return tickers


def read_historical(params: Params) -> HistoricalRequest:
    """Returns a request for historical bars. Raises `ApiFault`."""
    read = _Reader(params, ("tickers", "from", "to", "interval", "page", "page_size"))
    tickers = read.required("tickers", _tickers)
    first, last = read.required("from", _day), read.required("to", _day)
    if first is not None and last is not None:
        if first > last:
            read.fault("from", "is after to")
        elif last - first + 1 > MOST_DAYS:
            read.fault(
                "to", f"the range has {last - first + 1} days with its first and last one; the most is {MOST_DAYS}"
            )
    interval = read.required("interval", _interval)
    page = read.optional("page", 1, lambda text: _whole(text, LAST_PAGE))
    size = read.optional("page_size", DEFAULT_PAGE, lambda text: _whole(text, LARGEST_PAGE))
    read.finish()
    assert tickers is not None
    assert first is not None
    assert last is not None
    assert interval is not None
    return HistoricalRequest(tickers, Span(first * _DAY, (last + 1) * _DAY), interval, page, size)


class _Reader:
    """Reads parameters one by one and keeps what is wrong with them."""

    def __init__(self, params: Params, names: Sequence[str]) -> None:
        self._values = dict(params)
        self._faults: dict[str, str] = {}
        for name, count in Counter(name for name, _ in params).items():
            if name not in names:
                self.fault(name[:_SHOWN], f"is not a parameter; there are {', '.join(names)}")
            elif count > 1:
                self.fault(name, f"is given {count} times")

    def fault(self, field: str, reason: str) -> None:
        self._faults.setdefault(field, reason)

    def required(self, name: str, convert: Callable[[str], T]) -> T | None:
        if name not in self._values:
            self.fault(name, "is required")
            return None
        return self._converted(name, convert)

    def optional(self, name: str, default: T, convert: Callable[[str], T]) -> T:
        found = self._converted(name, convert) if name in self._values else default
        return default if found is None else found

    def _converted(self, name: str, convert: Callable[[str], T]) -> T | None:
        try:
            return convert(self._values[name])
        except ValueError as error:
            self.fault(name, str(error))
            return None

    def finish(self) -> None:
        """Raises `ApiFault` if anything is wrong."""
        if self._faults:
            message = "; ".join(f"{field}: {reason}" for field, reason in self._faults.items())
            raise ApiFault(
                "VALIDATION_ERROR",
                message[:1000],
                [{"field": field, "reason": reason} for field, reason in list(self._faults.items())[:20]],
            )


def _tickers(text: str) -> Tickers:
    """Returns the tickers of a list with commas. The limit counts repeated ones too, as the manifest's `maxItems` does."""
    names = [each.strip() for each in text.split(",")]
    if len(names) > MOST_TICKERS:
        raise ValueError(f"{len(names)} tickers are too many; the most is {MOST_TICKERS}")
    instruments: dict[Instrument, None] = {}
    unknown: dict[str, Missing] = {}
    for name in names:
        if not _TICKER.fullmatch(name):
            raise ValueError(f"{_shown(name)} is not a ticker; write them like AAPL,BTC/USD")
        try:
            instruments[parse(name)] = None
        except InvalidSymbol as error:
            ticker = name.upper()
            unknown[ticker] = Missing(ticker, error.message, known=False)
    return Tickers(tuple(instruments), tuple(unknown.values()))


def _day(text: str) -> int:
    """Returns the number of a day since 1970."""
    try:
        if not _DATE.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text).toordinal() - _UNIX_DAY
    except ValueError:
        raise ValueError(f"{_shown(text)} is not a date; write it like 2026-01-31") from None


def _interval(text: str) -> str:
    if text not in INTERVALS:
        raise ValueError(f"{_shown(text)} is not an interval; use {' or '.join(INTERVALS)}")
    return text


def _whole(text: str, most: int) -> int:
    if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
        raise ValueError(f"{_shown(text)} is not a whole number from 1 to {most}")
    return int(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
