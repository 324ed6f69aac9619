"""An account on a chart: each fill at the bar that contains it, each level with its label, beside the newest candles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.charts.account.overlay import (
    MOST_LEVELS,
    AccountLevel,
    AccountOverlay,
    Purpose,
    SymbolRecords,
    alert_level,
    missing_overlay,
    order_level,
    overlay_of,
    place,
)
from openbell.charts.account.paint import marks_of, painter_of
from openbell.charts.compose import compose
from openbell.charts.look import Look
from openbell.charts.scene import Band, Label, Scene
from openbell.charts.themes import THEMES
from openbell.market.bars import Bars
from openbell.market.timeframes import Timeframe
from openbell.trading.alerts import Alert, Type
from openbell.trading.book import Position, replay
from openbell.trading.fills import Fill
from openbell.trading.orders import Force, Order, OrderKind, OrderState, Role, Side
from tests.desk.scripted import BTC
from tests.market.walks import STOCK, at

START = at("2026-01-05T00:00Z")
COUNT = 60


def bars(timeframe: Timeframe = Timeframe.H1, count: int = COUNT, start: int = START) -> Bars:
    close = np.array([100.0 + number % 7 for number in range(count)])
    times = start + timeframe.seconds * np.arange(count, dtype=np.int64)
    return Bars(BTC, timeframe, times, close - 0.5, close + 1, close - 1, close, np.full(count, 10.0))


def fill(minute: int, signed: float | str, price: float | str, **change: Any) -> Fill:
    """A fill on paper of the minute that opens so many minutes after the first bar."""
    quantity, opened = Decimal(str(signed)), START + 60 * minute
    side = Side.BUY if quantity > 0 else Side.SELL
    made = Fill(
        f"f{minute}", "o", "paper", "local", "BTC/USD", side, abs(quantity), Decimal(str(price)), Decimal(0), 0.0
    )
    return replace(made, at=opened + 60.0, bar=opened, **change)


def order(kind: OrderKind, price: str, *, side: Side = Side.SELL, **change: Any) -> Order:
    made = Order("id", "paper", "local", "BTC/USD", side, kind, Decimal(2), Decimal(2), Force.GTC, 0.0)
    given = {
        "limit_price" if kind is OrderKind.LIMIT else "stop_price": Decimal(price),
        "state": OrderState.OPEN,
        **change,
    }
    return replace(made, **given)


def alert(price: str, kind: Type = Type.PRICE_ABOVE) -> Alert:
    return Alert(f"alert{price}", "local", "BTC/USD", "BTC/USD", "1m", kind, 0.0, Decimal(price))


def scene(overlay: AccountOverlay, look: Look | None = None) -> Scene:
    look = look or Look()
    marks = marks_of(overlay, THEMES[look.theme])
    shown = overlay.bars
    return compose(shown, [], look, "BTC/USD · 1h", painter=painter_of(overlay), marks=marks, notes=[overlay.legend])


def texts(made: Scene) -> list[Label]:
    return [item for layer in made.layers for item in layer.items if isinstance(item, Label)]


class TestExecutions:
    def test_a_fill_is_at_the_bar_that_contains_its_minute(self) -> None:
        # The last minute of a bar becomes known when the next bar has begun, and belongs to the first.
        fills = [fill(59, 1, 100), fill(60, 2, 101), fill(61, 1, 104)]
        placed = place(fills, bars())
        assert [(each.index, each.quantity, each.price) for each in placed.executions] == [
            (0, Decimal(1), Decimal(100)),
            (1, Decimal(3), Decimal(102)),
        ]
        # A broker's fill has no bar, but a time of its own.
        assert place([replace(fill(0, 1, 100), at=START + 7199.5, bar=None)], bars()).executions[0].index == 1

    def test_daily_bars_of_stocks_have_the_fills_of_their_session(self) -> None:
        opens = np.array([at("2026-01-06T14:30Z"), at("2026-01-07T14:30Z")])
        one = np.ones(2)
        daily = Bars(STOCK, Timeframe.D1, opens, one, one, one, one, one)
        fills = [
            replace(fill(0, 1, 1), bar=at(time))
            for time in ("2026-01-06T20:59Z", "2026-01-06T23:00Z", "2026-01-07T14:30Z")
        ]
        placed = place(fills, daily)
        assert [each.index for each in placed.executions] == [0, 1]
        assert (placed.earlier, placed.hidden) == (0, 1), "after hours belong to no daily bar"

    def test_fills_outside_the_bars_are_counted_and_those_of_the_bar_under_way_are_shown(self) -> None:
        placed = place([fill(-1, 1, 100), fill(COUNT * 60, 1, 100)], bars())
        assert (placed.earlier, [each.index for each in placed.executions]) == (1, [None])

    def test_entries_exits_and_reversals(self) -> None:
        fills = [fill(0, 2, 100), fill(60, 1, 106), fill(120, -1, 110), fill(180, -4, 90), fill(240, 2, 80)]
        found = place(fills, bars()).executions
        assert [each.effect.value for each in found] == ["entry", "entry", "exit", "reversal", "exit"]
        assert [each.profit for each in found] == [0, 0, Decimal(8), Decimal(-24), Decimal(20)]

    @given(
        st.lists(
            st.tuples(st.integers(-300, COUNT * 60 + 300), st.integers(-50, 50).filter(bool), st.integers(1, 10**6)),
            max_size=40,
        ),
        st.sampled_from([Timeframe.M15, Timeframe.H1, Timeframe.H4]),
    )
    def test_every_fill_is_counted_once(self, drawn: list[tuple[int, int, int]], timeframe: Timeframe) -> None:
        fills = [fill(*each) for each in sorted(drawn)]
        shown = bars(timeframe)
        placed = place(fills, shown)
        assert sum(each.count for each in placed.executions) + placed.earlier + placed.hidden == len(fills)
        expected: Counter[tuple[int | None, Side]] = Counter()
        for each in fills:
            index = (each.bar - START) // timeframe.seconds  # type: ignore[operator]
            if index >= 0:
                expected[index if index < len(shown) else None, each.side] += each.quantity  # type: ignore[assignment]
        assert {(each.index, each.side): each.quantity for each in placed.executions} == expected
        if not placed.earlier:
            assert sum((each.profit for each in placed.executions), Decimal(0)) == replay(Decimal(0), fills).realised


class TestLevels:
    @pytest.mark.parametrize(
        ("made", "expected"),
        [
            (order(OrderKind.STOP, "95", role=Role.STOP_LOSS, opening=Decimal(0)), (Purpose.STOP, "Stop · sell 2")),
            (
                order(OrderKind.LIMIT, "105", role=Role.TAKE_PROFIT, opening=Decimal(0)),
                (Purpose.TARGET, "Target · sell 2"),
            ),
            (order(OrderKind.STOP, "95", opening=Decimal(0)), (Purpose.STOP, "Stop · sell 2")),
            (order(OrderKind.LIMIT, "99", side=Side.BUY), (Purpose.ORDER, "Buy limit 2")),
            (order(OrderKind.STOP, "95", state=OrderState.UNKNOWN), (Purpose.ORDER, "Sell stop 2 (unknown)")),
            (
                order(OrderKind.STOP, "95", role=Role.STOP_LOSS, state=OrderState.HELD),
                (Purpose.STOP, "Stop · sell 2 after entry"),
            ),
        ],
    )
    def test_what_an_order_is_for(self, made: Order, expected: tuple[Purpose, str]) -> None:
        level = order_level(made)
        assert level is not None
        assert (level.purpose, level.text) == expected

    def test_a_stop_limit_order_is_at_its_stop_until_that_is_reached(self) -> None:
        made = replace(order(OrderKind.STOP, "95"), kind=OrderKind.STOP_LIMIT, limit_price=Decimal(94))
        found = [order_level(replace(made, triggered=triggered)) for triggered in (False, True)]
        assert [level.price for level in found if level] == [95, 94]

    def test_what_has_no_price_has_no_line_and_is_counted(self) -> None:
        market = replace(order(OrderKind.STOP, "1"), kind=OrderKind.MARKET, stop_price=None)
        signal = Alert("a", "local", "BTC/USD", "BTC/USD", "4h", Type.INDICATOR_SIGNAL, 0.0, None, "rsi", "oversold")
        assert order_level(market) is None
        assert alert_level(signal) is None
        overlay = overlay_of(SymbolRecords((), None, (market,), (signal,)), "paper", bars())
        assert overlay.not_drawn == ("2 orders or alerts without a price",)

    def test_the_nearest_alerts_are_drawn_after_all_orders(self) -> None:
        orders = tuple(replace(order(OrderKind.LIMIT, "50"), id=f"o{n}") for n in range(3))
        alerts = tuple(alert(f"{103 + n}") for n in range(40))
        overlay = overlay_of(SymbolRecords((), None, orders, alerts), "paper", bars())
        assert len(overlay.levels) == MOST_LEVELS
        assert sorted(level.price for level in overlay.levels) == [50] * 3 + list(range(103, 103 + MOST_LEVELS - 3))
        assert overlay.not_drawn == ("31 orders or alerts further from the last price",)
        payload = overlay.payload()
        assert (len(payload["orders"]), len(payload["alerts"])) == (3, MOST_LEVELS - 3)


FULL = SymbolRecords(
    (fill(60, 2, 101), fill(60 * 59, -1, 104)),
    Position("BTC/USD", Decimal(1), Decimal(101), 0.0),
    (
        order(OrderKind.STOP, "97", role=Role.STOP_LOSS, opening=Decimal(0)),
        order(OrderKind.LIMIT, "99", side=Side.BUY, id="other"),
    ),
    (alert("107"), alert("500")),
)


class TestPictures:
    @pytest.mark.parametrize("look", [Look(), Look(width=400, height=300), Look(theme="light", price_scale="log")])
    def test_labels_are_at_the_left_inside_the_panel_and_do_not_touch(self, look: Look) -> None:
        made = scene(overlay_of(FULL, "paper", bars()), look)
        labels = {label.text: label for label in texts(made)}
        ours = [labels[text] for text in ("Avg · long 1", "Stop · sell 2", "Buy limit 2", "Alert above")]
        far = next(label for text, label in labels.items() if text.startswith("Alert above at "))
        assert far.text.endswith("↑"), "a level outside of the scale is named at the edge"
        rows = sorted(label.y for label in (*ours, far))
        assert all(label.x == ours[0].x < 20 for label in (*ours, far))
        assert min(np.diff(rows)) >= 14
        legend = labels["paper account · 2 fills · 2 orders · 2 alerts"]
        assert legend.y < rows[0]
        assert rows[-1] < look.height - 28

    def test_arrows_point_to_their_bars_and_buys_are_below(self) -> None:
        shown = bars()
        made = scene(overlay_of(replace(FULL, orders=(), alerts=()), "paper", shown))
        plain = compose(shown, [], Look(), "BTC/USD · 1h")
        arrows = [item for layer in made.layers for item in layer.items if isinstance(item, Band)]
        assert not [item for layer in plain.layers for item in layer.items if isinstance(item, Band)]
        sell, buy = arrows  # the newest first
        labels = {label.text: label for label in texts(made)}
        assert labels["Buy 2"].x == pytest.approx(buy.x[1], abs=10)
        assert labels["Buy 2"].y > buy.lower.min()
        assert labels["Sell 1"].y < sell.upper.max()
        slot = (sell.x[1] - buy.x[1]) / 58
        assert buy.x[1] == pytest.approx(1.5 * slot, abs=1)

    def test_a_chart_without_an_account_that_can_be_read_says_why(self) -> None:
        overlay = missing_overlay("paper", bars(), "the records are damaged")
        assert "paper account not shown: the records are damaged" in [label.text for label in texts(scene(overlay))]
        assert overlay.payload() == {"account": "paper", "note": "the records are damaged"}

    def test_an_account_without_trades_says_so(self) -> None:
        overlay = overlay_of(SymbolRecords((), None, (), ()), "paper", bars())
        assert overlay.legend == "paper account · no fills, orders or alerts here"

    def test_more_levels_than_rows_leave_the_nearest_labels(self) -> None:
        levels = tuple(AccountLevel(Purpose.ALERT, f"Alert {n}", Decimal(100 + n)) for n in range(12))
        overlay = replace(overlay_of(SymbolRecords((), None), "paper", bars()), levels=levels)
        made = scene(overlay, Look(width=300, height=200))
        found = [label for label in texts(made) if label.text.startswith("Alert")]
        assert 3 < len(found) < 12
        assert "Alert 3" in [label.text for label in found], "the last close is 103"
        assert min(np.diff(sorted(label.y for label in found))) >= 14.9
