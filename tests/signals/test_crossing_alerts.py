"""Alerts on crossings: the conditions, and a state machine that reports every trigger exactly once."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openbell.market.errors import InvalidParameter
from openbell.signals.crossing_alerts import CONDITIONS, CROSSINGS, CrossingAlert, Watch, watched_crossings
from openbell.signals.crossings import SignalCrossings, SignalSnapshot
from tests.signals.test_crossings import CONTRACT, calm, snapshot


def crossings(*names: str) -> SignalCrossings:
    return SignalCrossings(*(name in names for name in CONTRACT))


def bar(time: int) -> SignalSnapshot:
    return snapshot(calm, time)


class TestConditions:
    @pytest.mark.parametrize("name", CONTRACT)
    def test_each_crossing_can_be_watched(self, name: str) -> None:
        assert watched_crossings([(name, None)]) == (name,)

    @pytest.mark.parametrize(
        ("direction", "expected"),
        [
            ("up", ("macd_cross_up",)),
            ("down", ("macd_cross_dn",)),
            (None, ("macd_cross_up", "macd_cross_dn")),
        ],
    )
    def test_a_macd_cross_without_direction_means_both(self, direction: str | None, expected: tuple[str, ...]) -> None:
        assert watched_crossings([("macd_cross", direction)]) == expected

    def test_the_contracts_example(self) -> None:
        assert watched_crossings([("macd_cross", "up"), ("rsi_oversold", None)]) == ("macd_cross_up", "rsi_oversold")

    def test_duplicates_are_removed_and_the_order_is_the_contracts(self) -> None:
        asked = [("bb_squeeze", None), ("macd_cross", None), ("macd_cross_up", None), ("bb_squeeze", None)]

        assert watched_crossings(asked) == ("macd_cross_up", "macd_cross_dn", "bb_squeeze")

    def test_all_conditions_can_be_watched_together(self) -> None:
        assert watched_crossings((name, None) for name in CONDITIONS) == tuple(CONTRACT) == CROSSINGS

    @pytest.mark.parametrize(
        ("conditions", "message"),
        [
            ([], "at least one"),
            ([("nonsense", None)], "unknown condition 'nonsense'"),
            ([("", None)], "unknown condition"),
            ([("MACD_CROSS_UP", None)], "unknown condition"),
            ([("table", None)], "unknown condition"),
            ([("rsi_oversold", None), ("x", None)], "unknown condition 'x'"),
            ([("macd_cross", "sideways")], "direction must be up or down, not 'sideways'"),
            ([("macd_cross", "")], "direction must be up or down"),
            ([("macd_cross", "UP")], "direction must be up or down"),
            ([("rsi_oversold", "up")], "rsi_oversold takes no direction"),
            ([("macd_cross_up", "up")], "macd_cross_up takes no direction"),
        ],
    )
    def test_anything_else_is_refused(self, conditions: list[tuple[str, str | None]], message: str) -> None:
        with pytest.raises(InvalidParameter, match=message):
            watched_crossings(conditions)

    def test_an_unknown_condition_is_answered_with_all_known_ones(self) -> None:
        with pytest.raises(InvalidParameter) as refused:
            watched_crossings([("x", None)])
        assert all(name in refused.value.message for name in (*CONTRACT, "macd_cross"))


class TestWatch:
    def test_fires_when_a_condition_becomes_true_and_not_while_it_stays_so(self) -> None:
        watch = Watch(("rsi_oversold",), 0.0)
        watch.begin(0, crossings())
        alerts = []
        for time, now in enumerate([crossings("rsi_oversold")] * 3 + [crossings(), crossings("rsi_oversold")], 1):
            watch.observe(bar(time), now)
            alerts.append(watch.take(float(time)))

        assert [alert and alert.triggered for alert in alerts] == [
            ("rsi_oversold",),
            None,
            None,
            None,
            ("rsi_oversold",),
        ]

    def test_crossings_that_are_true_at_the_beginning_do_not_trigger(self) -> None:
        watch = Watch(("bb_squeeze", "rsi_oversold"), 0.0)
        watch.begin(5, crossings("bb_squeeze"))

        watch.observe(bar(6), crossings("bb_squeeze", "rsi_oversold"))

        assert watch.take(0.0) == CrossingAlert(("rsi_oversold",), bar(6))

    def test_other_crossings_do_not_trigger(self) -> None:
        watch = Watch(("rsi_oversold",), 0.0)
        watch.begin(0, crossings())

        watch.observe(bar(1), crossings("rsi_overbought", "bb_squeeze"))

        assert watch.due() == inf
        assert watch.take(1e9) is None

    def test_triggers_inside_the_throttle_are_merged(self) -> None:
        watch = Watch(("macd_cross_up", "rsi_oversold", "bb_breakout_up"), 5.0)
        watch.begin(0, crossings())
        watch.observe(bar(1), crossings("macd_cross_up"))
        assert watch.take(100.0) == CrossingAlert(("macd_cross_up",), bar(1))

        watch.observe(bar(2), crossings("rsi_oversold"))
        assert watch.take(101.0) is None
        watch.observe(bar(3), crossings("bb_breakout_up"))
        assert watch.due() == 105.0
        assert watch.take(104.999) is None

        assert watch.take(105.0) == CrossingAlert(("rsi_oversold", "bb_breakout_up"), bar(3))
        assert watch.take(1000.0) is None

    def test_a_crossing_that_triggers_twice_inside_the_throttle_is_reported_once(self) -> None:
        watch = Watch(("rsi_oversold",), 5.0)
        watch.begin(0, crossings())
        for time, now in enumerate([crossings("rsi_oversold"), crossings(), crossings("rsi_oversold")], 1):
            watch.observe(bar(time), now)

        assert watch.take(0.0) == CrossingAlert(("rsi_oversold",), bar(3))
        assert watch.take(100.0) is None

    def test_the_first_alert_is_not_throttled(self) -> None:
        watch = Watch(("rsi_oversold",), 3600.0)
        watch.begin(0, crossings())

        watch.observe(bar(1), crossings("rsi_oversold"))

        assert watch.due() == -inf
        assert watch.take(0.0) is not None

    def test_seen_is_the_latest_processed_bar(self) -> None:
        watch = Watch(("rsi_oversold",), 0.0)
        assert watch.seen == -1
        watch.begin(60, crossings())
        assert watch.seen == 60

        watch.observe(bar(120), crossings())

        assert watch.seen == 120


@dataclass
class Model:
    """The expected behaviour of a watch, as a set of the crossings that triggered and are not yet reported."""

    wanted: set[str]
    throttle: float
    before: set[str]
    waiting: set[str] = field(default_factory=set)
    at: int = -1
    sent_at: float = -inf

    def observe(self, time: int, now: set[str]) -> None:
        became = (now - self.before) & self.wanted
        self.before = now
        if became:
            self.waiting |= became
            self.at = time

    def take(self, now: float) -> tuple[set[str], int] | None:
        if not self.waiting or now - self.sent_at < self.throttle:
            return None
        alert = (self.waiting, self.at)
        self.waiting, self.sent_at = set(), now
        return alert


names = st.sampled_from(CONTRACT[:4])
states = st.sets(names)
steps = st.lists(st.tuples(st.one_of(st.none(), states), st.integers(0, 4)), max_size=40)


@given(st.sets(names, min_size=1), st.integers(0, 6), states, steps)
@settings(deadline=None, max_examples=400)
@example({"macd_cross_up"}, 3, set(), [({"macd_cross_up"}, 0), (set(), 0), ({"macd_cross_up"}, 0), (None, 3)])
def test_reports_every_trigger_exactly_once(
    wanted: set[str], throttle: int, first: set[str], script: list[tuple[set[str] | None, int]]
) -> None:
    """Each step closes a bar or none, advances the time, and takes the alert that is due."""
    watch = Watch(watched_crossings((name, None) for name in wanted), float(throttle))
    watch.begin(0, crossings(*first))
    model = Model(wanted, float(throttle), set(first))
    now = 0.0
    open_events: set[str] = set()
    sent: list[float] = []
    before = set(first)

    for time, (state, passes) in enumerate([*script, (None, throttle + 1)], 1):
        if state is not None:
            watch.observe(bar(time), crossings(*state))
            model.observe(time, state)
            open_events |= (state - before) & wanted
            before = set(state)
        now += passes
        due = watch.due()

        alert = watch.take(now)
        expected = model.take(now)

        assert (alert is not None) == (expected is not None) == (now >= due)
        if alert is None or expected is None:
            continue
        assert (set(alert.triggered), alert.snapshot.time) == expected
        assert len(set(alert.triggered)) == len(alert.triggered)
        assert set(alert.triggered) == open_events
        open_events = set()
        assert not sent or now - sent[-1] >= throttle
        sent.append(now)

    assert open_events == set()
    assert watch.due() == inf
