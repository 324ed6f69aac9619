"""The one exception tree. `protocol/dialects.py` turns it into each contract's wire form.

OpenbellError
├── InputError                what the caller sent is wrong; sending it again will not help
│   ├── InvalidSymbol         the text is no symbol
│   ├── InvalidTimeframe      not one of the names this server accepts
│   ├── InvalidParameter      any other bad argument
│   └── BadBars               a file or feed offered bars that cannot be true
├── UnknownSymbol             a symbol, but neither watched, stored nor known to the feed
├── DataError                 the question is fine, the data is not there
│   ├── InsufficientData      some bars, not enough
│   ├── NoData                no closed bars at all
│   ├── StaleData             the newest bar is too old to be called current
│   ├── FeedUnavailable       the feed fails and nothing is stored
│   ├── NoSuchSeries          the feed has no such series for this instrument
│   ├── NotFinite             a result is too large or too small for a number
│   └── OutOfTime             the answer took longer than the call may
├── StoreError                the bar store cannot do what was asked
│   ├── StoreTimeout          it did not answer in time
│   ├── CorruptFile           a file failed its checks and was set aside
│   └── SourceConflict        bars of another source are in the way
├── LeaseError
│   ├── LeaseHeld             another process holds it
│   └── LeaseLost             it was ours and has passed to another
├── Refused                   allowed by nobody here: read-only, no --trade, missing scope
│   ├── Unauthorized          the account is another's (trading.accounts)
│   ├── RiskRefused           the risk gate says no
│   │   └── CannotPay         the account has not the money
│   └── SettingsError         the settings contradict each other or cannot be read
├── OrderError
│   ├── DuplicateOrder        the same again within seconds, or another order under a used id
│   ├── NoSuchOrder           nobody's, or another's
│   └── TooManyOrders         faster than the desk lets anybody trade
├── NoSuchAlert               no alert or subscription of the caller has this id
├── AccountNotFound           (trading.accounts)
└── BrokerError               what stands behind the broker's port (trading.broker)

Every message says what is wrong and, where there is one, what to do next. `details` holds the same facts as values.
"""

from __future__ import annotations

from typing import Any


class OpenbellError(Exception):
    """Root of everything that Openbell raises on purpose."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = details


class InputError(OpenbellError):
    """What the caller sent is wrong."""


class InvalidSymbol(InputError):
    """The text cannot be read as one symbol."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        super().__init__(f"Invalid symbol {shown!r}: {reason}", symbol=shown)


class InvalidTimeframe(InputError):
    """The name is not one that this server accepts."""

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
    """Bars that cannot be true; `details` counts them by reason."""


class UnknownSymbol(OpenbellError):
    """A well-formed symbol that is neither watched, stored nor known to the feed."""

    def __init__(self, symbol: str, hint: str = "") -> None:
        super().__init__(f"Unknown symbol {symbol}{': ' + hint if hint else ''}", symbol=symbol)


class DataError(OpenbellError):
    """The question is fine, the data is not there."""


class InsufficientData(DataError):
    """There are bars, but fewer than the calculation needs."""

    def __init__(self, symbol: str, available: int, needed: int) -> None:
        super().__init__(
            f"Insufficient data for {symbol}: {available} closed bars, {needed} needed",
            symbol=symbol,
            bars_available=available,
            bars_needed=needed,
        )
        self.available = available
        self.needed = needed


class NoData(DataError):
    """There are no closed bars of this kind."""


class StaleData(DataError):
    """The newest bar is too old to be called current."""


class NotFinite(DataError):
    """A result is no finite number: the prices or volumes it is made of are too large or too small."""


class OutOfTime(DataError):
    """The answer took longer than a call may."""


class FeedUnavailable(DataError):
    """The feed did not answer and the store cannot stand in for it."""


class NoSuchSeries(DataError):
    """The feed has no such series for this instrument, now or later; `hint` says where there is one."""

    def __init__(self, feed: str, kind: str, symbol: str, hint: str) -> None:
        super().__init__(f"The feed {feed} has no {kind} for {symbol}: {hint}", feed=feed, kind=kind, symbol=symbol)


class StoreError(OpenbellError):
    """The bar store cannot do what was asked."""


class StoreTimeout(StoreError):
    """The store did not answer in time."""


class CorruptFile(StoreError):
    """A file failed its checks."""


class SourceConflict(StoreError):
    """Bars of another source stand where these would go."""


class LeaseError(OpenbellError):
    """About the right to be the one that writes."""


class LeaseHeld(LeaseError):
    """Another process holds the lease."""


class LeaseLost(LeaseError):
    """The lease was ours and has passed to another process."""


class Refused(OpenbellError):
    """Not allowed with these settings or scopes."""


class SettingsError(Refused):
    """The settings cannot be read or contradict each other."""


class RiskRefused(Refused):
    """The risk gate says no; `details` has the rule and the largest size that would pass."""


class CannotPay(RiskRefused):
    """The account has not the money."""


class OrderError(OpenbellError):
    """About one order."""


class DuplicateOrder(OrderError):
    """The same order again within seconds, or another one under an id that is used."""


class NoSuchOrder(OrderError):
    """No order of the caller has this id."""


class NoSuchAlert(OpenbellError):
    """No alert or subscription of the caller has this id."""


class TooManyOrders(OrderError):
    """Faster than the desk lets anybody trade."""
