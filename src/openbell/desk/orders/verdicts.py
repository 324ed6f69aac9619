"""Verdicts of the risk gate as errors and as rows of the ledger."""

from __future__ import annotations

from typing import Any

from openbell.desk.orders.prices import Price
from openbell.market.errors import InsufficientFunds, RiskRefused
from openbell.trading import amounts
from openbell.trading.orders import Order
from openbell.trading.risk import Verdict


def reason_of(verdict: Verdict) -> str:
    """Returns why a verdict refuses, and the largest size that would pass; the same words for every tool."""
    if verdict.valid or not verdict.max_size:
        return verdict.reason
    limited = f" ({verdict.largest_by})" if verdict.largest_by else ""
    return f"{verdict.reason}; at most {amounts.text(verdict.max_size)} would pass{limited}"


def details_of(verdict: Verdict) -> dict[str, str]:
    """Returns the rule that refused; if it has a limit, also the value that the order would reach, and the setting."""
    found = verdict.objection
    parts = {
        "rule": verdict.rule,
        "value": found and found.value,
        "limit": found and found.limit,
        "setting": found and found.setting,
    }
    return {name: part for name, part in parts.items() if part}


def refusal(verdict: Verdict, order_id: str | None = None) -> RiskRefused:
    """Returns the error for a verdict that is not valid."""
    kind = InsufficientFunds if verdict.rule == "balance" else RiskRefused
    details: dict[str, Any] = {**details_of(verdict), "max_size": amounts.number(verdict.max_size)}
    if order_id is not None:
        details["order_id"] = order_id
    return kind(f"refused by the risk gate: {reason_of(verdict)}", **details)


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
