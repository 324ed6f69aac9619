"""Checks every verdict of a ledger: judges again with the account's state in the ledger and the prices of that time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from openbell.desk.orders.gate import NO_DATA
from openbell.trading import amounts, risk
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.halt import Halt
from openbell.trading.ledger import LedgerEntry
from openbell.trading.orders import EXPOSED, Order, OrderState, Side
from openbell.trading.risk import Proposal, Situation
from openbell.trading.rows import from_row
from tests.desk.trading.market import DAY, STALE_AFTER, Outage, Script
from tests.desk.trading.rematching import SET_BACK
from tests.desk.trading.seats import LIMITS, Judgement


class Rejudging:
    """Judges the orders of a ledger again."""

    def __init__(
        self,
        ledger: list[LedgerEntry],
        script: Script,
        judgements: dict[str, Judgement],
        outages: list[Outage],
        *,
        on_paper: bool,
    ) -> None:
        self._ledger = ledger
        self._script = script
        self._judgements = judgements
        self._outages = outages
        self._on_paper = on_paper
        self._orders: dict[str, Order] = {}
        self._fills: list[Fill] = []
        self._cash: dict[str, Decimal] = {}
        self._books: dict[str, Book] = {}
        self._halted: Halt | None = None

    def violations(self) -> Iterator[str]:
        judged: tuple[LedgerEntry, dict[str, Any]] | None = None
        for entry in self._ledger:
            body = json.loads(entry.body)
            if entry.kind == "account":
                self._cash[body["name"]] = Decimal(body["cash"])
                self._books[body["name"]] = Book(Decimal(body["cash"]))
            elif entry.kind == "switch":
                self._halted = None if body["reason"] is None else Halt(body["reason"])
            elif entry.kind == "fill":
                fill = from_row(Fill, body)
                self._fills.append(fill)
                self._books[fill.account] = self._books[fill.account].after(fill)
            elif entry.kind == "verdict":
                judged = (entry, body)
            elif entry.kind == "order":
                order = from_row(Order, body)
                if judged and order.id == judged[1]["order_id"]:
                    yield from self._again(judged[0], order, judged[1])
                    judged = None
                elif order.id not in self._orders and not order.role.exit:
                    yield f"{order.id} was written without a verdict"
                self._orders[order.id] = order
        if judged:
            yield f"the verdict {judged[0].key} has no order"

    def _again(self, entry: LedgerEntry, order: Order, body: dict[str, Any]) -> Iterator[str]:
        judgement, book = self._judgements[order.id], self._books[order.account]
        sheet = judgement.sheet
        waiting = tuple(each for each in self._orders.values() if not each.final and each.account == order.account)
        needed = {order.symbol} | set(book.positions) | {each.symbol for each in waiting}
        yield from self._prices(entry, judgement, needed)
        values = {symbol: price.value for symbol, price in sheet.current.items()}
        stale = self._doubt(judgement, book, order.symbol, waiting)
        for symbol in needed - set(values):
            values[symbol] = self._script.close(symbol, entry.at)  # only reducing orders pass: the price has no effect
        situation = Situation(
            book, values, waiting, self._worth(judgement, order.account), self._halted, stale, self._on_paper
        )
        price = order.limit_price or order.stop_price
        proposal = Proposal(order.symbol, order.side, order.quantity, price, order.limit_price is not None)
        verdict = risk.judge(proposal, situation, LIMITS)
        if NO_DATA in {verdict.rule, body["rule"]}:
            yield f"{order.id} was kept although there was no price to judge it by"
            return
        if verdict.valid != body["valid"] or amounts.text(verdict.opening) != body["opening"]:
            yield f"{order.id} was judged {body['valid']} ({body['rule']}), and the ledger says {verdict}"
        if (order.state is OrderState.REJECTED) == verdict.valid:
            yield f"{order.id} is {order.state} after a verdict of {verdict.valid}"
        if verdict.valid and verdict.opening:
            yield from _by_hand(order, verdict.opening, situation)

    def _prices(self, entry: LedgerEntry, judgement: Judgement, needed: set[str]) -> Iterator[str]:
        """Every price was the latest one at some time between request and verdict."""
        start, end = min(judgement.since, entry.at) - SET_BACK, max(judgement.since, entry.at) + SET_BACK
        for symbol in sorted(needed & set(judgement.sheet.current)):
            price = judgement.sheet.current[symbol]
            missing = [each.begin for each in self._outages if each.symbol == symbol and each.begin <= end]
            since = 0.0 if price.in_doubt else min([start, *missing])
            if price.value not in self._script.closes(symbol, since, end):
                yield f"{entry.key} was judged with a {symbol} of {price.value}, which was not its price"
            if price.stale is None and price.end < start - STALE_AFTER - SET_BACK:
                yield f"{entry.key} was judged with a {symbol} of {price.end}, which is stale"
        for symbol in sorted(needed - set(judgement.sheet.current)):
            if not any(each.symbol == symbol for each in self._outages):
                yield f"{entry.key} was judged without a price of {symbol}"
        if judgement.sheet.midnight not in {each // DAY * DAY for each in (start, judgement.since, entry.at, end)}:
            yield f"{entry.key} was judged by the day of {judgement.sheet.midnight}"

    @staticmethod
    def _doubt(judgement: Judgement, book: Book, symbol: str, waiting: tuple[Order, ...]) -> str | None:
        prices = judgement.sheet.current
        own = prices.get(symbol)
        if own is None or own.stale:
            return "no price"
        for each in waiting:
            opens = each.state in EXPOSED and not each.role.exit and each.remaining_opening
            if opens and each.symbol not in prices and not (each.side is Side.BUY and each.limit_price is not None):
                return "no price of what is ordered"
        held = [prices.get(each) for each in book.positions]
        return "no price of what is held" if any(each is None or each.in_doubt for each in held) else None

    def _worth(self, judgement: Judgement, account: str) -> Decimal | None:
        """Returns the account's equity when the day began; None if it is not known."""
        day, held, cash = judgement.sheet.midnight, dict[str, Decimal](), self._cash[account]
        with amounts.exact():
            for fill in self._fills:
                if fill.account == account and (fill.at <= day if fill.bar is not None else fill.at < day):
                    cash += fill.cash
                    held[fill.symbol] = held.get(fill.symbol, ZERO) + fill.signed
            missing = {each.symbol for each in self._outages}
            opening = judgement.sheet.at_midnight
            prices = {s: opening.get(s) if s in missing else self._script.close(s, day) for s, q in held.items() if q}
            if None in prices.values():
                return None
            return cash + sum((held[symbol] * price for symbol, price in prices.items() if price is not None), ZERO)


