"""The call: who asks, with which scopes, of which desk, and what the answer rests on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openbell.desk.desk import Desk
from openbell.market.clock import iso
from openbell.market.instruments import Instrument
from openbell.market.sessions import phase, stock_phase

if TYPE_CHECKING:
    from openbell.desk.trading.desk import TradingDesk
    from openbell.desk.trading.inbox import Inbox, Reader

Afterwards = Callable[[], Awaitable[None]]
Notify = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification to whoever made the call: method and parameters."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a call. Handles, subscriptions and later orders belong to one."""

    subject: str
    scopes: frozenset[str]


TRADE = "trade"
LOCAL_OPERATOR = Principal("local", frozenset({"read", "write", TRADE}))
"""Whoever started a stdio server owns this machine's desk."""


class Connection:
    """One client's connection: what belongs to it whichever of its calls asks."""

    def __init__(self) -> None:
        self._readers: dict[str, Reader] = {}

    def reader(self, inbox: Inbox, principal: str) -> Reader:
        """Its place in a principal's inbox."""
        if principal not in self._readers:
            self._readers[principal] = inbox.reader(principal)
        return self._readers[principal]


async def _nowhere(_method: str, _params: dict[str, Any]) -> None:
    """For calls that are answered once, from the command line."""


@dataclass(slots=True)
class Call:
    """Handed to every tool's handler."""

    desk: Desk
    principal: Principal = LOCAL_OPERATOR
    notify: Notify = _nowhere
    connection: Connection = field(default_factory=Connection)
    newest: int | None = None
    """The end of the newest bar that the answer rests on; a handler says it with `rests_on`."""
    instrument: Instrument | None = None
    account: str = "none"
    """Whose money the answer is about: `none`, `paper` or `live`; a handler says it with `on_account`."""
    source: str | None = None
    """What the data was read from, where the contract wants it said."""
    later: Callable[[Afterwards], None] | None = None
    """Takes work for when the answer has left; None: whoever made the call has it as soon as it is there."""
    afterwards: list[Afterwards] = field(default_factory=list)
    """What is to be done once the answer has left, such as counting as told what it tells."""
    note: str | None = None
    """Why something in the answer is in doubt."""
    _clock: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._clock = self.desk.clock.epoch()

    def about(self, instrument: Instrument) -> None:
        """Remember the instrument that the answer is about, whose session the truth header tells."""
        self.instrument = instrument

    def rests_on(self, instrument: Instrument, end: int | None) -> None:
        """Remember what data the answer rests on."""
        self.instrument, self.newest = instrument, end

    def priced(self, ends: list[int], note: str | None) -> None:
        """Remember when the bars of some prices ended, of which the oldest counts, and what is in doubt about them."""
        self.newest, self.note = min(ends, default=self.newest), note or self.note

    def on_account(self) -> TradingDesk:
        """The trading desk; the answer is about its account and its records."""
        trading = self.desk.trading
        self.account, self.source = self.desk.account, trading.records.source
        if self.desk.settings.read_only:
            self.note = "read-only: orders are shown as they were last recorded, and may have filled since"
        return trading

    def inbox(self) -> Reader:
        """The caller's inbox, as this connection reads it."""
        return self.connection.reader(self.on_account().inbox, self.principal.subject)

    def truth(self) -> dict[str, Any]:
        """What every result says about itself: made-up or real, whose account, from which feed, how old."""
        now = self._clock
        scenario = self.desk.settings.acts_in
        return {
            **({"scenario": scenario} if scenario else {}),
            **({"note": self.note} if self.note else {}),
            "data": self.desk.data,
            "account": self.account,
            "feed": self.desk.settings.feed,
            "as_of": iso(int(now)),
            "age_s": None if self.newest is None else max(0, int(now) - self.newest),
            "session": str(phase(self.instrument, now) if self.instrument else stock_phase(now)),
        }
