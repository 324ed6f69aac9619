"""Verdicts of the risk gate as errors and as rows of the ledger."""

from __future__ import annotations

from typing import Any

from openbell.desk.trading.prices import Price
from openbell.market.errors import InsufficientFunds, RiskRefused
from openbell.trading import amounts
from openbell.trading.orders import Order
from openbell.trading.risk import Verdict


def refusal(verdict: Verdict, order_id: str | None = None) -> RiskRefused:
    """Returns the error for a verdict that is not valid."""
    kind = InsufficientFunds if verdict.rule == "balance" else RiskRefused
    details: dict[str, Any] = {"rule": verdict.rule, "max_size": amounts.number(verdict.max_size)}
    if order_id is not None:
        details["order_id"] = order_id
    largest = f"; at most {amounts.text(verdict.max_size)} would pass" if verdict.max_size else ""
    return kind(f"refused by the risk gate: {verdict.reason}{largest}", **details)


def verdict_row(order: Order, verdict: Verdict, price: Price | None, consensus: int | None) -> dict[str, Any]:
    """Returns what the ledger keeps of a verdict: the bar that it rests on, and the decision.

    `consensus` is the entry of the consensus of strategies that was recorded last; a verdict without any does not name it.
    """
    known = {} if consensus is None else {"consensus": consensus}
    return {
        **known,
        "order_id": order.id,
        "account": order.account,
        "symbol": order.symbol,
        "side": order.side.value,
        "quantity": amounts.text(order.quantity),
        "price": amounts.text(price.value) if price else None,
        "bar": price.bar if price else None,
        "bar_end": price.end if price else None,
        "valid": verdict.valid,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "max_size": amounts.text(verdict.max_size),
        "risk_score": amounts.text(verdict.risk_score),
        "opening": amounts.text(verdict.opening),
    }
