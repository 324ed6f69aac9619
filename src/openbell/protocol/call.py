"""The call: which session asks which desk; and the result: a value together with what it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openbell.desk.desk import Desk
from openbell.market.clock import iso
from openbell.market.instruments import Instrument
from openbell.market.sessions import phase, stock_phase
from openbell.protocol.replies import Afterwards
from openbell.protocol.session import Session

if TYPE_CHECKING:
    from openbell.desk.trading.inbox import Reader
    from openbell.desk.trading.prices import Price

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """Handed to every tool's handler."""

    desk: Desk
    session: Session
    request: Any = None
    """The id of the request, as the transport knows it."""
    at: float = field(init=False)
    """The desk's clock when the call came."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", self.desk.clock.epoch())

    @property
    def principal(self) -> str:
        """Who asks."""
        return self.session.principal.subject

    @property
    def inbox(self) -> Reader:
        """The caller's inbox, as its session reads it."""
        return self.session.reader(self.desk.trading.inbox)


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer rests on, as its truth header tells it."""

    instrument: Instrument | None = None
    """Whose session the header tells."""
    newest: int | None = None
    """The end of the newest bar that it uses; of several prices, the oldest counts."""
    account: str = "none"
    """Whose money it is about: `none`, `paper` or `live`."""
    source: str | None = None
    """What the data was read from."""
    note: str | None = None
    """Why something in it is in doubt."""

    def over(self, other: Basis) -> Basis:
        """This one, and what `other` says where this one says nothing."""
        return Basis(
            self.instrument or other.instrument,
            other.newest if self.newest is None else self.newest,
            other.account if self.account == "none" else self.account,
            self.source or other.source,
            self.note or other.note,
        )


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """What a handler returns: the value, what it rests on, and what is to be done when it has left."""

    value: T
    basis: Basis = Basis()
    afterwards: tuple[Afterwards, ...] = ()


def on_bars(instrument: Instrument, end: int | None = None) -> Basis:
    """Of an answer about an instrument, from bars that end there."""
    return Basis(instrument, end)


def on_prices(prices: Iterable[Price | None], note: str | None) -> Basis:
    """Of an answer that values something at some prices."""
    return Basis(newest=min((price.end for price in prices if price), default=None), note=note)


def truth(desk: Desk, at: float, basis: Basis) -> dict[str, Any]:
    """What every result says about itself: made-up or real, whose account, from which feed, how old."""
    scenario = desk.settings.acts_in
    return {
        **({"scenario": scenario} if scenario else {}),
        **({"note": basis.note} if basis.note else {}),
        "data": desk.data,
        "account": basis.account,
        "feed": desk.settings.feed,
        "as_of": iso(int(at)),
        "age_s": None if basis.newest is None else max(0, int(at) - basis.newest),
        "session": str(phase(basis.instrument, at) if basis.instrument else stock_phase(at)),
    }
