"""The exception tree of the whole project. `protocol/dialects.py` turns it into each contract's wire form.

Classes that another room defines carry the name of that room in brackets.

OpenbellError
├── InputError                         the request is wrong; sending it again does not help
│   ├── InvalidSymbol                  the text is not one unambiguous symbol
│   │   └── NotCovered                 a symbol of a class that the tool does not cover
│   ├── InvalidTimeframe               the name is not one of those that this server accepts
│   ├── InvalidParameter               any other bad argument
│   │   └── UnclearTimeframe [desk]    the rows of a file are too few to show their timeframe
│   ├── BadBars                        bars of a file or feed with impossible values
│   ├── NoInstrument [charts]          a sentence names no instrument
│   ├── InvalidSide [trading]          the side is neither buy nor sell
│   ├── InvalidSize [trading]          the size is not a positive number
│   ├── InvalidAction [trading]        the action is neither buy, sell nor hold
│   ├── InvalidConfidence [trading]    the confidence is not between 0 and 1
│   ├── SpecRefused [strategies]       a strategy spec has problems; all of them are listed
│   │   ├── InvalidName [strategies]        the first one concerns its name
│   │   ├── InvalidIndicators [strategies]  the first one concerns its indicators
│   │   ├── InvalidConditions [strategies]  the first one concerns its conditions
│   │   └── InvalidSchema [strategies]      the first one concerns another part
│   ├── DuplicateName [strategies]     a spec of this name exists
│   ├── InvalidMetric [strategies]     a ranking has no such metric
│   ├── InvalidSource [strategies]     specs have no such source
│   ├── InvalidStatus [strategies]     implementations have no such status
│   ├── InvalidPeriod [strategies]     there is no such period
│   ├── InvalidDateRange [strategies]  a date is not a date, or the start is not before the end
│   └── ReasoningTooLong [trading]     the reasoning is longer than a journal entry may be
├── UnknownSymbol                      a valid symbol that is neither watched, stored nor listed by the feed
├── DataError                          the data for a valid request is missing or unusable
│   ├── InsufficientData               fewer closed bars than the calculation needs
│   ├── NoData                         no closed bars at all
│   ├── StaleData                      the latest bar is too old to be the current price
│   ├── FeedUnavailable                the feed failed and the store does not have the bars
│   ├── NoSuchSeries                   the feed does not have this series for this instrument
│   ├── NotFinite                      a result is not a finite number
│   ├── NoStrategies [strategies]      nothing was found for the symbol
│   ├── NoSignal [strategies]          the strategy has no signal for the symbol
│   ├── NoActiveStrategies [strategies]  no strategy of the symbol is validated or deployed
│   ├── NoPerformance [strategies]     the strategy has not traded in the period
│   └── CallTimeout                    the call exceeded its timeout
│       └── BacktestTimeout [backtest]  a backtest took longer than its time limit
├── StoreError                         the bar store or the records database failed
│   ├── StoreUnreachable               no connection to the store can be opened
│   ├── StoreTimeout                   the store did not respond within its timeout
│   ├── CorruptFile                    a file failed its checks
│   ├── SourceConflict                 the store already has bars of another source for this span
│   ├── LedgerBroken [stores]          the ledger does not match its recorded head
│   ├── OtherVersion [stores]          another version has changed the tables meanwhile
│   └── NotAllowed [stores]            InfluxDB knows the user, who lacks a right
├── LeaseError                         a lease, which allows one process at a time to write
│   ├── LeaseHeld                      another process holds the lease
│   └── LeaseLost                      this process held the lease, and another process took it over
├── Refused                            the settings or the caller's scopes do not allow it
│   ├── QuotaExceeded                  the caller keeps as much as it may
│   ├── SettingsError                  the settings are invalid or contradict each other
│   ├── Unauthorized [trading]         the account has another owner, or the token is wrong
│   ├── OutboundRefused                a URL that others have chosen may not be requested
│   └── RiskRefused                    a risk rule refused the order
│       └── InsufficientFunds          the account does not have enough money
├── OrderError                         an order cannot be placed or cancelled
│   ├── DuplicateOrder                 the same order within seconds, or a client_order_id that is already used
│   ├── NoSuchOrder                    the caller has no order with this id
│   └── TooManyOrders                  more orders per second than the desk accepts
├── UnknownStrategy [strategies]       no implementation and no spec has this id
├── UnknownSpec [strategies]           no spec has this id
├── BacktesterUnavailable [backtest]   the backtester cannot be reached, is busy, or ended in the middle of a run
├── OutboundFailed                     a request to a URL that others have chosen got no complete answer
├── NoSuchAlert                        the caller has no alert with this id
├── NoSuchWebhook                      the caller has no webhook, or no dead delivery, with this id
├── AccountNotFound [trading]          no account has this name
├── ApiFault [desk]                    the quotes API does not answer a request with quotes
├── UpstreamUnreachable [desk]         a quotes API did not respond, or its response ended too early
├── UpstreamTooLarge [desk]            the response of a quotes API is larger than its contract allows
├── ArcheFailed [desk]                 a quotes API refused a request or failed; carries the manifest's error object
├── VendorError [desk]                 the vendor of chart images did not do what was asked
│   ├── KeyRefused [desk]              it does not accept the API key
│   ├── VendorRefused [desk]           it refused the request, in its own words
│   │   └── PlanRefused [desk]         the plan of the key does not allow the chart
│   ├── ConfigRefused [desk]           it does not accept the chart config; `problems` has the fields
│   ├── RateLimited [desk]             more requests than the plan allows; `retry_after` has the seconds to wait
│   ├── VendorFailed [desk]            it failed, or sent something that cannot be used
│   └── VendorUnreachable [desk]       it did not respond, or its response ended too early
├── WorkersFailed [desk]               the processes or machines that run a sweep failed
├── WorkerDied [desk]                  the process of a calculation was killed, and so was the one that replaced it
├── ImpossibleMove [trading]           an order cannot change from its state to the requested one
└── BrokerError [trading]              a call to the broker failed
    ├── BrokerRefused [trading]        the broker refused the request and did nothing
    ├── BrokerUnavailable [trading]    the broker could not be reached; nothing was sent
    └── OutcomeUnknown [trading]       the request was sent and no reply arrived: it may or may not have been executed

Every message states what is wrong and, if possible, what to do next. `details` holds the same facts as values.
"""

