"""list_alerts: why an alert has not fired, and those that have fired."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from openbell.servers.chartgen.alerts import MOST_FIRED
from tests.client import run
from tests.servers.desks import OTHER, Bench, awaited, bench

T1, T2, T3 = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z", "2026-01-07T16:00:00Z"
SUNDAY = "2026-01-11T18:00:00Z"


async def listed(desk: Bench, **given: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await desk.chartgen("list_alerts", **given))["alerts"]
    return found


async def price(desk: Bench, symbol: str) -> float:
    return float((await desk.ask("market-data", "get_current_price", symbol=symbol))["price"])


@awaited
async def test_an_active_alert_says_how_far_the_price_is_from_it(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 900_000.5})
        await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_below": 1})
        for each in await listed(desk):
            assert each["reason"] == "no minute that opened after it was set has closed yet"
    async with bench(tmp_path, T2) as desk:
        last = await price(desk, "BTC/USD")
        below, above = sorted(await listed(desk), key=lambda each: each["distance"])
        for each, threshold, way in ((above, "900000.5", "rise"), (below, "1", "fall")):
            distance = Decimal(threshold) - Decimal(repr(last))
            assert (each["last_value"], each["distance"]) == (last, float(distance))
            assert each["last_bar_at"] == "2026-01-07T15:30:00+00:00"
            assert each["reason"] == f"the price must {way} by {abs(distance)} from {Decimal(repr(last))}"


@awaited
async def test_an_alert_on_a_closed_market_says_until_when(tmp_path: Path) -> None:
    async with bench(tmp_path, SUNDAY) as desk:
        for symbol in ("AAPL", "EUR/USD", "BTC/USD"):
            await desk.chartgen("set_alert", symbol=symbol, condition={"price_above": 900_000})
        signal = {"indicator_signal": {"indicator": "rsi", "signal": "rsi_oversold"}}
        by_symbol = {each["symbol"]: each for each in await listed(desk)}
        stock, forex, coin = (by_symbol[symbol] for symbol in ("AAPL", "EUR/USD", "BTC/USD"))
        assert stock["reason"].endswith("; the market is closed until 2026-01-12T09:00:00+00:00"), "04:00 in New York"
        assert forex["reason"].endswith("; the market is closed until 2026-01-11T22:00:00+00:00"), "17:00 in New York"
        assert "closed until" not in coin["reason"]
        await desk.chartgen("set_alert", symbol="BTC/USD", condition=signal, interval="1h")
        (found,) = [each for each in await listed(desk) if each["condition"]["type"] == "indicator_signal"]
        assert found["reason"] == (
            "no bar that closed since it was set has the signal rsi_oversold; the next one closes at "
            "2026-01-11T19:00:00+00:00"
        )
        assert "distance" not in found


@awaited
async def test_fired_alerts_are_listed_if_asked_for_as_known_at_the_time(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        near = await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1})
        far = await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 900_000})
    async with bench(tmp_path, T2) as desk:
        assert [each["alert_id"] for each in await listed(desk)] == [far["alert_id"]], "as the contract has it"
        (fired,) = await listed(desk, status="fired")
        (told,) = (await desk.chartgen("get_notifications"))["notifications"]
        assert (fired["alert_id"], fired["status"]) == (near["alert_id"], "fired")
        assert (fired["fired_at"], fired["value"]) == (told["triggered_at"], told["value"])
        assert "reason" not in fired
        both = [each["alert_id"] for each in await listed(desk, status="all")]
        assert both == [far["alert_id"], near["alert_id"]]
        assert (await desk.ask("chartgen", "list_alerts", OTHER, status="all"))["alerts"] == []
        assert "did you mean 'fired'?" in await desk.no("list_alerts", status="fird")
    async with bench(tmp_path, T1) as desk:
        assert await listed(desk, status="fired") == [], "it had not fired then"
        assert len(await listed(desk)) == 2


@awaited
async def test_a_list_of_many_fired_alerts_says_how_many_it_leaves_out(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        for _ in range(MOST_FIRED + 3):
            await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1})
    async with bench(tmp_path, T2) as desk:
        found = await desk.chartgen("list_alerts", status="fired")
        assert (len(found["alerts"]), found["fired_left_out"]) == (MOST_FIRED, 3)


def test_the_command_line_lists_them_too(tmp_path: Path) -> None:
    def called(at: str, tool: str, **given: Any) -> Any:
        done = run(tmp_path, "call", "chartgen", tool, json.dumps(given), "--trade", "--as-of", at)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    called(T1, "set_alert", symbol="ETH/USD", condition={"price_below": 1e9})
    assert called(T2, "list_alerts") == {"alerts": []}
    (fired,) = called(T2, "list_alerts", status="all")["alerts"]
    assert fired["fired_at"] == "2026-01-07T15:01:00+00:00"
