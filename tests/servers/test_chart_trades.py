"""The caller's account on charts: what its own tools return, as known at the desk's time, for nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openbell.protocol.session import LOCAL_OPERATOR, Principal, Scope
from tests.cli.in_process import command
from tests.servers.desks import OTHER, Bench, awaited, bench, bench_as_found

BOUGHT, SOLD, SEEN = "2026-01-07T15:00:00Z", "2026-01-07T16:10:00Z", "2026-01-07T18:10:00Z"
CHART = {"symbol": "BTC/USD", "timeframe": "1h", "bars": 60, "trades": True, "format": "summary"}
READER = Principal(LOCAL_OPERATOR.subject, frozenset({Scope.READ}))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A scenario in which the operator bought with a bracket, sold a part, and set alerts; another principal bought once."""
    folder = tmp_path_factory.mktemp("trades")

    @awaited
    async def trade() -> None:
        async with bench(folder, BOUGHT) as desk:
            last = (await desk.ask("market-data", "get_candles", symbol="BTC/USD", timeframe="1m", limit=1))["items"][0]
            price = float(last["close"])
            exits = {"take_profit": round(price * 1.2, 1), "stop_loss": round(price * 0.8, 1)}
            asked: dict[str, Any] = {"symbol": "BTC/USD", "type": "market"}
            await desk.chartgen("place_order", **asked, side="buy", quantity="0.05", **exits)
            await desk.ask("chartgen", "place_order", OTHER, **asked, side="buy", quantity="0.01")
        async with bench(folder, SOLD) as desk:
            await desk.chartgen("place_order", **asked, side="sell", quantity="0.02")
            for symbol in ("BTC/USD", "ETH/USD"):
                await desk.chartgen("set_alert", symbol=symbol, condition={"price_above": 900_000})
        async with bench(folder, SEEN):
            pass

    trade()
    yield folder


async def chart(desk: Bench, principal: Principal = LOCAL_OPERATOR, **change: Any) -> Any:
    return await desk.ask("chartgen", "generate_chart", principal, **{**CHART, **change})


@awaited
async def test_a_chart_shows_what_the_callers_own_tools_return(home: Path) -> None:
    async with bench_as_found(home, SEEN) as desk:
        assert "trades" not in await chart(desk, trades=False)
        shown = (await chart(desk))["trades"]
        (position,) = (await desk.chartgen("get_positions"))["positions"]
        assert shown["position"] == {
            "side": "long",
            "quantity": position["quantity"],
            "average_price": position["entry_price"],
        }
        orders = (await desk.chartgen("get_orders"))["orders"]
        filled = {each["side"]: each for each in orders if each["status"] == "filled"}
        sold, bought = shown["fills"]
        series = await chart(desk, format="series")
        for fill, effect, time in ((bought, "entry", BOUGHT), (sold, "exit", "2026-01-07T16:00:00Z")):
            order = filled[fill["side"]]
            assert (fill["effect"], fill["time"]) == (effect, time.replace("Z", "+00:00"))
            assert (fill["quantity"], fill["price"]) == (order["filled_quantity"], order["average_price"])
            bar = series["bars"][fill["x"]]
            assert bar["l"] * 0.99 <= float(fill["price"]) <= bar["h"] * 1.01
        assert series["trades"] == shown
        working = {each["order_id"]: each for each in orders if each["status"] == "open"}
        assert {each["purpose"] for each in shown["orders"]} == {"stop", "target"}
        for each in shown["orders"]:
            order = working.pop(each["order_id"])
            assert (each["side"], each["quantity"]) == (order["side"], order["quantity"])
        assert not working
        assert [each["condition"] for each in shown["alerts"]] == [{"price_above": "900000"}]


@awaited
async def test_a_principal_sees_its_own_and_what_its_scopes_allow(home: Path) -> None:
    async with bench_as_found(home, SEEN) as desk:
        other = (await chart(desk, OTHER))["trades"]
        assert [(each["side"], each["quantity"]) for each in other["fills"]] == [("buy", "0.01")]
        assert (other["orders"], other["alerts"]) == ([], [])
        nobody = (await chart(desk, Principal("nobody", frozenset(Scope))))["trades"]
        assert (nobody["position"], nobody["fills"], nobody["orders"]) == (None, [], [])
        # portfolio's tools return the position to a reader; get_orders and list_alerts refuse it.
        reader = (await chart(desk, READER))["trades"]
        assert len(reader["fills"]) == 2
        assert not {"orders", "alerts"} & set(reader)
        assert reader["note"].startswith("working orders and alerts are not shown: get_orders needs the scope trade: ")
    async with bench_as_found(home, SEEN, TRADE="0", SCENARIO="as-of") as desk:
        shown = (await chart(desk))["trades"]
        assert len(shown["fills"]) == 2
        assert "orders" not in shown
        assert "--trade" in shown["note"]


