"""Alerts, the inbox and pushes of the chartgen contract."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from openbell.indicators.registry import all_indicators
from openbell.market.clock import iso, parse_time
from openbell.market.timeframes import SHORT
from tests.client import OPENBELL, PATIENCE, Client
from tests.servers.desks import OTHER, Bench, awaited, bench
from tests.waiting import until

COMMAND = [*OPENBELL, "mcp", "chartgen", "--trade"]
T1, T2, T3 = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z", "2026-01-07T20:00:00Z"
METHOD = "notifications/alert_triggered"
PARAMS = {"alert_id", "symbol", "interval", "condition", "value", "triggered_at"}


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


async def alert(desk: Bench, symbol: str = "BTC/USD", interval: str | None = None, **condition: Any) -> dict[str, Any]:
    given = {"symbol": symbol, "condition": condition} | ({"interval": interval} if interval else {})
    made: dict[str, Any] = await desk.chartgen("set_alert", **given)
    return made


async def inbox(desk: Bench, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = await desk.chartgen("get_notifications", **given)
    return found


async def minutes(desk: Bench, symbol: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        await desk.ask("market-data", "get_candles", symbol=symbol, timeframe="1m", limit=count)
    )["items"]
    return found


# Setting


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"symbol": "???", "condition": {"price_above": 1}}, "Invalid symbol"),
        ({"symbol": "ZZZZ", "condition": {"price_above": 1}}, "Unknown symbol ZZZZ"),
        ({"symbol": "'; DROP TABLE alerts; --", "condition": {"price_above": 1}}, "Invalid symbol"),
        ({"symbol": "AAPL", "condition": {}}, "condition must have exactly one of"),
        ({"symbol": "AAPL", "condition": {"price_above": 1, "price_below": 2}}, "condition must have exactly one of"),
        ({"symbol": "AAPL", "condition": {"volume_above": 1}}, "volume_above"),
        ({"symbol": "AAPL", "condition": "price_above"}, "condition"),
        ({"symbol": "AAPL", "condition": {"price_above": 0}}, "price_above must be more than 0"),
        ({"symbol": "AAPL", "condition": {"price_below": -5}}, "price_below must be more than 0"),
        ({"symbol": "AAPL", "condition": {"price_below": "low"}}, "price_below must be a number"),
        ({"symbol": "AAPL", "condition": {"price_below": float("nan")}}, "price_below must be a number"),
        ({"symbol": "AAPL", "condition": {"price_above": True}}, "price_above"),
        (
            {"symbol": "AAPL", "condition": {"indicator_signal": {"indicator": "rsj", "signal": "rsi_oversold"}}},
            "no indicator 'rsj'; did you mean 'rsi'?",
        ),
        (
            {"symbol": "AAPL", "condition": {"indicator_signal": {"indicator": "rsi", "signal": "gold_buy"}}},
            "rsi has no signal 'gold_buy'; it has",
        ),
        (
            {"symbol": "AAPL", "condition": {"indicator_signal": {"indicator": "cipher_b", "signal": "GOLD_BUY"}}},
            "cipher_b has no signal 'GOLD_BUY'; it has",
        ),
        ({"symbol": "AAPL", "condition": {"indicator_signal": {"indicator": "rsi"}}}, "signal is required"),
        (
            {"symbol": "AAPL", "condition": {"price_above": 1}, "interval": "1M"},
            "Invalid timeframe '1M': use one of 1m",
        ),
        ({"symbol": "AAPL", "condition": {"price_above": 1}, "interval": "7m"}, "Invalid timeframe '7m'"),
        ({"symbol": "AAPL", "condition": {"price_above": 1}, "interval": ""}, "Invalid timeframe ''"),
        ({"condition": {"price_above": 1}}, "symbol is required"),
        ({"symbol": "AAPL"}, "condition is required"),
        ({"symbol": "AAPL", "condition": {"price_above": 1}, "repeat": True}, "repeat is not an argument"),
    ],
)
@awaited
async def test_nonsense_is_refused(shared_home: Path, arguments: dict[str, Any], words: str) -> None:
    """In the wild any symbol, indicator and label was accepted."""
    async with bench(shared_home, T1) as desk:
        assert words in await desk.no("set_alert", **arguments)
        assert (await desk.chartgen("list_alerts"))["alerts"] == []


@awaited
async def test_an_alert_is_shown_as_it_was_set_with_the_default_interval_of_its_kind(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        above = await alert(desk, "BTCUSDT", price_above=50000.5)
        below = await alert(desk, "binance:ethusdt", price_below="0.000000000001")
        signal = await alert(desk, "AAPL", indicator_signal={"indicator": "cipher_b", "signal": "gold_buy"})
        assert (above["symbol"], above["interval"], above["condition"]) == (
            "BTCUSDT",
            "1m",
            {"type": "price_above", "threshold": 50000.5},
        )
        assert (below["symbol"], below["condition"]) == (
            "binance:ethusdt",
            {"type": "price_below", "threshold": 1e-12},
        )
        assert (signal["interval"], signal["status"], signal["set_at"]) == ("4h", "active", iso(parse_time(T1)))
        assert signal["condition"] == {"type": "indicator_signal", "indicator": "cipher_b", "signal": "gold_buy"}
        listed = (await desk.chartgen("list_alerts"))["alerts"]
        assert {each["alert_id"]: {name: each[name] for name in above} for each in listed} == {
            each["alert_id"]: each for each in (above, below, signal)
        }


@awaited
async def test_every_interval_and_every_registered_label_can_be_waited_for(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        for interval in SHORT:
            assert (await alert(desk, interval=interval, price_above=1e9))["interval"] == interval
        for indicator in all_indicators().values():
            for label in indicator.labels:
                await alert(desk, indicator_signal={"indicator": indicator.name, "signal": label})


@awaited
async def test_an_alert_is_cancelled_once_and_by_its_owner(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        made = await alert(desk, price_above=1)
        assert "no alert" in await desk.refused("chartgen", "cancel_alert", OTHER, alert_id=made["alert_id"])
        assert (await desk.ask("chartgen", "list_alerts", OTHER))["alerts"] == []
        assert (await desk.chartgen("cancel_alert", alert_id=made["alert_id"]))["status"] == "cancelled"
        assert "is cancelled already" in await desk.no("cancel_alert", alert_id=made["alert_id"])
        for unknown in ("alert_0", "", "\u0000", "' OR 1=1 --"):
            assert "no alert" in await desk.no("cancel_alert", alert_id=unknown)
    async with bench(tmp_path, T2) as desk:
        assert (await inbox(desk))["notifications"] == []


# Firing


@awaited
async def test_a_price_alert_fires_once_on_the_first_bar_that_reaches_it(tmp_path: Path) -> None:
    async with bench(tmp_path, T3) as desk:
        bars = [bar for bar in await minutes(desk, "BTC/USD", 301) if bar["timestamp"] >= "2026-01-07T15:00:00"]
    highest = max(bar["high"] for bar in bars[:200])
    lowest = min(bar["low"] for bar in bars[:200])
    async with bench(tmp_path, T1) as desk:
        above = await alert(desk, "BTCUSD", price_above=highest)
        below = await alert(desk, price_below=lowest)
        already = await alert(desk, price_above=1)
        never = await alert(desk, price_below=1)
        assert (await inbox(desk))["notifications"] == [], "a fixed clock closes no bar"
    async with bench(tmp_path, T3) as desk:
        found = {each["alert_id"]: each for each in (await inbox(desk))["notifications"]}
        assert set(found) == {above["alert_id"], below["alert_id"], already["alert_id"]}
        first = next(bar for bar in bars if bar["high"] >= highest)
        assert found[above["alert_id"]] == {
            "alert_id": above["alert_id"],
            "symbol": "BTCUSD",
            "interval": "1m",
            "condition": {"type": "price_above", "threshold": highest},
            "value": first["high"],
            "triggered_at": iso(parse_time(first["timestamp"]) + 60),
        }
        first = next(bar for bar in bars if bar["low"] <= lowest)
        fired = found[below["alert_id"]]
        assert (fired["value"], fired["triggered_at"]) == (first["low"], iso(parse_time(first["timestamp"]) + 60))
        assert found[already["alert_id"]]["triggered_at"] == "2026-01-07T15:01:00+00:00", "already true is included"
        assert [each["alert_id"] for each in (await desk.chartgen("list_alerts"))["alerts"]] == [never["alert_id"]]
        assert "is fired already" in await desk.no("cancel_alert", alert_id=above["alert_id"])
    async with bench(tmp_path, "2026-01-07T22:00:00Z") as desk:
        assert (await inbox(desk))["notifications"] == [], "it fires once"


@awaited
async def test_a_signal_from_before_never_fires_however_much_of_it_a_chart_still_shows(tmp_path: Path) -> None:
    """In the wild every stale signal in the window did."""
    async with bench(tmp_path, T3) as desk:
        series = await desk.chartgen(
            "generate_chart", symbol="ETH/USD", timeframe="5m", indicators=["wavetrend"], bars=300, format="series"
        )
    ups = [s["t"] + 300 for s in series["indicators"]["wavetrend"]["signals"] if s["label"] == "cross_up"]
    assert len(ups) > 3
    stale, following = ups[-3], ups[-2]
    async with bench(tmp_path, iso(stale + 1)) as desk:
        made = await alert(desk, "ETH/USD", "5m", indicator_signal={"indicator": "wavetrend", "signal": "cross_up"})
        shown = await desk.chartgen(
            "generate_chart", symbol="ETH/USD", timeframe="5m", indicators=["wavetrend"], bars=300, format="series"
        )
        seen = [s["t"] + 300 for s in shown["indicators"]["wavetrend"]["signals"] if s["label"] == "cross_up"]
        assert seen[-1] == stale
    async with bench(tmp_path, iso(following - 1)) as desk:
        assert (await inbox(desk))["notifications"] == []
    async with bench(tmp_path, iso(following)) as desk:
        (fired,) = (await inbox(desk))["notifications"]
        assert (fired["alert_id"], fired["interval"]) == (made["alert_id"], "5m")
        assert fired["condition"] == {"type": "indicator_signal", "indicator": "wavetrend", "signal": "cross_up"}
        assert fired["triggered_at"] == iso(following)


# The inbox


async def fire(home: Path, count: int = 3) -> list[str]:
    """Some alerts that have fired, oldest first."""
    async with bench(home, T1) as desk:
        for number in range(count):
            await alert(desk, price_above=1 + number)
    async with bench(home, T2) as desk:
        return [each["alert_id"] for each in (await inbox(desk, cursor=0))["notifications"]]


@awaited
async def test_a_plain_call_takes_out_what_is_there(tmp_path: Path) -> None:
    fired = await fire(tmp_path)
    async with bench(tmp_path, T2) as desk:
        first = await inbox(desk, limit=2)
        assert [each["alert_id"] for each in first["notifications"]] == fired[:2]
        assert first["remaining"] == 1
        assert set(first["notifications"][0]) == PARAMS
        second = await inbox(desk)
        assert ([each["alert_id"] for each in second["notifications"]], second["remaining"]) == (fired[2:], 0)
        assert await inbox(desk) == {"notifications": [], "cursor": None, "remaining": 0}
        assert (await desk.ask("chartgen", "get_notifications", OTHER))["notifications"] == []


@awaited
async def test_a_cursor_tells_again_until_it_is_acknowledged(tmp_path: Path) -> None:
    fired = await fire(tmp_path)
    async with bench(tmp_path, T2) as desk:
        for _ in range(2):
            told = await inbox(desk, cursor=0, limit=2)
            assert [each["alert_id"] for each in told["notifications"]] == fired[:2]
            assert told["remaining"] == 1, "besides those that are told"
        rest = await inbox(desk, cursor=told["cursor"])
        assert ([each["alert_id"] for each in rest["notifications"]], rest["remaining"]) == (fired[2:], 0)
    async with bench(tmp_path, T2) as desk:
        again = await inbox(desk, cursor=told["cursor"])
        assert again == rest, "the answer may have been lost"
        assert (await inbox(desk))["notifications"] == rest["notifications"], "what was acknowledged is taken out"
        done = await inbox(desk, cursor=rest["cursor"])
        assert done == {"notifications": [], "cursor": rest["cursor"], "remaining": 0}
        for bad in ({"cursor": -1}, {"limit": 0}, {"limit": 1001}, {"wait_s": -1}, {"wait_s": 51}, {"cursor": "1"}):
            assert next(iter(bad)) in await desk.no("get_notifications", **bad)


@awaited
async def test_waiting_ends_at_its_bound_when_nothing_fires(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        began = time.monotonic()
        assert (await inbox(desk, wait_s=0.4))["notifications"] == []
        assert 0.4 <= time.monotonic() - began < 5
    async with bench(tmp_path, T1, TIMEOUT="1.3") as desk:
        began = time.monotonic()
        assert (await inbox(desk, wait_s=50))["notifications"] == [], "in time to answer"
        assert time.monotonic() - began < 1.3


# Pushing


def pushed(client: Client) -> dict[str, Any]:
    """The next push, whether it came before an answer or comes now."""
    message = client.aside.pop(0) if client.aside else client.receive(PATIENCE)
    assert message["method"] == METHOD
    params: dict[str, Any] = message["params"]
    return params


def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = client.call(tool, arguments)["result"]
    assert result["isError"] is False, result
    found: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == found
    return found


def test_what_fires_while_the_clock_runs_is_pushed_through_the_filters_and_ends_a_wait(tmp_path: Path) -> None:
    with Client(tmp_path, command=COMMAND, AS_OF=T1, REPLAY_SPEED="240", TIMEOUT="60") as client:
        client.initialize()
        assert answer(client, "list_subscriptions") == {"subscriptions": [], "queued": 0}
        made = answer(client, "subscribe_notifications", symbols=["btcusdt", "ETH/USD"], alert_types=["price_above"])
        assert made["subscribed"] is True
        assert made["subscription"]["symbols"] == ["BTC/USDT", "ETH/USD"]
        assert made["subscription"]["alert_types"] == ["price_above"]
        assert answer(client, "list_subscriptions")["subscriptions"] == [made["subscription"]]
        conditions = [
            ("SOLUSDT", {"price_above": 1}),
            ("ETHUSD", {"price_below": 1e9}),
            ("BTCUSDT", {"price_above": 2.5}),
        ]
        ids = [answer(client, "set_alert", symbol=name, condition=wanted)["alert_id"] for name, wanted in conditions]
        params = pushed(client)
        assert set(params) == {*PARAMS, "_meta"}
        assert params["_meta"]["openbell/truth"]["data"] == "simulated"
        assert (params["alert_id"], params["symbol"], params["interval"]) == (ids[2], "BTCUSDT", "1m")
        assert params["condition"] == {"type": "price_above", "threshold": 2.5}
        assert params["value"] > 2.5
        assert parse_time(params["triggered_at"]) % 60 == 0
        seen: dict[str, Any] = {}
        while len(seen) < 3:
            found = answer(client, "get_notifications", wait_s=30)["notifications"]
            assert found, "a wait ends when something fires"
            seen |= {each["alert_id"]: each for each in found}
        assert set(seen) == set(ids), "the inbox has them all"
        assert seen[ids[2]] == {name: value for name, value in params.items() if name != "_meta"}
        assert client.aside == [], "and nothing else was pushed"

        answer(client, "subscribe_notifications", alert_types=["indicator_signal", "price_below"])
        wanted = {"indicator": "wavetrend", "signal": "cross_up"}
        signal = answer(client, "set_alert", symbol="ETH/USD", condition={"indicator_signal": wanted}, interval="1m")[
            "alert_id"
        ]
        params = pushed(client)
        assert (params["alert_id"], set(params)) == (signal, {*PARAMS, "_meta"})
        assert params["condition"] == {"type": "indicator_signal", **wanted}

        assert answer(client, "unsubscribe_notifications") == {"unsubscribed": True}
        assert answer(client, "unsubscribe_notifications") == {"unsubscribed": False}
        last = answer(client, "set_alert", symbol="ETH/USD", condition={"price_below": 1e9})["alert_id"]
        while last not in {
            each["alert_id"] for each in answer(client, "get_notifications", wait_s=30)["notifications"]
        }:
            pass
        assert answer(client, "list_subscriptions") == {"subscriptions": [], "queued": 0}
        assert client.aside == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"symbols": ["???"]}, "Invalid symbol"),
        ({"symbols": "BTC/USD"}, "symbols"),
        ({"alert_types": ["volume"]}, "alert_types must be one of price_above, price_below, indicator_signal"),
        ({"webhook": "http://x"}, "webhook is not an argument"),
    ],
)
@awaited
async def test_a_bad_filter_is_refused_and_the_subscription_stays(
    tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    async with bench(tmp_path, T1) as desk:
        made = await desk.chartgen("subscribe_notifications", symbols=["AAPL"])
        assert words in await desk.no("subscribe_notifications", **arguments)
        assert (await desk.chartgen("list_subscriptions"))["subscriptions"] == [made["subscription"]]


@awaited
async def test_subscriptions_are_their_owners(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        await desk.chartgen("subscribe_notifications")
        assert (await desk.ask("chartgen", "list_subscriptions", OTHER))["subscriptions"] == []
        assert (await desk.ask("chartgen", "unsubscribe_notifications", OTHER))["unsubscribed"] is False
        assert len((await desk.chartgen("list_subscriptions"))["subscriptions"]) == 1


def test_the_subscription_and_its_queue_survive_killed_servers(tmp_path: Path) -> None:
    """In the wild the queue died with the process while the subscription stayed."""

    @awaited
    async def prepare() -> None:
        async with bench(tmp_path, T1) as desk:
            await desk.chartgen("subscribe_notifications", alert_types=["price_above"])
            for threshold in (1, 2):
                await alert(desk, price_above=threshold)
        async with bench(tmp_path, T2) as desk:
            assert (await desk.chartgen("list_subscriptions"))["queued"] == 2

    prepare()
    with Client(tmp_path, command=COMMAND, AS_OF=T2, TIMEOUT="60") as client:
        client.initialize()
    with Client(tmp_path, command=COMMAND, AS_OF=T2, TIMEOUT="60") as client:
        client.initialize()
        assert client.aside == []
        listed = answer(client, "list_subscriptions")
        assert listed["subscriptions"][0]["alert_types"] == ["price_above"]
        found = [pushed(client), pushed(client)]
        assert sorted(each["condition"]["threshold"] for each in found) == [1, 2]
        asyncio.run(until(lambda: answer(client, "list_subscriptions")["queued"] == 0, "the queue to be empty"))
        assert len(answer(client, "get_notifications")["notifications"]) == 2, "pushed or not, they are in the inbox"
        assert answer(client, "get_notifications")["notifications"] == []
    with Client(tmp_path, command=COMMAND, AS_OF=T2, TIMEOUT="60") as client:
        client.initialize()
        assert answer(client, "get_notifications", wait_s=1)["notifications"] == []
        assert client.aside == [], "and pushed once"


@awaited
async def test_what_waits_too_long_is_not_pushed_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, T1) as desk:
        await desk.chartgen("subscribe_notifications")
        await alert(desk, price_above=1)
    async with bench(tmp_path, T2) as desk:
        assert (await desk.chartgen("list_subscriptions"))["queued"] == 1
        now = time.time()
        monkeypatch.setattr("openbell.desk.alerts.inbox.time.time", lambda: now + 3599)
        assert (await desk.chartgen("list_subscriptions"))["queued"] == 1
        monkeypatch.setattr("openbell.desk.alerts.inbox.time.time", lambda: now + 3601)
        assert (await desk.chartgen("list_subscriptions"))["queued"] == 0
        assert len((await inbox(desk))["notifications"]) == 1


@awaited
async def test_on_postgresql_all_of_it_works_the_same(tmp_path: Path, database: str) -> None:
    settings = {"DATABASE_URL": database}
    async with bench(tmp_path, T1, **settings) as desk:
        await desk.chartgen("subscribe_notifications", symbols=["BTC/USD"])
        made = [await alert(desk, price_above=number + 1) for number in range(3)]
        await desk.chartgen("cancel_alert", alert_id=made[2]["alert_id"])
        order = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.05"}
        placed = await desk.chartgen("place_order", **order, client_order_id="once", take_profit=1e5, stop_loss=5e4)
        again = await desk.chartgen("place_order", **order, client_order_id="once", take_profit=1e5, stop_loss=5e4)
        assert again == placed
        for tool, name in (("cancel_order", "order_id"), ("cancel_alert", "alert_id")):
            for unknown in ("nothing", "\u0000", "' OR 1=1 --", "é"):
                assert (await desk.no(tool, **{name: unknown})).startswith("no ")
    async with bench(tmp_path, T2, **settings) as desk:
        assert (await desk.chartgen("list_subscriptions"))["queued"] == 2
        told = await inbox(desk, cursor=0)
        assert {each["alert_id"] for each in told["notifications"]} == {each["alert_id"] for each in made[:2]}
        assert await inbox(desk) == {**told, "remaining": 0}
        status = {
            order["role"]: order["status"] for order in (await desk.chartgen("get_orders", detail=True))["orders"]
        }
        assert status == {"entry": "filled", "take_profit": "open", "stop_loss": "open"}
        assert len((await desk.chartgen("get_positions"))["positions"]) == 1
