"""The charting part of the chartgen contract, over real pipes."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import re
import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from PIL import Image
from typer.testing import CliRunner

from openbell.cli.commands import app
from openbell.indicators.registry import all_indicators
from tests.client import OPENBELL, Client, peak_memory, processor_time, run
from tests.counts import SOAK, runs

REQUESTS = runs(100, soak=10_000)
AS_OF = "2026-01-07T15:00:00Z"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = tmp_path_factory.mktemp("charts")
    with Client(home, command=[*OPENBELL, "mcp", "chartgen"], AS_OF=AS_OF) as made:
        made.initialize()
        made.memory = peak_memory(made.process.pid)
        yield made


def chart(client: Client, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = client.call("generate_chart", {"symbol": "BTC/USD", "timeframe": "1h", **arguments})[
        "result"
    ]
    return result


def test_the_golden_cross_is_that_of_averages_added_up_from_the_bars(client: Client) -> None:
    entries = [{"name": "sma", "length": 50}, {"name": "sma", "length": 200}]
    bars = chart(client, timeframe="1d", bars=1000, format="series")["structuredContent"]["bars"]
    closes = [bar["c"] for bar in bars]
    fast, slow = ([sum(closes[at - n + 1 : at + 1]) / n for at in range(199, 1000)] for n in (50, 200))
    higher = [one > two for one, two in zip(fast, slow, strict=True)]
    last = max(at for at in range(1, len(higher)) if higher[at] != higher[at - 1])
    asked = {"symbol": "BTC/USD", "interval": "1d", "indicators": entries}
    shape = client.call("get_indicators", asked)["result"]["structuredContent"]
    found = next(each for each in shape["crossings"] if each["a"] == "SMA(50)")
    crossed = datetime.fromisoformat(found["last_cross"]["time"]).timestamp()
    assert (found["b"], found["a_is"]) == ("SMA(200)", "above" if higher[-1] else "below")
    assert (crossed, found["last_cross"]["bars_ago"]) == (bars[199 + last]["t"], len(higher) - 1 - last)
    assert found["last_cross"]["direction"] == ("up" if higher[last] else "down")
    line = shape["indicators"]["sma_2"]["lines"][0]
    assert shape["close"] == closes[-1]
    assert line["close_vs_line_pct"] == pytest.approx((closes[-1] / slow[-1] - 1) * 100, rel=1e-9)
    assert line["previous_value"] == pytest.approx(slow[-2], rel=1e-9)
    summary = chart(client, timeframe="1d", indicators=entries, format="summary", bars=5)["structuredContent"]
    assert summary["crossings"] == shape["crossings"]


def test_a_large_picture_at_a_scale_of_two(client: Client) -> None:
    picture = base64.b64decode(chart(client, width=2400, height=1350, scale=2, bars=50)["content"][0]["data"])
    assert struct.unpack(">II", picture[16:24]) == (4800, 2700)


def test_the_time_zone_is_an_argument(client: Client) -> None:
    pictures = {
        zone: chart(client, bars=30, timezone=zone)["content"][0]["data"] for zone in (None, "etc/utc", "Asia/Tokyo")
    }
    assert pictures[None] == pictures["etc/utc"] != pictures["Asia/Tokyo"]


def test_days_stay_those_of_the_market_and_a_note_says_so(client: Client) -> None:
    def note(timeframe: str, zone: str | None, form: str = "png") -> str:
        made = chart(client, bars=5, timeframe=timeframe, timezone=zone, format=form)
        return str(made["_meta"]["openbell/truth"].get("note"))

    expected = "bars of a day and longer have the dates of the market (UTC), not of Asia/Tokyo"
    assert expected in note("1d", "Asia/Tokyo")
    assert expected in note("1w", "Asia/Tokyo", "both")
    for others in (("1d", "Etc/UTC"), ("1d", None), ("4h", "Asia/Tokyo"), ("1d", "Asia/Tokyo", "summary")):
        assert "timezone" not in note(*others), others


def test_color_and_width_of_an_indicator_change_its_picture_alone(client: Client) -> None:
    style = {"color": "#ff00ff", "width": 3}
    plain, styled = (
        chart(client, indicators=[{"name": "sma", "length": 20, **more}], format="both") for more in ({}, style)
    )
    assert styled["content"][1] == plain["content"][1]
    counts = []
    for result in (plain, styled):
        image = Image.open(io.BytesIO(base64.b64decode(result["content"][0]["data"]))).convert("RGB")
        counts.append({color: count for count, color in image.getcolors(1 << 20) or []}.get((255, 0, 255), 0))
    assert counts[0] == 0 < counts[1]
    (refused,) = chart(client, indicators=[{"name": "sma", "color": "mauve"}])["content"]
    assert "color must be like #ff9800, not 'mauve'" in refused["text"]


def test_two_entries_of_one_indicator_have_keys_of_their_own(client: Client) -> None:
    result = chart(client, indicators=["rsi", {"name": "rsi", "length": 21}], format="series")
    found = json.loads(result["content"][0]["text"])["indicators"]
    assert {key: entry["label"] for key, entry in found.items()} == {"rsi": "RSI(14)", "rsi_2": "RSI(21)"}
    assert found["rsi"]["lines"][0]["values"][-1] != found["rsi_2"]["lines"][0]["values"][-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indicators": ["rsii"]}, "did you mean 'rsi'"),
        ({"indicators": [{"name": "rsi", "lenght": 3}]}, "did you mean 'length'"),
        ({"indicators": [{"name": "vpvr", "side": "LEFTT"}]}, "did you mean 'left'"),
        ({"indicators": [{"name": "ema", "length": 20}]}, "ema_line has it"),
        ({"format": "pngg"}, "did you mean 'png'"),
        ({"format": "PNG"}, "did you mean 'png'"),
        ({"timeframe": "7h"}, "timeframe"),
        ({"timeframe": "1hh"}, "did you mean '1h'"),
        ({"symbol": "???"}, "symbol"),
        ({"symbol": "ZZZZ"}, "Unknown symbol"),
        ({"bars": 0}, "bars"),
        ({"bars": 1001}, "bars"),
        ({"width": 100}, "width"),
        ({"height": 9000}, "height"),
        ({"scale": 4.0, "width": 2100}, "width"),
        ({"scale": 4.0, "width": 2000}, "at most 16,000,000 pixels"),
        ({"timezone": "Tokyo"}, "did you mean 'Asia/Tokyo'"),
        ({"timezone": "Mars/Olympus"}, "timezone must be a name such as America/New_York"),
        ({"scale": 0.5, "width": 300}, "width"),
        ({"scale": 0.0}, "scale"),
        ({"indicators": ["rsi"] * 25}, "24"),
        ({"style": "candels"}, "did you mean 'candles'"),
        ({"ticker": "AAPL"}, "given twice"),
        ({"interval": "4h"}, "given twice"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_mistakes_are_errors_in_words(client: Client, change: dict[str, Any], words: str) -> None:
    result = chart(client, **change)
    assert result["isError"] is True
    (item,) = result["content"]
    assert words in item["text"]


def test_the_schema_says_what_is_taken(client: Client) -> None:
    tools = {tool["name"]: tool["inputSchema"] for tool in client.request("tools/list")["result"]["tools"]}
    schema = tools["generate_chart"]
    good: list[dict[str, Any]] = [
        {name: field["default"]} for name, field in schema["properties"].items() if "default" in field
    ]
    good += [{"timeframe": "1h", "interval": None}, {"style": "heikin_ashi"}, {"width": 200, "height": 8192}]
    for arguments in good:
        jsonschema.validate(arguments, schema)
    jsonschema.validate({"symbol": "AAPL", "indicators": ["rsi"], "interval": None}, tools["get_indicators"])
    bad = {
        "style": "x",
        "theme": "x",
        "price_scale": "x",
        "format": "x",
        "timeframe": "7h",
        "width": 199,
        "height": 8193,
    }
    for name, value in {**bad, "scale": 0, "bars": 0}.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: value}, schema)


def test_a_symbol_is_required(client: Client) -> None:
    assert client.call("generate_chart", {})["result"]["isError"] is True
    assert client.call("get_indicators", {"symbol": "AAPL", "indicators": []})["result"]["isError"] is True


def test_an_unknown_tool_is_invalid_params(client: Client) -> None:
    assert client.call("no_such_tool")["error"]["code"] == -32602


def test_every_indicator_can_be_drawn_and_read(client: Client) -> None:
    catalogue = client.call("list_indicators", {"detail": True})["result"]["structuredContent"]["indicators"]
    assert len(catalogue) >= 60
    tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    for entry in catalogue:
        result = client.call("get_indicators", {"symbol": "BTC/USD", "interval": "1h", "indicators": [entry["name"]]})
        shape = result["result"]["structuredContent"]
        jsonschema.validate(shape, tools["get_indicators"]["outputSchema"])
        assert shape["source"] in {"fetched", "engine_cache"}
        drawn = chart(client, indicators=[entry["name"]], bars=120, width=400, height=300)
        assert drawn["isError"] is False, entry["name"]
        for alias in entry["aliases"]:
            assert chart(client, indicators=[alias], format="summary", bars=60)["isError"] is False


def test_external_series_that_a_feed_lacks_are_a_clear_error(client: Client) -> None:
    result = client.call("generate_chart", {"symbol": "AAPL", "indicators": ["funding"]})["result"]
    assert result["isError"] is True
    assert "funding" in result["content"][0]["text"]


def test_chart_command(tmp_path: Path) -> None:
    for ending, magic in ((".png", b"\x89PNG"), (".jpg", b"\xff\xd8"), (".svg", b"<svg")):
        file = tmp_path / f"chart{ending}"
        done = run(
            tmp_path, "chart", "AAPL", "-t", "15m", "-i", "rsi:length=21", "-n", "80", "-o", str(file), AS_OF=AS_OF
        )
        assert done.returncode == 0, done.stderr
        assert file.read_bytes().startswith(magic)
        assert [each.name for each in tmp_path.iterdir() if "chart" in each.name] == [file.name], "nothing beside it"
        assert not done.stderr
        file.unlink()


def test_chart_command_with_color_and_width(tmp_path: Path) -> None:
    file = tmp_path / "chart.svg"
    style = "sma:length=20,color=#fedcba,width=2.5"
    assert run(tmp_path, "chart", "AAPL", "-n", "60", "-i", style, "-o", str(file), AS_OF=AS_OF).returncode == 0
    assert 'stroke="#fedcba" stroke-width="2.5"' in file.read_text()


def test_chart_command_at_twice_the_size(tmp_path: Path) -> None:
    file = tmp_path / "chart.svg"
    run(tmp_path, "chart", "AAPL", "-o", str(file), "--scale", "2", AS_OF=AS_OF)
    assert 'width="2400" height="1350" viewBox="0 0 1200 675"' in file.read_text()


def test_chart_command_says_when_there_are_fewer_bars(tmp_path: Path) -> None:
    done = run(tmp_path, "chart", "BTC/USD", "-t", "1w", "-n", "1000", "-o", str(tmp_path / "x.png"), AS_OF=AS_OF)
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert "of 1000 bars are available" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-i", "rsii"], "did you mean 'rsi'"),
        (["-i", "rsi:name=macd"], "sets name twice"),
        (["-i", "rsi:length=3,length=4"], "sets length twice"),
        (["-i", "rsi:length=1_4"], "whole number"),
        (["-i", "rsi:length"], "write an indicator as"),
        (["-i", "rsi:color=mauve"], "color must be like #ff9800"),
        (["-i", "rsi:width=50"], "width must be 0.5 to 10 pixels"),
        (["--size", "²x400"], "--size must be like"),
        (["--size", "1200"], "--size must be like"),
        (["-t", "1hh"], "did you mean '1h'"),
        (["--style", "Line"], "did you mean 'line'"),
    ],
)
def test_chart_command_refuses_plainly(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBELL_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["chart", "AAPL", "-o", str(tmp_path / "x.png"), *words])
    assert done.exit_code == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_chart_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "there.png"
    folder.mkdir()
    done = run(tmp_path, "chart", "AAPL", "-o", str(folder), AS_OF=AS_OF)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".there")]


@pytest.mark.parametrize("columns", ["30", "80", "200"])
def test_the_list_of_indicators_cuts_no_name(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    words = set(re.split(r"[\s,()]+", CliRunner().invoke(app, ["indicators"]).stdout))
    for indicator in all_indicators().values():
        assert {indicator.name, *indicator.aliases} <= words
        assert all(any(word.startswith(f"{each.name}=") for word in words) for each in indicator.parameters)


def test_the_help_tells_the_default_timeframes() -> None:
    told = " ".join(CliRunner().invoke(app, ["chart", "--help"]).stdout.split())
    assert "default here: 1h, in the tools: 4h" in told


def test_fuzzed_requests_are_a_chart_or_an_error(client: Client) -> None:
    """Each within 2 s of the processor's time and 300 MB."""
    seed = int(os.environ.get("OPENBELL_TEST_SEED", "7"))
    chance = random.Random(seed)
    names = [entry["name"] for entry in client.call("list_indicators")["result"]["structuredContent"]["indicators"]]
    odd: list[Any] = [None, -1, 0, 1, 10**9, 1e308, "", "x" * 500, [], {}, True, [[]], {"name": "rsi"}, "rsi"]

    def value(usual: list[Any]) -> Any:
        return chance.choice(usual) if chance.random() < 0.93 else chance.choice(odd)

    def indicator() -> Any:
        name = chance.choice(names)
        return name if chance.random() < 0.7 else {"name": name, "length": value([1, 5, 50, 500])}

    charts = 0
    for number in range(REQUESTS):
        asked = {
            "symbol": value(["BTC/USD", "ETH/USD", "AAPL", "SPY", "EUR/USD"]),
            "timeframe": value(["1m", "5m", "15m", "1h", "4h", "1d"]),
            "format": value(["png", "summary", "both", "series"]),
            "bars": value([1, 2, 37, 200, 1000]),
            "width": value([200, 800, 1200, 1920, 4000, 8192]),
            "height": value([200, 600, 675, 1600, 4000]),
            "scale": value([1, 1, 2, 0.5]),
            "style": value(["candles", "hollow", "bars", "line", "area", "heikin_ashi", "baseline", "hilo", "columns"]),
            "price_scale": value(["linear", "log", "percent", "indexed"]),
            "theme": value(["dark", "light"]),
            "indicators": value([[indicator() for _ in range(count)] for count in (0, 1, 3, 24, 25)]),
        }
        asked = {key: entry for key, entry in asked.items() if key == "symbol" or chance.random() < 0.6}
        where = f"seed {seed}, {number}: {asked}"
        began = processor_time(client.process.pid)
        answer = client.call("generate_chart", asked)
        spent = processor_time(client.process.pid) - began
        assert "result" in answer, f"{where} {answer}"
        assert answer["result"]["content"], where
        assert "Internal error" not in str(answer["result"]["content"])[:200], where
        # The campaign runs alone; beside other tests a busy machine says nothing about us.
        assert spent <= (2.0 if SOAK else 20.0), f"{spent:.1f} s, {where}"
        # The test's process begins with the modules of all servers: what charts add is measured.
        assert peak_memory(client.process.pid) - client.memory <= 170e6, where
        charts += not answer["result"].get("isError")
    assert charts > 20, "the requests must not all be wrong"
