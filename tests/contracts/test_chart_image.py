"""Chart-Image, row by row: the server on stdio, drawing itself, and in front of a double of the vendor."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.client import Client
from tests.contracts.rows import differs, row, shown_by
from tests.contracts.wire import ask, assert_readable_error, refused, tools
from tests.desk.chart_image.pages import PAGE
from tests.servers.chart_image_servers import AS_OF, SMALL, chart_image, opened
from tests.servers.chart_img_server import KEY, Asked, ChartImgServer, message
from tests.waiting import wait_for

CONFIG: dict[str, Any] = {"symbol": "BINANCE:BTCUSDT", "interval": "1h"}
LINE = {"type": "Horizontal Line", "coordinates": {"price": 90000}}
PAIR = {"symbol": "BTCUSDT", "description": "Bitcoin / TetherUS", "type": "crypto", "exchange": "Binance"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server without a key, which draws itself."""
    with chart_image(tmp_path_factory.mktemp("desk"), AS_OF=AS_OF) as made:
        yield made


@pytest.fixture(scope="module")
def _vendor() -> Iterator[ChartImgServer]:
    with ChartImgServer() as made:
        yield made


@pytest.fixture
def vendor(_vendor: ChartImgServer) -> ChartImgServer:
    """The double of the vendor, with a page of documentation and one symbol."""
    _vendor.reset()
    _vendor.page = PAGE.encode()
    _vendor.symbols = {"BINANCE": {"updatedAt": None, "payload": [PAIR]}}
    return _vendor