def _by_hand(order: Order, opening: Decimal, situation: Situation) -> Iterator[str]:
    """An independent check of the limits."""
    values = situation.prices
    with amounts.exact():
        equity = situation.book.cash + sum(p.quantity * values[p.symbol] for p in situation.book.positions.values())
        taken, here = ZERO, ZERO
        for each in [each for each in situation.orders if each.state in EXPOSED and not each.role.exit]:
            worth = each.remaining_opening * _at_worst(each, values[each.symbol])
            taken, here = taken + worth, here + (worth if each.symbol == order.symbol else ZERO)
        for held in situation.book.positions.values():
            left = abs(held.quantity)
            if held.symbol == order.symbol:
                left -= risk.reducible(order.side, order.symbol, situation)
                here += left * values[held.symbol]
            taken += left * values[held.symbol]
        worth = opening * _at_worst(order, values[order.symbol])
        if taken + worth > equity * LIMITS.leverage:
            yield f"{order.id} makes {taken + worth} of an equity of {equity}"
        if worth > LIMITS.order_share * equity or here + worth > LIMITS.symbol_share * equity:
            yield f"{order.id} of {worth} is too large for {equity}"
        start = situation.day_start
        if start is None or start - equity >= LIMITS.daily_loss * start:
            yield f"{order.id} opens, and the account went from {start} to {equity} today"
        if situation.halted:
            yield f"{order.id} opens while trading is halted"


def _at_worst(order: Order, last: Decimal) -> Decimal:
    price = order.limit_price or order.stop_price
    if price is None:
        return last
    return price if order.side is Side.BUY and order.limit_price is not None else max(price, last)