from __future__ import annotations

from typing import Any

from openbell.market.foreign_text import without_invisible


class OpenbellError(Exception):
    """Base class of all errors that Openbell raises on purpose."""

    def __init__(self, message: str, **details: Any) -> None:
        # It may quote a vendor, a file or a caller.
        self.message = without_invisible(message)
        self.details: dict[str, Any] = {
            name: without_invisible(value) if isinstance(value, str) else value for name, value in details.items()
        }
        super().__init__(self.message)


class InputError(OpenbellError):
    """The request is wrong; sending it again does not help."""


class InvalidSymbol(InputError):
    """The text is not one unambiguous symbol."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        super().__init__(f"Invalid symbol {shown!r}: {reason}", symbol=shown)


class NotCovered(InvalidSymbol):
    """A symbol of a class of instruments that a tool does not cover: none of the same class is suggested instead."""


class InvalidTimeframe(InputError):
    """The name is not one of the timeframes that this server accepts."""

    def __init__(self, text: str, accepted: tuple[str, ...], hint: str = "") -> None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        super().__init__(
            f"Invalid timeframe {shown!r}: use one of {', '.join(accepted)}{hint}",
            timeframe=shown,
            accepted=list(accepted),
        )


class InvalidParameter(InputError):
    """An argument is missing, of the wrong type or out of range."""


class BadBars(InputError):
    """Bars with impossible values; `details` has the reasons."""


class UnknownSymbol(OpenbellError):
    """The symbol is valid, but is neither watched, stored nor listed by the feed."""

    def __init__(self, symbol: str, hint: str = "") -> None:
        super().__init__(f"Unknown symbol {symbol}{': ' + hint if hint else ''}", symbol=symbol)


class DataError(OpenbellError):
    """The data for a valid request is missing or unusable."""


class InsufficientData(DataError):
    """There are fewer closed bars than the calculation needs."""

    def __init__(self, symbol: str, available: int, needed: int, hint: str = "") -> None:
        super().__init__(
            f"Insufficient data for {symbol}: {available} closed bars, {needed} needed{hint}",
            symbol=symbol,
            bars_available=available,
            bars_needed=needed,
        )
        self.available = available
        self.needed = needed


class NoData(DataError):
    """There are no closed bars of this instrument and timeframe."""


class StaleData(DataError):
    """The latest bar is too old to be the current price."""


class NotFinite(DataError):
    """A result is not a finite number, because prices or volumes are too large or too small to calculate with."""


class CallTimeout(DataError):
    """The call exceeded its timeout."""


class FeedUnavailable(DataError):
    """The feed failed and the store does not have the bars."""


class NoSuchSeries(DataError):
    """The feed does not have this series for this instrument, and a retry does not help; `hint` names an alternative."""

    def __init__(self, feed: str, kind: str, symbol: str, hint: str) -> None:
        super().__init__(f"The feed {feed} has no {kind} for {symbol}: {hint}", feed=feed, kind=kind, symbol=symbol)


class StoreError(OpenbellError):
    """The bar store or the records database failed."""


class StoreUnreachable(StoreError):
    """No connection to the store can be opened."""


class StoreTimeout(StoreError):
    """The store did not respond within its timeout."""


class CorruptFile(StoreError):
    """A file failed its checks."""


class SourceConflict(StoreError):
    """The store already has bars of another source for this span."""


class LeaseError(OpenbellError):
    """A lease, which allows one process at a time to write, cannot be used."""


class LeaseHeld(LeaseError):
    """Another process holds the lease."""


class LeaseLost(LeaseError):
    """This process held the lease, and another process took it over."""


class Refused(OpenbellError):
    """The settings or the caller's scopes do not allow it."""


class QuotaExceeded(Refused):
    """The caller keeps as much as it may."""


class SettingsError(Refused):
    """The settings are invalid or contradict each other."""


class OutboundRefused(Refused):
    """A URL that others have chosen may not be requested: its form, its port or its addresses are not allowed."""


class RiskRefused(Refused):
    """A risk rule refused the order; `details` has the rule and the largest size that would pass."""


class InsufficientFunds(RiskRefused):
    """The account does not have enough money."""


class OrderError(OpenbellError):
    """An order cannot be placed or cancelled."""


class DuplicateOrder(OrderError):
    """The same order was placed seconds ago, or the client_order_id is used by another order."""


class NoSuchOrder(OrderError):
    """The caller has no order with this id."""


class TooManyOrders(OrderError):
    """The caller placed more orders per second than the desk accepts."""


class OutboundFailed(OpenbellError):
    """A request to a URL that others have chosen got no complete answer; `details` has `status` if that much arrived."""


class NoSuchAlert(OpenbellError):
    """The caller has no alert with this id."""


class NoSuchWebhook(OpenbellError):
    """The caller has no webhook, or no dead delivery, with this id."""