@pytest.fixture(scope="module")
def remote(_vendor: ChartImgServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server with a key of the double."""
    settings = {"CHART_IMG_URL": _vendor.url, "CHART_IMG_DOCS_URL": _vendor.url, "CHART_IMG_PLAN": "ULTRA"}
    with chart_image(tmp_path_factory.mktemp("remote"), key=KEY, LOG_LEVEL="info", **settings) as made:
        yield made


@pytest.fixture
def fresh(vendor: ChartImgServer, tmp_path: Path) -> Iterator[Client]:
    """The same in a home of its own, which has no copies."""
    settings = {"CHART_IMG_URL": vendor.url, "CHART_IMG_DOCS_URL": vendor.url, "CHART_IMG_PLAN": "ULTRA"}
    with chart_image(tmp_path, key=KEY, **settings) as made:
        yield made


def properties(client: Client, tool: str) -> dict[str, Any]:
    found: dict[str, Any] = tools(client)[tool]["inputSchema"]["properties"]
    return found


def of_path(asked: list[Asked], path: str) -> list[Asked]:
    return [each for each in asked if each.path == path]


@row("Six tools, names")
def test_there_are_six_tools(desk: Client) -> None:
    assert list(tools(desk)) == [
        "fetch_chart_documentation",
        "get_exchanges",
        "get_symbols",
        "construct_chart_config",
        "validate_chart_config",
        "generate_chart_image",
    ]


# Tool 1: fetch_chart_documentation


@row("fetch_chart_documentation input section (4 values), forceRefresh")
def test_a_section_of_the_documentation_is_chosen(desk: Client) -> None:
    found = properties(desk, "fetch_chart_documentation")
    assert set(found) >= {"section", "forceRefresh"}
    assert found["section"]["enum"] == ["indicators", "parameters", "exchanges", "all"]
    assert found["forceRefresh"]["type"] == "boolean"
    assert "required" not in tools(desk)["fetch_chart_documentation"]["inputSchema"]


@row("output success, data, cachedAt, error?")
def test_the_documentation_says_how_old_it_is(desk: Client) -> None:
    found = ask(desk, "fetch_chart_documentation", section="parameters")
    assert found["success"] is True
    assert datetime.fromisoformat(found["cachedAt"]) <= datetime.now(UTC)
    assert "error" not in found
    wrong = refused(desk, "fetch_chart_documentation", section="everything")
    assert wrong["success"] is False
    assert "section" in wrong["error"]


@row("data.indicators: name, displayName, category, inputs{type, default, description, min?, max?}")
def test_an_indicator_is_documented_with_its_inputs(desk: Client) -> None:
    listed = ask(desk, "fetch_chart_documentation", section="indicators")["data"]["indicators"]
    for each in listed:
        assert set(each) >= {"name", "displayName", "category", "inputs"}
        for given in each["inputs"].values():
            assert set(given) >= {"type", "default", "description"}
            assert set(given) <= {"type", "default", "description", "min", "max"}
            assert given["type"] in {"number", "string", "boolean"}
    named = {each["name"]: each for each in listed}
    bands, rsi = named["BollingerBands@tv-basicstudies"], named["RSI@tv-basicstudies"]
    assert (bands["displayName"], bands["category"]) == ("Bollinger Bands", "Volatility")
    assert (bands["inputs"]["length"]["default"], bands["inputs"]["stdDev"]["default"]) == (20, 2)
    assert (rsi["category"], rsi["inputs"]["length"]["default"]) == ("Momentum", 14)


@row("data.chartParameters intervals, ranges, themes, styles")
def test_the_parameters_of_a_chart_are_documented(desk: Client) -> None:
    found = ask(desk, "fetch_chart_documentation", section="parameters")["data"]["chartParameters"]
    assert {"1m", "5m", "15m", "1h"} <= set(found["intervals"])
    assert {"1D", "5D", "1M", "3M"} <= set(found["ranges"])
    assert found["themes"] == ["light", "dark"]
    assert {"candle", "line", "bar"} <= set(found["styles"])


@row("data.rateLimits, data.examples")
def test_limits_and_examples_are_documented(desk: Client) -> None:
    found = ask(desk, "fetch_chart_documentation", section="all")["data"]
    for plan in ("BASIC", "PRO", "MEGA", "ULTRA"):
        assert set(found["rateLimits"][plan]) >= {"requestsPerSecond", "dailyMax", "maxResolution", "maxStudies"}
    for example in found["examples"]:
        assert set(example) == {"description", "config"}
        assert ask(desk, "validate_chart_config", config=example["config"])["valid"] is True


differs(
    "Example response: data.studies",
    "The contract's schema names the field `data.indicators`, its example `data.studies`. The desk follows the schema, "
    "which a client can rely on.",
)


@row("Example response: data.studies")
def test_the_field_has_the_name_of_the_schema(desk: Client) -> None:
    assert set(ask(desk, "fetch_chart_documentation", section="indicators")["data"]) == {"indicators"}


@row("Cache 24 h")
def test_the_documentation_is_fetched_once_and_again_on_request(fresh: Client, vendor: ChartImgServer) -> None:
    first = ask(fresh, "fetch_chart_documentation", section="parameters")
    assert ask(fresh, "fetch_chart_documentation", section="parameters")["cachedAt"] == first["cachedAt"]
    assert len(of_path(vendor.asked, "/")) == 1
    ask(fresh, "fetch_chart_documentation", section="parameters", forceRefresh=True)
    assert len(of_path(vendor.asked, "/")) == 2


shown_by("Cache 24 h", "desk/chart_image/test_documentation.py::test_the_page_is_fetched_once_a_day")


@row("Parse HTML, sections, anchors")
def test_the_vendors_page_is_read(fresh: Client) -> None:
    found = ask(fresh, "fetch_chart_documentation", section="all")["data"]
    assert found["chartParameters"]["themes"] == ["light", "dark", "sepia"]
    assert found["rateLimits"]["BASIC"]["maxResolution"] == "820x620"
    studies = ask(fresh, "fetch_chart_documentation", section="indicators")["data"]["indicators"]
    bands = next(each for each in studies if each["displayName"] == "Bollinger Bands")
    assert 25 in [given["default"] for given in bands["inputs"].values()], "the page's, not the catalogue's"


shown_by(
    "Parse HTML, sections, anchors",
    "desk/chart_image/test_documentation.py::test_limits_are_put_together_from_several_tables",
    "desk/chart_image/test_documentation.py::test_studies_are_found_in_headings_and_code_and_drawings_are_none",
)


@row("Fallback to the cached version on failure")
def test_the_copy_serves_while_the_vendor_fails(fresh: Client, vendor: ChartImgServer) -> None:
    first = ask(fresh, "fetch_chart_documentation", section="parameters")
    vendor.always = message(500, "oh")
    again = ask(fresh, "fetch_chart_documentation", section="parameters", forceRefresh=True)
    assert (again["data"], again["cachedAt"]) == (first["data"], first["cachedAt"])


shown_by(
    "Fallback to the cached version on failure",
    "desk/chart_image/test_documentation.py::test_the_catalogue_serves_when_the_docs_site_is_down",
)


@row("Log cache hits and misses")
def test_hits_and_misses_are_logged(remote: Client, vendor: ChartImgServer) -> None:
    ask(remote, "fetch_chart_documentation", section="parameters", forceRefresh=True)
    ask(remote, "fetch_chart_documentation", section="parameters")
    for words in (b"documentation: cache miss", b"documentation: cache hit"):
        wait_for(lambda words=words: words in b"".join(remote.errors), words.decode())  # type: ignore[misc]


# Tool 2: get_exchanges


@row("get_exchanges: success, exchanges{id,name,type,description}, count")
def test_exchanges_are_listed(desk: Client) -> None:
    found = ask(desk, "get_exchanges")
    assert (found["success"], found["count"]) == (True, len(found["exchanges"]))
    assert {tuple(each) for each in found["exchanges"]} == {("id", "name", "type", "description")}
    for wanted in (
        {"id": "BINANCE", "name": "Binance", "type": "crypto", "description": "Global cryptocurrency exchange"},
        {"id": "NASDAQ", "name": "NASDAQ", "type": "stock", "description": "US stock exchange"},
    ):
        assert wanted in found["exchanges"]


differs(
    "Calls /v3/tradingview/exchanges",
    "The vendor's list is at `/v3/tradingview/exchange/list`, which is asked first. The contract's path is asked if that "
    "one is unknown.",
)


@row("Calls /v3/tradingview/exchanges")
def test_the_contracts_path_of_exchanges_is_asked_if_the_vendors_is_unknown(
    fresh: Client, vendor: ChartImgServer
) -> None:
    vendor.contract_paths = True
    assert ask(fresh, "get_exchanges")["source"] == "vendor"
    assert [each.path for each in vendor.asked] == ["/v3/tradingview/exchange/list", "/v3/tradingview/exchanges"]


@row("Sorted by type then name; cached")
def test_exchanges_are_sorted_and_kept(desk: Client, fresh: Client, vendor: ChartImgServer) -> None:
    listed = ask(desk, "get_exchanges")["exchanges"]
    assert listed == sorted(listed, key=lambda each: (each["type"], each["name"]))
    assert {each["type"] for each in listed} <= {"crypto", "stock", "forex", "futures"}
    assert ask(fresh, "get_exchanges")["exchanges"] == ask(fresh, "get_exchanges")["exchanges"]
    assert len(vendor.asked) == 1


shown_by(
    "… for 1 hour, exchanges and symbols",
    "desk/chart_image/test_directory.py::test_a_list_is_kept_for_an_hour",
)


# Tool 3: get_symbols


@row("get_symbols input exchange, search, limit (50)")
def test_symbols_are_asked_for_by_exchange(desk: Client) -> None:
    schema = tools(desk)["get_symbols"]["inputSchema"]
    assert set(schema["properties"]) == {"exchange", "search", "limit"}
    assert schema["required"] == ["exchange"]
    assert schema["properties"]["limit"]["default"] == 50


@row("get_symbols output")
def test_symbols_are_listed(desk: Client) -> None:
    found = ask(desk, "get_symbols", exchange="BINANCE", search="BTC", limit=10)
    assert (found["success"], found["exchange"], found["count"]) == (True, "BINANCE", len(found["symbols"]))
    assert {
        "symbol": "BTCUSDT",
        "fullSymbol": "BINANCE:BTCUSDT",
        "description": "Bitcoin / TetherUS",
        "type": "crypto",
    } in found["symbols"]
    assert ask(desk, "get_symbols", exchange="BINANCE", limit=1)["count"] == 1


differs(
    "Calls /v3/tradingview/exchange/<EXCHANGE>/symbols",
    "The vendor's list is at `/v3/tradingview/exchange/<EXCHANGE>`, which is asked first. The contract's path is asked if "
    "that one is unknown.",
)


@row("Calls /v3/tradingview/exchange/<EXCHANGE>/symbols")
def test_the_contracts_path_of_symbols_is_asked_if_the_vendors_is_unknown(
    fresh: Client, vendor: ChartImgServer
) -> None:
    vendor.contract_paths = True
    assert [each["symbol"] for each in ask(fresh, "get_symbols", exchange="BINANCE")["symbols"]] == ["BTCUSDT"]
    assert of_path(vendor.asked, "/v3/tradingview/exchange/BINANCE/symbols")
    assert vendor.asked[0].path == "/v3/tradingview/exchange/BINANCE"


@row("Client-side search; cache per exchange")
def test_a_search_is_done_here_and_finds_what_begins_with_it(
    desk: Client, fresh: Client, vendor: ChartImgServer
) -> None:
    assert [ask(fresh, "get_symbols", exchange="BINANCE", search=each)["count"] for each in ("btc", "sol")] == [1, 0]
    assert len(of_path(vendor.asked, "/v3/tradingview/exchange/BINANCE")) == 1
    found = {each["symbol"] for each in ask(desk, "get_symbols", exchange="BINANCE", search="eth")["symbols"]}
    assert "ETHUSDT" in found
    assert "BTCUSDT" not in found, "TetherUS has these letters within a word"


# Tool 4: construct_chart_config


def constructed(client: Client, sentence: str, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(client, "construct_chart_config", naturalLanguage=sentence, **given)["config"]
    return found


@row("construct_chart_config input")
def test_a_sentence_and_preferences_are_given(desk: Client) -> None:
    schema = tools(desk)["construct_chart_config"]["inputSchema"]
    assert set(schema["properties"]) == {"naturalLanguage", "symbol", "exchange", "preferences"}
    assert schema["required"] == ["naturalLanguage"]
    preferences = schema["properties"]["preferences"]["properties"]
    assert set(preferences) == {"theme", "resolution", "interval", "range"}
    assert preferences["theme"]["enum"] == ["light", "dark"]
    wishes = {"theme": "light", "resolution": "800x600", "interval": "15m", "range": "5D"}
    found = constructed(desk, "show it", symbol="NASDAQ:AAPL", preferences=wishes)
    assert (found["symbol"], found["interval"], found["range"]) == ("NASDAQ:AAPL", "15m", "5D")
    assert (found["width"], found["height"]) == (800, 600)


@row("construct example verbatim → config")
def test_the_contracts_sentence_has_its_config(desk: Client) -> None:
    found = ask(
        desk,
        "construct_chart_config",
        naturalLanguage="Show Bitcoin with Bollinger Bands and RSI for the last 7 days",
        exchange="BINANCE",
        preferences={"theme": "dark"},
    )
    assert found["success"] is True
    assert found["config"] == {
        "symbol": "BINANCE:BTCUSDT",
        "interval": "1h",
        "range": "7D",
        "theme": "dark",
        "style": "candle",
        "width": 1200,
        "height": 675,
        "studies": [
            {"name": "BollingerBands@tv-basicstudies", "inputs": {"length": 20, "stdDev": 2}},
            {"name": "RSI@tv-basicstudies", "inputs": {"length": 14}},
        ],
    }
    assert found["warnings"] == []
    assert "7D" in found["reasoning"]


@row("Pattern Bitcoin/BTC → BTCUSDT")
def test_bitcoin(desk: Client) -> None:
    assert {constructed(desk, f"{name} chart")["symbol"] for name in ("Bitcoin", "BTC")} == {"BINANCE:BTCUSDT"}


@row("Pattern Ethereum/ETH → ETHUSDT")
def test_ethereum(desk: Client) -> None:
    assert {constructed(desk, f"{name} chart")["symbol"] for name in ("Ethereum", "ETH")} == {"BINANCE:ETHUSDT"}


@row("Pattern Apple/AAPL → NASDAQ:AAPL")
def test_apple(desk: Client) -> None:
    assert {constructed(desk, f"{name} chart")["symbol"] for name in ("Apple", "AAPL")} == {"NASDAQ:AAPL"}


@row("Pattern EUR/USD → FX:EURUSD")
def test_the_euro(desk: Client) -> None:
    assert constructed(desk, "EUR/USD chart")["symbol"] == "FX:EURUSD"


def ranges(client: Client, *times: str) -> set[str]:
    return {constructed(client, f"Bitcoin {each}")["range"] for each in times}


@row("Pattern last 7 days / past week → 7D")
def test_a_week(desk: Client) -> None:
    assert ranges(desk, "last 7 days", "past week") == {"7D"}


@row("Pattern last month / 30 days → 1M")
def test_a_month(desk: Client) -> None:
    assert ranges(desk, "last month", "30 days") == {"1M"}


@row("Pattern last year → 1Y")
def test_a_year(desk: Client) -> None:
    assert ranges(desk, "last year") == {"1Y"}


@row("Pattern today → 1D")
def test_today(desk: Client) -> None:
    assert ranges(desk, "today") == {"1D"}


def intervals(client: Client, *spans: str) -> set[str]:
    return {constructed(client, f"Bitcoin last {each}")["interval"] for each in spans}


@row("Pattern below 1D → 5m or 15m")
def test_less_than_a_day_has_minutes(desk: Client) -> None:
    assert intervals(desk, "2 hours", "6 hours", "12 hours") <= {"5m", "15m"}


@row("Pattern 1D-7D → 1h")
def test_a_day_to_a_week_has_hours(desk: Client) -> None:
    assert intervals(desk, "day", "3 days", "7 days") == {"1h"}


@row("Pattern 1M-3M → 4h or 1D")
def test_a_month_to_a_quarter_has_four_hours_or_days(desk: Client) -> None:
    assert intervals(desk, "month", "2 months", "3 months") <= {"4h", "1D"}


@row("Pattern over 3M → 1D or 1W")
def test_more_than_a_quarter_has_days_or_weeks(desk: Client) -> None:
    assert intervals(desk, "6 months", "year", "5 years") <= {"1D", "1W"}


def studies(client: Client, *names: str) -> set[str]:
    return {study["name"] for name in names for study in constructed(client, f"Bitcoin with {name}")["studies"]}


@row("Pattern Bollinger Bands")
def test_bollinger_bands(desk: Client) -> None:
    assert studies(desk, "Bollinger Bands") == {"BollingerBands@tv-basicstudies"}


@row("Pattern RSI / Relative Strength")
def test_rsi(desk: Client) -> None:
    assert studies(desk, "RSI", "Relative Strength") == {"RSI@tv-basicstudies"}


@row("Pattern MACD")
def test_macd(desk: Client) -> None:
    assert studies(desk, "MACD") == {"MACD@tv-basicstudies"}


@row("Pattern Moving Average / MA")
def test_moving_average(desk: Client) -> None:
    assert studies(desk, "Moving Average", "MA") == {"MA@tv-basicstudies"}


@row("Warnings for ambiguous input")
@pytest.mark.parametrize(
    ("sentence", "named"), [("Bitcoin and Ethereum", "BINANCE:ETHUSDT"), ("Bitcoin with a squiggle", "squiggle")]
)
def test_what_is_ambiguous_or_unknown_is_a_warning(desk: Client, sentence: str, named: str) -> None:
    (warning,) = ask(desk, "construct_chart_config", naturalLanguage=sentence)["warnings"]
    assert named in warning


# Tool 5: validate_chart_config


def problems(client: Client, plan: str = "BASIC", **fields: Any) -> dict[str, str]:
    """The fields of a config that are errors, with the messages."""
    found = ask(client, "validate_chart_config", config={**CONFIG, **SMALL, **fields}, planLevel=plan)
    errors = {each["field"]: each["message"] for each in found["errors"] if each["severity"] == "error"}
    assert found["valid"] is not bool(errors)
    return errors


@row("validate_chart_config input and output")
def test_a_config_is_checked_against_a_plan(desk: Client) -> None:
    schema = tools(desk)["validate_chart_config"]["inputSchema"]
    assert set(schema["properties"]) == {"config", "planLevel"}
    assert schema["required"] == ["config"]
    assert set(schema["properties"]["planLevel"]["enum"]) >= {"BASIC", "PRO", "MEGA", "ULTRA"}
    found = ask(desk, "validate_chart_config", config={**CONFIG, **SMALL}, planLevel="BASIC")
    assert found == {
        "valid": True,
        "errors": [],
        "suggestions": [],
        "rateLimitCheck": {
            "withinLimits": True,
            "studyCount": 0,
            "maxStudies": 3,
            "resolution": "400x300",
            "maxResolution": "800x600",
        },
    }


@row("validate example verbatim")
def test_the_contracts_config_exceeds_its_plan(desk: Client) -> None:
    names = ("BollingerBands@tv-basicstudies", "RSI@tv-basicstudies")
    config = {**CONFIG, "studies": [{"name": name} for name in names], "width": 1920, "height": 1080}
    assert ask(desk, "validate_chart_config", config=config, planLevel="BASIC") == {
        "valid": False,
        "errors": [
            {
                "field": "resolution",
                "message": "Resolution 1920x1080 exceeds BASIC plan limit of 800x600",
                "severity": "error",
            }
        ],
        "suggestions": [
            "Reduce width to 800 and height to 600 for BASIC plan",
            "Upgrade to PRO plan for higher resolution",
        ],
        "rateLimitCheck": {
            "withinLimits": True,
            "studyCount": 2,
            "maxStudies": 3,
            "resolution": "1920x1080",
            "maxResolution": "800x600",
        },
    }


@row("symbol EXCHANGE:SYMBOL required; interval required and valid")
def test_symbol_and_interval_are_checked(desk: Client) -> None:
    assert problems(desk, symbol="BTCUSDT") == {"symbol": "Invalid symbol format"}
    assert set(problems(desk, interval="7h")) == {"interval"}
    empty = ask(desk, "validate_chart_config", config={})
    assert {each["field"] for each in empty["errors"]} == {"symbol", "interval"}


@row("symbol EXCHANGE:SYMBOL required; interval required and valid")
def test_a_symbol_is_valid_if_it_can_be_drawn(desk: Client) -> None:
    unknown = {**CONFIG, **SMALL, "symbol": "BINANCE:ZZZZZZ"}
    valid = ask(desk, "validate_chart_config", config=unknown)["valid"]
    assert valid is (desk.call("generate_chart_image", {"config": unknown})["result"]["isError"] is False)


@row("symbol EXCHANGE:SYMBOL required; interval required and valid")
@pytest.mark.parametrize("symbol", ["NASDAQ:BTCUSDT", "NASDAQ:APLE", "FX:EURUSX"])
def test_a_symbol_that_is_suggested_can_be_drawn(desk: Client, symbol: str) -> None:
    """It has the form that the tools accept, on the same exchange if that one lists it."""
    suggested = re.findall(r"'(.+?)'", problems(desk, "ULTRA", symbol=symbol)["symbol"])
    assert suggested
    for each in suggested:
        assert problems(desk, "ULTRA", symbol=each) == {}
        assert symbol == "NASDAQ:BTCUSDT" or each.partition(":")[0] == symbol.partition(":")[0]


@row("resolution, studies, theme, style rules")
def test_resolution_studies_theme_and_style_are_checked(desk: Client) -> None:
    assert set(problems(desk, width=801, height=600)) == {"resolution"}
    assert problems(desk, "PRO", width=801, height=600) == {}
    four = [{"name": f"{name}@tv-basicstudies"} for name in ("RSI", "MACD", "BollingerBands", "MA")]
    assert set(problems(desk, studies=four)) == {"studies"}
    assert problems(desk, studies=four[:3]) == {}
    assert set(problems(desk, theme="pink", style="x")) == {"theme", "style"}


@row("Drawing count against the plan")
def test_drawings_are_counted_against_the_plan(desk: Client) -> None:
    assert problems(desk, drawings=[LINE] * 3) == {}
    assert set(problems(desk, drawings=[LINE] * 4)) == {"drawings"}


@row("Warnings for suboptimal configs")
def test_more_bars_than_are_drawn_are_a_warning(desk: Client) -> None:
    found = ask(desk, "validate_chart_config", config={**CONFIG, **SMALL, "interval": "1m", "range": "1Y"})
    assert found["valid"] is True
    assert [(each["field"], each["severity"]) for each in found["errors"]] == [("interval", "warning")]
    assert found["suggestions"] == ["Set interval to 6h to show all of range 1Y"]


# Tool 6: generate_chart_image


@row("generate_chart_image input config, storage, format")
def test_a_picture_is_asked_for_by_config_storage_and_format(desk: Client) -> None:
    schema = tools(desk)["generate_chart_image"]["inputSchema"]
    assert set(schema["properties"]) == {"config", "storage", "format"}
    assert schema["required"] == ["config"]
    assert schema["properties"]["format"]["enum"] == ["png", "jpeg"]


@row("generate example verbatim")
def test_the_contracts_picture_is_stored_with_its_metadata(desk: Client) -> None:
    config = {**CONFIG, "range": "7D", "studies": [{"name": "BollingerBands@tv-basicstudies"}]}
    found = ask(desk, "generate_chart_image", config=config, storage=True, format="png")
    assert found["success"] is True
    assert found["imageUrl"].endswith(".png")
    assert "imageData" not in found
    metadata = found["metadata"]
    assert (metadata["format"], metadata["resolution"]) == ("PNG", "1200x675")
    assert datetime.fromisoformat(metadata["generatedAt"]) < datetime.fromisoformat(metadata["expiresAt"])
    assert found["apiResponse"] == {"statusCode": 200}


@row("imageData base64 if storage=false")
@pytest.mark.parametrize("form", ["png", "jpeg"])
def test_a_picture_that_is_not_stored_is_base64(desk: Client, form: str) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    result = desk.call("generate_chart_image", {"config": {**CONFIG, **SMALL}, "format": form})["result"]
    found = result["structuredContent"]
    assert set(found) == {"success", "imageData", "metadata", "apiResponse"}
    assert (found["metadata"]["format"], found["metadata"]["resolution"]) == (form.upper(), "400x300")
    assert before <= datetime.fromisoformat(found["metadata"]["generatedAt"]) <= datetime.now(UTC)
    assert found["apiResponse"] == {"statusCode": 200}
    (image,) = [item for item in result["content"] if item["type"] == "image"]
    assert (image["mimeType"], image["data"]) == (f"image/{form}", found["imageData"])
    picture = opened(base64.b64decode(found["imageData"]))
    assert (picture.format, picture.size) == (form.upper(), (400, 300))


@row("POST /v2/tradingview/advanced-chart[/storage], x-api-key")
def test_the_vendor_is_asked_with_the_key(remote: Client, vendor: ChartImgServer) -> None:
    for storage, path in ((False, "/v2/tradingview/advanced-chart"), (True, "/v2/tradingview/advanced-chart/storage")):
        found = ask(remote, "generate_chart_image", config={**CONFIG, **SMALL}, storage=storage)
        assert ("imageUrl" in found) is storage
        asked = vendor.asked[-1]
        assert (asked.method, asked.path, asked.headers["x-api-key"]) == ("POST", path, KEY)
        assert (asked.json["symbol"], asked.json["interval"]) == ("BINANCE:BTCUSDT", "1h")


@row("Rate limiting with exponential backoff")
def test_a_busy_vendor_is_asked_again(remote: Client, vendor: ChartImgServer) -> None:
    vendor.script.append(message(429, "Too Many Requests", Retry_After="0"))
    assert ask(remote, "generate_chart_image", config={**CONFIG, **SMALL})["success"] is True
    assert len(vendor.asked) == 2


shown_by(
    "Rate limiting with exponential backoff",
    "desk/chart_image/test_vendor.py::test_retries_fire_on_429_and_5xx",
    "desk/chart_image/test_vendor.py::test_retry_after_is_honoured_within_the_time_limit",
)


@row("At most 3 retries")
def test_a_vendor_that_stays_busy_is_asked_four_times(remote: Client, vendor: ChartImgServer) -> None:
    vendor.always = message(503, "busy", Retry_After="0")
    assert refused(remote, "generate_chart_image", config={**CONFIG, **SMALL})["success"] is False
    assert len(vendor.asked) == 4


# Errors


@row("Authentication error text")
def test_a_wrong_key_has_the_contracts_words(remote: Client, vendor: ChartImgServer) -> None:
    vendor.always = message(401, "Unauthorized")
    assert refused(remote, "generate_chart_image", config={**CONFIG, **SMALL}) == {
        "success": False,
        "error": "Invalid API key. Check CHART_IMG_API_KEY environment variable.",
    }


@row("Rate limit error text and retryAfter")
def test_too_many_requests_have_the_contracts_words(remote: Client, vendor: ChartImgServer) -> None:
    vendor.always = message(429, "Too Many Requests", Retry_After="60")
    assert refused(remote, "generate_chart_image", config={**CONFIG, **SMALL}) == {
        "success": False,
        "error": "Rate limit exceeded. Try again in 60 seconds.",
        "retryAfter": 60,
    }


@row("Validation error {success:false, error:'Invalid configuration', details[field,message]}")
def test_a_wrong_config_has_the_contracts_words(desk: Client) -> None:
    found = refused(desk, "generate_chart_image", config={**CONFIG, "symbol": "BTCUSDT"})
    assert (found["success"], found["error"]) == (False, "Invalid configuration")
    (problem,) = found["details"]
    assert (problem["field"], problem["message"]) == ("symbol", "Invalid symbol format")


@row("Errors reach the client")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("fetch_chart_documentation", {"section": "everything"}),
        ("get_symbols", {"exchange": "NOPE"}),
        ("construct_chart_config", {"naturalLanguage": "show me something"}),
        ("validate_chart_config", {"config": {}, "planLevel": "GOLD"}),
        ("generate_chart_image", {"config": {**CONFIG, "symbol": "BTCUSDT"}}),
    ],
)
def test_an_error_is_read_from_the_text(desk: Client, tool: str, arguments: dict[str, Any]) -> None:
    found = assert_readable_error(desk, tool, **arguments)
    assert found["success"] is False
    assert found["error"]


shown_by(
    "Interaction patterns 1-4",
    "servers/test_chart_image_patterns.py::test_pattern_1_simple_chart_generation",
    "servers/test_chart_image_patterns.py::test_pattern_2_exploration_first",
    "servers/test_chart_image_patterns.py::test_pattern_3_documentation_driven",
    "servers/test_chart_image_patterns.py::test_pattern_4_iterative_refinement",
)


# Latency, as the client sees it. The fastest of several calls counts: the machine may do something else meanwhile.


def fastest(client: Client, tool: str, *calls: dict[str, Any]) -> float:
    """The seconds of the fastest call."""
    found = []
    for arguments in calls:
        began = time.monotonic()
        ask(client, tool, **arguments)
        found.append(time.monotonic() - began)
    return min(found)


@row("Latency fetch_chart_documentation < 2 s, cached < 50 ms")
def test_the_documentation_comes_within_two_seconds(fresh: Client) -> None:
    assert fastest(fresh, "fetch_chart_documentation", *[{"forceRefresh": True}] * 3) < 2
    assert fastest(fresh, "fetch_chart_documentation", *[{}] * 10) < 0.05


@row("Latency get_exchanges < 1 s, cached < 50 ms; get_symbols < 2 s")
def test_lists_come_within_one_and_two_seconds(fresh: Client, vendor: ChartImgServer) -> None:
    exchanges = ("BINANCE", "KRAKEN", "OKX")
    vendor.symbols = {name: {"updatedAt": None, "payload": [{**PAIR, "exchange": name}]} for name in exchanges}
    assert fastest(fresh, "get_symbols", *({"exchange": name} for name in exchanges)) < 2
    assert fastest(fresh, "get_exchanges", {}) < 1
    assert len(vendor.asked) == 4, "none was cached"
    assert fastest(fresh, "get_exchanges", *[{}] * 10) < 0.05
    assert len(vendor.asked) == 4


@row("Latency construct < 500 ms")
def test_a_config_is_constructed_within_half_a_second(desk: Client) -> None:
    names = ("Bitcoin", "Ethereum", "Apple", "EUR/USD", "Tesla")
    sentences = [{"naturalLanguage": f"Show {name} with RSI for the last month"} for name in names]
    assert fastest(desk, "construct_chart_config", *sentences) < 0.5


@row("Latency validate < 200 ms")
def test_a_config_is_validated_within_a_fifth_of_a_second(desk: Client) -> None:
    assert fastest(desk, "validate_chart_config", *[{"config": {**CONFIG, **SMALL}}] * 10) < 0.2


@row("Latency generate < 5 s")
def test_a_picture_is_drawn_within_five_seconds(desk: Client) -> None:
    configs = [{"config": {**CONFIG, "range": each}} for each in ("1D", "5D", "1M")]
    assert fastest(desk, "generate_chart_image", *configs) < 5
