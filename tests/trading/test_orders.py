"""Orders: the allowed changes of state, and fills."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.trading import amounts, orders
from openbell.trading.alerts import Alert, AlertState, Type
from openbell.trading.fills import Fill
from openbell.trading.ledger import canonical
from openbell.trading.orders import (
    EXPOSED,
    FINAL,
    MOVES,
    RESTING,
    Force,
    ImpossibleMove,
    Order,
    OrderKind,
    OrderState,
    Role,
    Side,
)
from openbell.trading.rows import from_row, to_row
from tests.trading.samples import D, look, order


def documented() -> dict[OrderState, set[OrderState]]:
    """Returns the table in the module's docstring."""
    found = re.findall(r"^(\w+) +\w.*\n +→ (.*)$", orders.__doc__ or "", re.MULTILINE)
    return {OrderState(state): {OrderState(each) for each in after.split(", ")} for state, after in found}


def test_the_table_names_every_state_that_is_not_final() -> None:
    assert set(documented()) == set(OrderState) - FINAL
    assert set(MOVES) == set(OrderState)


@pytest.mark.parametrize("before", OrderState)
def test_a_state_may_become_what_the_table_says_and_nothing_else(before: OrderState) -> None:
    known = replace(order(), state=before)
    for after in OrderState:
        allowed = after is before or after in documented().get(before, set())
        try:
            moved = known.to(after, 7.0, "why", broker_id="b")
        except ImpossibleMove as refused:
            assert not allowed, after
            assert refused.message == f"order a is {before} and cannot become {after}"
            assert refused.details == {"order_id": "a"}, after
        else:
            assert allowed, after
            assert moved == replace(known, state=after, updated_at=7.0, reason="why", broker_id="b"), after


def test_final_states_have_no_way_out() -> None:
    assert {OrderState.FILLED, OrderState.CANCELLED, OrderState.EXPIRED, OrderState.REJECTED} == FINAL
    assert all(not MOVES[state] for state in FINAL)
    assert all(MOVES[state] for state in set(OrderState) - FINAL)
    assert [state for state in OrderState if replace(order(), state=state).final] == [
        s for s in OrderState if s in FINAL
    ]


def test_every_state_that_is_not_final_can_come_to_an_end() -> None:
    assert all(MOVES[state] & FINAL for state in set(OrderState) - FINAL)


def test_resting_orders_are_exposed_and_an_unknown_order_is_never_pending_again() -> None:
    assert RESTING < EXPOSED
    assert not EXPOSED & FINAL
    assert {OrderState.PENDING, OrderState.UNKNOWN} < EXPOSED
    assert not any(OrderState.PENDING in after for after in MOVES.values())
    assert not any(OrderState.HELD in after for after in MOVES.values())


def test_an_earlier_reason_stays_until_there_is_another() -> None:
    known = order().to(OrderState.CANCELLING, 1.0, "asked for")
    assert known.to(OrderState.CANCELLED, 2.0).reason == "asked for"
    assert known.to(OrderState.CANCELLED, 2.0, "done").reason == "done"


def test_a_doubt_that_is_over_is_no_reason_any_more() -> None:
    unknown = order(state=OrderState.UNKNOWN, reason="no answer; do not send it again")
    lost = unknown.to(OrderState.LOST, 2.0)
    assert lost.reason == "no answer; do not send it again"
    assert [each.to(OrderState.OPEN, 3.0).reason for each in (unknown, lost)] == [None, None]
    assert unknown.to(OrderState.REJECTED, 2.0, "refused").reason == "refused"


def test_fills_add_up_until_an_order_is_done() -> None:
    part = order(quantity="10").with_fill(D(4), D("100.5"), D("0.4"), 1.0)
    assert look(part, "state filled remaining paid fees") == (OrderState.PARTIALLY_FILLED, 4, 6, 402, D("0.4"))
    assert part.updated_at == 1.0
    done = part.with_fill(D(6), D("99"), D("0.6"), 2.0)
    assert look(done, "state filled remaining fees") == (OrderState.FILLED, 10, 0, 1)
    assert done.average_price == D("99.6")
    assert order().average_price is None


@pytest.mark.parametrize(
    "state", [OrderState.PENDING, OrderState.OPEN, OrderState.PARTIALLY_FILLED, OrderState.UNKNOWN, OrderState.LOST]
)
def test_the_first_fill_makes_an_order_partially_filled(state: OrderState) -> None:
    assert order(state=state).with_fill(D(1), D(1), D(0), 1.0).state is OrderState.PARTIALLY_FILLED
    assert order(state=state).with_fill(D(10), D(1), D(0), 1.0).state is OrderState.FILLED


def test_a_cancelling_order_stays_so_until_it_is_filled() -> None:
    part = order(state=OrderState.CANCELLING).with_fill(D(3), D(1), D(0), 1.0)
    assert part.state is OrderState.CANCELLING
    assert part.with_fill(D(7), D(1), D(0), 2.0).state is OrderState.FILLED


@pytest.mark.parametrize("quantity", ["10.00000001", "11"])
def test_no_order_is_filled_beyond_its_quantity(quantity: str) -> None:
    with pytest.raises(ImpossibleMove, match="beyond its quantity"):
        order().with_fill(D(quantity), D(1), D(0), 1.0)
    with pytest.raises(ImpossibleMove, match="beyond its quantity"):
        order().with_fill(D(10), D(1), D(0), 1.0).with_fill(D("0.00000001"), D(1), D(0), 1.0)


