"""Alert subscriptions over real pipes, on a market that runs fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openbell.feeds.sim.bars import minute_bars
from openbell.market.instruments import parse
from openbell.signals.series import SignalSeries
from tests.client import Client

AS_OF = "2026-01-07T15:00:00Z"
BEGIN = 1_767_798_000
ALL = [
    "macd_cross",
    "ema_support_lost",
    "ema_reclaim",
    "rsi_overbought",
    "rsi_oversold",
    "bb_breakout_up",
    "bb_breakout_dn",
]
CONDITIONS = [{"type": name} for name in ALL]


def expected(symbol: str, until: int) -> dict[int, list[str]]:
    """What becomes true at each bar, by the end of the bar, from the simulator itself."""
    bars = minute_bars(parse(symbol), 7, BEGIN - 5 * 86400, until)
    series = SignalSeries(bars, bars)
    found: dict[int, list[str]] = {}
    for index in range(40, len(bars)):
        before, now = series.crossings(index - 1).true(), series.crossings(index).true()
        became = [name for name in now if name not in before and name != "bb_squeeze"]
        if became:
            found[int(bars.time[index]) + 60] = became
    return found


def epoch(text: str) -> int:
    from datetime import datetime

    return int(datetime.fromisoformat(text).timestamp())


def alerts(client: Client, count: int) -> list[dict[str, Any]]:
    found = [message["params"] for message in client.aside if message.get("method") == "signals.alert"]
    while len(found) < count:
        message = client.receive()
        assert message["method"] == "signals.alert"
        assert "id" not in message
        found.append(message["params"])
    return found


@pytest.mark.parametrize("as_method", [False, True])
def test_alerts_come_for_exactly_what_becomes_true(tmp_path: Path, as_method: bool) -> None:
    asked = {"symbol": "BTCUSD", "timeframe": "1min", "conditions": CONDITIONS, "throttle_ms": 0}
    with Client(tmp_path, AS_OF=AS_OF, REPLAY_SPEED="1800") as client:
        client.initialize()
        if as_method:
            subscription = client.request("subscribe_alerts", asked)["result"]
        else:
            subscription = client.call("subscribe_alerts", asked)["result"]["structuredContent"]
        assert subscription["subscription_id"] == "sub_1"
        assert subscription["symbol"] == "BTC/USD"
        got = alerts(client, 12)
    first, until = epoch(got[0]["timestamp"]), epoch(got[-1]["timestamp"])
    truth = expected("BTC/USD", until)
    # Bars that close together while the server works are told in one alert, each name once.
    told = [name for alert in got for name in alert["triggered"]]
    became = [name for end, names in truth.items() if BEGIN <= end <= until for name in names]
    assert set(told) <= set(became)
    assert {name for end, names in truth.items() if first <= end <= until for name in names} <= set(told)
    assert len(told) <= len(became)
    for alert in got:
        assert set(alert) == {"subscription_id", "symbol", "timeframe", "triggered", "snapshot", "timestamp", "_meta"}
        assert set(alert["snapshot"]) == {"price", "macd", "signal", "rsi"}
        assert epoch(alert["timestamp"]) in truth


def test_alerts_honour_the_throttle_and_lose_nothing(tmp_path: Path) -> None:
    asked = {"symbol": "BTC/USD", "timeframe": "1min", "conditions": CONDITIONS, "throttle_ms": 1500}
    with Client(tmp_path, AS_OF=AS_OF, REPLAY_SPEED="1800") as client:
        client.initialize()
        client.call("subscribe_alerts", asked)
        got = alerts(client, 3)
    # 1.5 s apart at 1,800 × is 45 minutes of this market.
    times = [epoch(alert["timestamp"]) for alert in got]
    truth = expected("BTC/USD", times[-1])
    for earlier, later, alert in zip(times, times[1:], got[1:], strict=False):
        became = {name for end, names in truth.items() if earlier < end <= later for name in names}
        assert became <= set(alert["triggered"])
    assert times[2] - times[0] > 2 * 1500 * 1.8 * 0.5


def test_an_ended_subscription_is_silent(tmp_path: Path) -> None:
    asked = {"symbol": "BTC/USD", "timeframe": "1min", "conditions": CONDITIONS}
    with Client(tmp_path, AS_OF=AS_OF, REPLAY_SPEED="1800") as client:
        client.initialize()
        handle = client.call("subscribe_alerts", asked)["result"]["structuredContent"]["subscription_id"]
        alerts(client, 1)
        ended = client.request("unsubscribe_alerts", {"subscription_id": handle})["result"]
        assert ended["unsubscribed"] is True
        client.aside.clear()
        client.call("get_signals", {"symbol": "ETH/USD", "timeframe": "1hour"})
        again = client.request("unsubscribe_alerts", {"subscription_id": handle})
        assert again["error"]["code"] == -32602
        assert client.aside == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"conditions": []}, -32602),
        ({"conditions": [{"type": "nonsense"}]}, -32602),
        ({"conditions": [{"type": "rsi_oversold", "direction": "up"}]}, -32602),
        ({"conditions": [{"type": "macd_cross", "direction": "sideways"}]}, -32602),
        ({"throttle_ms": -1}, -32602),
        ({"throttle_ms": 1.5}, -32602),
        ({"symbol": "???"}, -32002),
        ({"symbol": "ZZZZ"}, -32002),
        ({"timeframe": "2min"}, -32003),
    ],
)
def test_bad_subscriptions_are_refused(tmp_path: Path, change: dict[str, Any], code: int) -> None:
    asked = {"symbol": "BTC/USD", "timeframe": "1min", "conditions": CONDITIONS, **change}
    with Client(tmp_path, AS_OF=AS_OF) as client:
        client.initialize()
        assert client.call("subscribe_alerts", asked)["error"]["code"] == code
        assert client.request("subscribe_alerts", asked)["error"]["code"] == code


def test_subscriptions_are_bounded(tmp_path: Path) -> None:
    asked = {"symbol": "BTC/USD", "timeframe": "1min", "conditions": CONDITIONS}
    with Client(tmp_path, AS_OF=AS_OF) as client:
        client.initialize()
        codes = [client.call("subscribe_alerts", asked).get("error", {}).get("code") for _ in range(101)]
        assert codes == [None] * 100 + [-32602]
