"""A request for an order, with the checks that need no account and no price, and errors with a code of their own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from typing import Any

from openbell.market.errors import InputError, InvalidParameter
from openbell.market.instruments import STABLE, AssetClass, Instrument
from openbell.trading import amounts
from openbell.trading.orders import Force, OrderKind, Side

LONGEST_KEY = 128
_KEY = re.compile(r"[!-~]{1,128}")
CURRENCY = "USD"
_LEAST_PRICE = Decimal("1e-8")
"""Prices of fills have 12 decimals: below this one, too few digits would be left of them."""


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """An order as requested."""

    instrument: Instrument
    side: Side
    kind: OrderKind
    quantity: Decimal
    time_in_force: Force = Force.GTC
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    take_profit: Decimal | None = None
    stop_loss: Decimal | None = None
    client_order_id: str | None = None
    spelling: str = ""
    """The symbol as the caller wrote it; results repeat it. It is not part of the digest."""
    reduce_only: bool = False
    """Whether the order may only reduce a position."""

    @property
    def bracket(self) -> bool:
        """Whether the order has exits."""
        return self.take_profit is not None or self.stop_loss is not None

    def digest(self) -> str:
        """Returns a hash that is equal for equal orders, however their numbers are written.

        `reduce_only` is included only if true, so that digests stored before it existed remain valid.
        """
        parts = (
            self.instrument.symbol,
            self.side,
            self.kind,
            self.time_in_force,
            *(
                None if value is None else amounts.text(value)
                for value in (self.quantity, self.limit_price, self.stop_price, self.take_profit, self.stop_loss)
            ),
            *(("reduce_only",) if self.reduce_only else ()),
        )
        return sha256(json.dumps(parts).encode()).hexdigest()


def request(
    instrument: Instrument,
    side: Side,
    kind: OrderKind,
    quantity: Any,
    *,
    time_in_force: Force = Force.GTC,
    price: Any = None,
    stop_price: Any = None,
    take_profit: Any = None,
    stop_loss: Any = None,
    client_order_id: str | None = None,
    spelling: str = "",
    reduce_only: bool = False,
) -> OrderRequest:
    """Returns a checked request. Raises `InvalidParameter`, whose message says what to change."""
    refuse_foreign_money(instrument)

    def priced(name: str, value: Any) -> Decimal | None:
        return None if value is None else amounts.price(value, name)

    asked = OrderRequest(
        instrument,
        side,
        kind,
        amounts.quantity(quantity),
        time_in_force,
        priced("price", price),
        priced("stop_price", stop_price),
        priced("take_profit", take_profit),
        priced("stop_loss", stop_loss),
        client_order_id,
        spelling or instrument.symbol,
        reduce_only,
    )
    _check_key(client_order_id)
    _check_prices(asked)
    _check_bracket(asked)
    return asked


def refuse_foreign_money(instrument: Instrument) -> None:
    """Raise `InvalidParameter` unless the instrument is priced in dollars or in a dollar stablecoin, valued at 1 USD."""
    if instrument.asset_class is AssetClass.STOCK:
        return
    quote = instrument.symbol.rpartition("/")[2]
    if quote != CURRENCY and quote not in STABLE:
        raise InvalidParameter(
            f"{instrument} is priced in {quote} and the account is in {CURRENCY}: trade it against {CURRENCY} or a "
            "stable coin of it",
            symbol=instrument.symbol,
        )


def _check_key(key: str | None) -> None:
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidParameter(f"client_order_id must be 1 to {LONGEST_KEY} printable characters without spaces")


def _check_prices(asked: OrderRequest) -> None:
    wants_limit = asked.kind in {OrderKind.LIMIT, OrderKind.STOP_LIMIT}
    wants_stop = asked.kind in {OrderKind.STOP, OrderKind.STOP_LIMIT}
    for name, value, wanted in (
        ("price", asked.limit_price, wants_limit),
        ("stop_price", asked.stop_price, wants_stop),
    ):
        if wanted and value is None:
            raise InvalidParameter(f"{name} is required for a {asked.kind} order")
        if not wanted and value is not None:
            raise InvalidParameter(f"a {asked.kind} order takes no {name}")


def _check_bracket(asked: OrderRequest) -> None:
    """Raise `InvalidParameter` unless the stop-loss, the entry's price and the take-profit are in this order."""
    if asked.bracket and asked.reduce_only:
        raise InvalidParameter("a reduce_only order opens nothing: leave out take_profit and stop_loss")
    entries: list[Decimal | None] = [price for price in (asked.limit_price, asked.stop_price) if price is not None]
    for entry in entries or [None]:
        rising = [("stop_loss", asked.stop_loss), ("the entry's price", entry), ("take_profit", asked.take_profit)]
        known = [(name, value) for name, value in rising if value is not None]
        for (low_name, low), (high_name, high) in pairwise(known if asked.side is Side.BUY else known[::-1]):
            if low >= high:
                raise InvalidParameter(f"for a {asked.side} order {low_name} must be below {high_name}")


def too_small(instrument: Instrument, price: Decimal) -> str | None:
    """Returns why nothing of an instrument can be traded at a price: fills would round it; None if it can."""
    if price >= _LEAST_PRICE:
        return None
    least = amounts.text(_LEAST_PRICE)
    return f"the price of {instrument} is {amounts.text(price)}: nothing below {least} can be traded here"


class InvalidSide(InputError):
    """The side is neither buy nor sell."""


class InvalidSize(InputError):
    """The size is not a positive number."""


class InvalidAction(InputError):
    """The action is not buy, sell or hold."""


class InvalidConfidence(InputError):
    """The confidence is not between 0 and 1."""


class ReasoningTooLong(InputError):
    """The reasoning is longer than a journal entry may be."""