@pytest.mark.parametrize("quantity", ["0", "-1"])
def test_a_fill_of_zero_or_less_is_impossible(quantity: str) -> None:
    with pytest.raises(ImpossibleMove, match="a fill of nothing"):
        order(filled="5").with_fill(D(quantity), D(1), D(0), 1.0)


@pytest.mark.parametrize("state", sorted(FINAL | {OrderState.HELD}))
def test_final_and_held_orders_take_no_fill(state: OrderState) -> None:
    with pytest.raises(ImpossibleMove):
        order(state=state).with_fill(D(1), D(1), D(0), 1.0)


def test_fills_reduce_before_they_open() -> None:
    flip = order(quantity="10", opening="4")
    assert [replace(flip, filled=D(done)).remaining_opening for done in (0, 6, 8, 10)] == [4, 4, 2, 0]


def test_sides_and_roles() -> None:
    assert (Side.BUY.sign, Side.SELL.sign, Side.BUY.other, Side.SELL.other) == (1, -1, Side.SELL, Side.BUY)
    assert [role for role in Role if role.exit] == [Role.TAKE_PROFIT, Role.STOP_LOSS]


@given(st.lists(st.integers(1, 10**23), min_size=1, max_size=8), st.data())
@settings(deadline=None, max_examples=100)
def test_the_sums_of_any_fills_are_exact(parts: list[int], data: st.DataObject) -> None:
    total = sum(parts)
    prices = data.draw(st.lists(st.integers(1, 10**27), min_size=len(parts), max_size=len(parts)))
    known = order(quantity=D(total).scaleb(-8))
    for part, price in zip(parts, prices, strict=True):
        assert known.state is not OrderState.FILLED
        known = known.with_fill(D(part).scaleb(-8), D(price).scaleb(-12), D("1e-8"), 1.0)
    assert known.state is OrderState.FILLED
    assert int(known.paid.scaleb(20, context=amounts._EXACT)) == sum(
        part * price for part, price in zip(parts, prices, strict=True)
    )
    assert known.fees == D("1e-8") * len(parts)


# Rows

text = st.text(max_size=12)
maybe_text = st.none() | text
amount = st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**20), max_value=10**20)
maybe = st.none() | amount
time = st.floats(0, 4e9) | st.integers(0, 4 * 10**9).map(float)
an_order = st.builds(
    Order,
    id=text,
    account=text,
    principal=text,
    symbol=text,
    side=st.sampled_from(Side),
    kind=st.sampled_from(OrderKind),
    quantity=amount,
    opening=amount,
    time_in_force=st.sampled_from(Force),
    placed_at=time,
    limit_price=maybe,
    stop_price=maybe,
    take_profit=maybe,
    stop_loss=maybe,
    role=st.sampled_from(Role),
    parent=maybe_text,
    client_order_id=maybe_text,
    expires_at=st.none() | time,
    state=st.sampled_from(OrderState),
    triggered=st.booleans(),
    filled=amount,
    paid=amount,
    fees=amount,
    broker_id=maybe_text,
    reason=maybe_text,
    updated_at=time,
)
a_fill = st.builds(
    Fill,
    id=text,
    order_id=text,
    account=text,
    principal=text,
    symbol=text,
    side=st.sampled_from(Side),
    quantity=amount,
    price=amount,
    fee=amount,
    at=time,
    bar=st.none() | st.integers(0, 4 * 10**9),
    bar_hash=maybe_text,
)
an_alert = st.builds(
    Alert,
    id=text,
    principal=text,
    symbol=text,
    spelling=text,
    interval=text,
    type=st.sampled_from(Type),
    set_at=time,
    threshold=maybe,
    indicator=maybe_text,
    signal=maybe_text,
    state=st.sampled_from(AlertState),
    fired_at=st.none() | time,
    updated_at=time,
)


@given(an_order | a_fill | an_alert)
@settings(deadline=None, max_examples=150)
def test_a_value_survives_being_a_row_of_json(value: Order | Fill | Alert) -> None:
    row = to_row(value)
    back = from_row(type(value), json.loads(canonical(row)))
    assert back == value
    assert list(row) == [each.name for each in fields(value)]
    for each in fields(value):
        assert type(getattr(back, each.name)) is type(getattr(value, each.name))
    assert canonical(to_row(back)) == canonical(row)


def test_a_row_is_plain_and_amounts_are_text() -> None:
    row = to_row(order(quantity="1E+1", limit_price="0.50"))
    assert (row["quantity"], row["limit_price"], row["stop_price"]) == ("10", "0.5", None)
    assert {type(each) for each in row.values()} <= {str, float, bool, type(None)}


def test_a_whole_time_is_written_as_it_will_be_read_back() -> None:
    placed = replace(order(), placed_at=60, expires_at=120)
    row = to_row(placed)
    assert canonical(row) == canonical(to_row(from_row(Order, row)))
    assert (repr(row["placed_at"]), repr(row["expires_at"])) == ("60.0", "120.0")


def test_a_database_may_give_numbers_for_times_and_switches() -> None:
    row = to_row(order()) | {"placed_at": 5, "triggered": 1}
    back = from_row(Order, row)
    assert (type(back.placed_at), back.triggered) == (float, True)
    assert isinstance(back.quantity, Decimal)