@awaited
async def test_an_earlier_clock_shows_what_was_known_then(home: Path) -> None:
    async with bench_as_found(home, "2026-01-07T15:30:00Z") as desk:
        shown = (await chart(desk, timeframe="1m"))["trades"]
        assert [each["side"] for each in shown["fills"]] == ["buy"]
        assert (shown["position"]["quantity"], shown["alerts"]) == ("0.05", [])
    async with bench_as_found(home, "2026-01-07T14:00:00Z") as desk:
        shown = (await chart(desk))["trades"]
        assert (shown["position"], shown["fills"], shown["orders"]) == (None, [], [])


@awaited
async def test_a_chart_is_drawn_when_the_records_fail_and_says_so(tmp_path: Path) -> None:
    damaged = tmp_path / "simulated" / "scenarios" / "as-of" / "records.sqlite"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no database" * 1000)
    async with bench_as_found(tmp_path, SEEN) as desk:
        assert "not a database" in await desk.no("get_orders")
        for form in ("summary", "both", "png"):
            reply = await desk.reply("chartgen", "generate_chart", {**CHART, "format": form})
            assert not reply.is_error, reply.payload
            assert "paper account not shown: " in reply.truth["note"]
            assert bool(reply.images) == (form != "summary")
            if form != "png":
                assert set(reply.payload["trades"]) == {"account", "note"}
                assert "not a database" in reply.payload["trades"]["note"]


def test_the_command_line_draws_the_operators_account(home: Path, tmp_path: Path) -> None:
    output = tmp_path / "chart.svg"
    words = ("chart", "BTC/USD", "-n", "60", "-o", str(output), "--as-of", SEEN)
    code, _, plain = command(home, *words)
    assert (code, plain) == (0, "")
    without = output.read_text()
    code, _, said = command(home, *words, "--fills", "--scenario", "as-of")
    assert (code, said) == (0, "openbell: paper account · 2 fills · 2 orders · 1 alert\n")
    drawn = output.read_text()
    for text in ("Avg · long 0.03", "Stop · sell 0.05", "Target · sell 0.05", "Buy 0.05", "Sell 0.02"):
        assert text in drawn
        assert text not in without
    # Without the scenario it is the present's account, which has nothing.
    code, _, said = command(home, *words, "--fills")
    assert (code, said) == (0, "openbell: paper account · no fills, orders or alerts here\n")


@awaited
async def test_the_session_is_in_the_result_of_every_format(home: Path) -> None:
    async with bench_as_found(home, SEEN) as desk:
        given: dict[str, Any] = {"symbol": "AAPL", "session": "regular", "trades": False}
        shown = await chart(desk, **given, indicators=["rsi"], bars=200)
        values = await desk.chartgen(
            "get_indicators", symbol="AAPL", interval="1h", indicators=["rsi"], session="regular"
        )
        usual = await desk.chartgen("get_indicators", symbol="AAPL", interval="1h", indicators=["rsi"])
        assert (shown["hours"], values["hours"]) == ("regular", "regular")
        assert shown["indicators"] == values["indicators"] != usual["indicators"]
        assert "hours" not in usual
        series = await chart(desk, **given, format="series")
        assert {bar["t"] % 86400 // 3600 for bar in series["bars"]} == set(range(14, 21))
        coin = await chart(desk, session="regular")
        assert "hours" not in coin
        assert coin["hours_note"] == "session regular changes nothing: BTC/USD has no extended hours"
        refused = await desk.no("get_indicators", symbol="AAPL", indicators=["rsi"], session="regulr")
        assert "did you mean 'regular'" in refused


def test_the_command_notes_that_days_are_those_of_the_market(home: Path, tmp_path: Path) -> None:
    output = tmp_path / "chart.svg"
    for words, expected in ((("-t", "1d"), True), (("-t", "1h"), False)):
        asked = (*words, "-n", "5", "--timezone", "Asia/Tokyo", "--as-of", SEEN, "-o", str(output))
        code, _, said = command(home, "chart", "AAPL", *asked)
        assert code == 0
        assert ("dates of the market (New York), not of Asia/Tokyo" in said) == expected
        assert ("· New York days<" in output.read_text()) == expected
        assert ("· Tokyo<" in output.read_text()) != expected


def test_the_picture_of_regular_hours_says_so(home: Path, tmp_path: Path) -> None:
    output = tmp_path / "chart.svg"
    for words, expected in ((("--session", "regular"), True), ((), False)):
        assert command(home, "chart", "AAPL", "-o", str(output), "--as-of", SEEN, *words)[0] == 0
        assert ("AAPL · 1h · regular hours" in output.read_text()) == expected
    code, _, said = command(home, "chart", "AAPL", "--session", "night", "-o", str(output))
    assert code == 1
    assert "--session" in said
