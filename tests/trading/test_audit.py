"""The audit: an honest ledger passes, and forged entries are found even if their hashes are correct."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from openbell.trading.accounts import Account
from openbell.trading.audit import LedgerAudit, audit
from openbell.trading.book import replay
from openbell.trading.evidence import outside_its_bar
from openbell.trading.fills import Fill
from openbell.trading.ledger import GENESIS, LedgerEntry, check, seal
from openbell.trading.orders import MOVES, OrderState
from openbell.trading.rows import from_row, to_row
from tests.trading.ledgers import FORGERIES, Line, honest, of, sealed, verdict, written
from tests.trading.samples import BUY, SELL, D, fill, order


def reasons(entries: list[LedgerEntry]) -> list[str]:
    return [fault.reason for fault in audit(entries)]


def test_an_honest_ledger_passes() -> None:
    assert reasons(sealed(honest())) == []
    assert reasons([]) == []


def test_it_has_some_of_everything() -> None:
    lines = honest()
    assert {line.kind for line in lines} == {"account", "verdict", "order", "fill", "alert", "decision"}
    states = {line.row["state"] for line in lines if line.kind == "order"}
    assert states >= {"open", "held", "pending", "partially_filled", "filled", "cancelled", "rejected"}
    assert len([line for line in lines if line.kind == "fill" and line.row["order_id"] == "b"]) > 1


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found_though_its_hashes_are_correct(name: str) -> None:
    forge, said = FORGERIES[name]
    lines = honest()
    forge(lines)
    entries = sealed(lines)
    assert list(check(entries)) == []
    found = list(audit(entries))
    assert any(said in fault.reason for fault in found), found
    assert all(type(fault.seq) is int and 0 < fault.seq <= len(entries) for fault in found)


@pytest.mark.parametrize("before", OrderState)
def test_only_allowed_changes_of_state_pass(before: OrderState) -> None:
    one = replace(order("o", BUY, "10", state=OrderState.PENDING), account="live")
    lines = [*written(Account("live", "alpaca", "me", D(1), None, 1.0)), verdict(one), *written(one)]
    begun = len(reasons(sealed([*lines, *written(replace(one, state=before))])))
    for after in OrderState:
        found = reasons(sealed([*lines, *written(replace(one, state=before), replace(one, state=after))]))[begun:]
        allowed = after is before or after in MOVES[before]
        if before is OrderState.FILLED:  # a filled order is not kept
            assert found == ["order o was written again after its end"], after
        else:
            assert (f"order o was {before} and cannot become {after}" in found) == (not allowed), after


def test_the_books_are_computed_from_the_fills() -> None:
    walk = LedgerAudit()
    lines = honest()
    for entry in sealed(lines):
        walk.take(entry)
    assert walk.finish() == []
    for name, cash in (("paper", D(100_000)), ("live", D(5000))):
        fills = [from_row(Fill, line.row) for line in lines if line.kind == "fill" and line.row["account"] == name]
        assert walk.books[name] == replay(cash, fills)
        assert walk.books[name].count > 1


@pytest.mark.parametrize(
    "body", ["", "null", "[]", "{}", "7", '{"id":[]}', "[" * 100_000, '{"id":"a","state":{}}', None, b"x"]
)
@pytest.mark.parametrize("kind", ["account", "verdict", "order", "fill", "alert"])
def test_an_unreadable_body_is_a_fault_and_raises_nothing(kind: str, body: Any) -> None:
    entry = replace(seal(1, 1.0, kind, "a", "{}", GENESIS), body=body)
    assert reasons([entry])


def test_an_entry_under_another_key_is_a_fault() -> None:
    entries = sealed(honest())
    at = next(number for number, entry in enumerate(entries) if entry.kind == "fill")
    entries[at] = replace(entries[at], key="other")
    assert "has the key of fill other and the content of another" in reasons(entries)[0]


@pytest.mark.parametrize("value", [None, "1", 2.5, [], b"x"])
def test_a_number_or_kind_of_the_wrong_type_raises_nothing(value: Any) -> None:
    entries = sealed(honest())
    changed: dict[str, Any] = {"seq": value}
    assert reasons([replace(entries[0], **changed), *entries[1:]]) == []
    changed = {"kind": value}
    LedgerAudit().take(replace(entries[0], **changed))


def test_ended_orders_take_no_memory() -> None:
    """Memory must not grow with the number of entries."""
    walk = LedgerAudit()
    lines = written(Account("paper", "paper", "me", D(1), None, 1.0))
    for number in range(50):
        one = order(f"o{number}")
        lines += [verdict(one), *written(one, one.to(OrderState.CANCELLED, 5.0))]
    for entry in sealed(lines):
        assert walk.take(entry) == []
    assert not walk._orders
    assert not walk._verdicts


# Prices that a bar allows


@pytest.mark.parametrize(
    ("side", "price", "allowed"),
    [
        (BUY, "90", True),
        (BUY, "89.99", False),
        (BUY, "110", True),
        (BUY, "165", True),
        (BUY, "165.01", False),
        (SELL, "110", True),
        (SELL, "110.01", False),
        (SELL, "45", True),
        (SELL, "44.99", False),
        (SELL, "90", True),
    ],
)
def test_slippage_makes_a_price_worse_and_by_half_at_most(side: Any, price: str, allowed: bool) -> None:
    said = outside_its_bar(fill(side, "1", price), 90.0, 110.0)
    assert (said is None) == allowed
    if said:
        assert said == f"fill a-1 at {price} cannot be: its bar went from 90.0 to 110.0"


def test_a_limit_of_more_digits_than_a_bar_has_is_allowed() -> None:
    price = Decimal("1234567.123456789012")
    assert outside_its_bar(fill(BUY, "1", price), float(price), float(price)) is None
    assert outside_its_bar(fill(SELL, "1", price), float(price), float(price)) is None


def test_consistent_entries_after_the_head_are_found_only_by_the_head() -> None:
    """The audit cannot find entries that the desk could have written itself."""
    lines = honest()
    one = order("forged", BUY, "1")
    bar = of(lines, "fill", next(line.key for line in lines if line.kind == "fill")).row
    part = replace(from_row(Fill, bar), id="forged-1", order_id="forged", quantity=D(1))
    done = replace(one.with_fill(D(1), part.price, part.fee, part.at), opening=D(0))
    lines += [verdict(one), Line("order", to_row(one)), Line("fill", to_row(part)), Line("order", to_row(done))]
    assert reasons(sealed(lines)) == []
