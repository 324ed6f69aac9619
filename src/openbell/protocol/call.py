"""The call of a tool by a session on a desk, and its result: a value together with the data that it is based on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openbell.desk.desk import Desk
from openbell.desk.settings import Settings
from openbell.feeds.registry import described, feed_of
from openbell.market.clock import iso
from openbell.market.instruments import Instrument
from openbell.market.provenance import BarFacts, Origin, Source
from openbell.market.sessions import phase, stock_phase
from openbell.protocol.session import Afterwards, Session

if TYPE_CHECKING:
    from openbell.desk.alerts.inbox import InboxReader
    from openbell.desk.orders.prices import Price

T = TypeVar("T")

_FIELDS = ("scenario", "note", "data", "account", "feed", "as_of", "made_of", "age_s", "session")
"""The fields of the truth header, in their order."""


@dataclass(frozen=True, slots=True)
class Call:
    """The first argument of every tool's handler."""

    desk: Desk
    session: Session
    request: Any = None
    """The transport's id of the request."""
    at: float = field(init=False)
    """The desk's time at which the call arrived, as a Unix timestamp."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", self.desk.clock.epoch())

    @property
    def principal(self) -> str:
        """The subject of the caller's principal."""
        return self.session.principal.subject

    @property
    def inbox(self) -> InboxReader:
        """The caller's inbox, with the cursor of its session."""
        return self.session.reader(self.desk.trading.inbox)


@dataclass(frozen=True, slots=True)
class Basis:
    """The data that a result is based on, for its truth header."""

    instrument: Instrument | None = None
    """The instrument whose trading session the header names."""
    newest: int | None = None
    """End of the newest bar that the result uses; of several prices, the end of the oldest."""
    account: str = "none"
    """The kind of account that the result shows: `none`, `paper` or `live`."""
    source: str | None = None
    """The store or the service that the data comes from; None for the one that the tool usually reads."""
    note: str | None = None
    """Why part of the result may be out of date or missing."""
    made_of: str | None = None
    """The timeframes of the stored bars that the bars of the result are made of: `1d`, or `1d+1m`."""
    sources: frozenset[Source] = frozenset()
    """The sources of those bars."""
    stated: Mapping[str, Any] | None = None
    """Fields of the header as another service has stated them; they replace this desk's own."""

    def with_defaults(self, other: Basis) -> Basis:
        """Returns this basis with its empty fields taken from `other`."""
        return Basis(
            self.instrument or other.instrument,
            other.newest if self.newest is None else self.newest,
            other.account if self.account == "none" else self.account,
            self.source or other.source,
            self.note or other.note,
            self.made_of or other.made_of,
            self.sources or other.sources,
            self.stated or other.stated,
        )


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """What a handler returns: the value, its basis, and the work to run after the response has been sent."""

    value: T
    basis: Basis = Basis()
    afterwards: tuple[Afterwards, ...] = ()
    partial: bool = False
    """True if more is being computed: it is not cached, so that the next call has more."""


def on_bars(
    instrument: Instrument, end: int | None = None, facts: BarFacts | None = None, note: str | None = None
) -> Basis:
    """Returns the basis of a result about an instrument whose newest bar ends at `end`."""
    facts = facts or BarFacts()
    notes = "; ".join(filter(None, (facts.failure, note))) or None
    return Basis(instrument, end, note=notes, made_of=facts.made_of, sources=facts.sources)


def on_prices(prices: Iterable[Price | None], note: str | None) -> Basis:
    """Returns the basis of a result that values positions at these prices."""
    return Basis(newest=min((price.end for price in prices if price), default=None), note=note)


def truth(settings: Settings, at: float, basis: Basis) -> dict[str, Any]:
    """Returns the truth header of a result: kind of data, account, feed, time, age of the bars and trading session."""
    scenario = settings.acts_in
    feed, notice, as_of, session = _second(int(at), settings.feed, basis.instrument)
    header: dict[str, Any] = {"scenario": scenario} if scenario else {}
    if basis.note or notice:
        header["note"] = "; ".join(filter(None, (basis.note, notice)))
    header["data"] = origins(settings, basis.sources)
    header["account"] = basis.account
    header["feed"] = feed
    header["as_of"] = as_of
    if basis.made_of:
        header["made_of"] = basis.made_of
    header["age_s"] = None if basis.newest is None else max(0, int(at) - basis.newest)
    header["session"] = session
    if not basis.stated:
        return header
    stated = {**header, **basis.stated}
    if basis.note and basis.stated.get("note"):
        stated["note"] = f"{basis.stated['note']}; {basis.note}"
    return {name: stated[name] for name in _FIELDS if name in stated}


def session_and_time(call: Call, instrument: Instrument | None) -> tuple[str, str]:
    """Returns the trading session and the desk's time as the truth header of a call has them."""
    _, _, as_of, session = _second(int(call.at), call.desk.settings.feed, instrument)
    return session, as_of


@lru_cache(maxsize=256)
def _second(at: int, feeds: str, instrument: Instrument | None) -> tuple[str, str, str, str]:
    """Returns what is the same for all calls within a second: feed, its notice, time as text, and trading session."""
    feed = described(feeds, instrument)[0]
    session = phase(instrument, at) if instrument else stock_phase(at)
    return feed, feed_of(feed).notice, iso(at), str(session)


def data_source(call: Call, instrument: Instrument | None = None, sources: Collection[Source] = frozenset()) -> str:
    """Returns the value of `data_source` in payloads: a description of the sources of the bars.

    Without `sources`, or if the feed does not serve stored bars as they are, it describes the feed.
    """
    desk = call.desk
    feed = described(desk.settings.feed, instrument)[1]
    if not sources or desk.data in {Origin.SIMULATED, Origin.REPLAY}:
        return feed
    own = desk.feed.route(instrument).source if instrument and desk.feed.supports(instrument) else None
    live = (each for each in sources if each.origin is Origin.LIVE)
    names = {feed if each == own else f"{each.feed.removeprefix('ccxt-')} (live data)" for each in live}
    imported = ["imported bars"] if any(each.origin is Origin.IMPORTED for each in sources) else []
    text = " and ".join([*sorted(names), *imported])
    return text[:1].upper() + text[1:] if not names else text


def origins(settings: Settings, sources: Collection[Source]) -> str:
    """Returns the kind of data of bars of some sources: `live`, `imported`, `imported+live`, …"""
    kind = feed_of(settings.feed).origin
    if not sources or kind in {Origin.SIMULATED, Origin.REPLAY}:
        return str(kind)
    return "+".join(sorted({str(each.origin) for each in sources}))


def truth_line(truth: Mapping[str, Any]) -> str:
    """Returns the header as one line of text; unknown values are dashes."""
    return "truth: " + " ".join(f"{name}={'-' if value is None else value}" for name, value in truth.items())
