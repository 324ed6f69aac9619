"""The contract's four interaction patterns over MCP: drawn here, by a self-hosted chart API, and by a vendor that fails."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.client import PATIENCE
from tests.desk.chart_image.pages import PAGE
from tests.gateway.streamable.gateways import Up
from tests.servers.chart_image_servers import SMALL, ChartImage, chart_image, opened
from tests.servers.chart_img_server import KEY, ChartImgServer, cut, hung_up, image, message, picture, problem
from tests.servers.quotes_server import Work, reply

SECONDS = 2.5
"""The time limit of a call to the vendor that fails."""


@dataclass(frozen=True)
class Setup:
    """A server, what it says about itself, and what makes the vendor fail before a step, if anything does."""

    server: ChartImage
    engine: str
    lists: str
    documentation: str
    fail: Callable[[], None] = lambda: None
    failed: Callable[[], bool] = lambda: True
    """Returns True if every planned failure has happened."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("up")) as made:
        yield made


@pytest.fixture(scope="module")
def here(up: Up) -> Iterator[Setup]:
    """No key: this desk draws. The gateway of its home serves what it stores."""
    with chart_image(up.home) as server:
        yield Setup(server, "openbell", "desk", "package")


@pytest.fixture(scope="module")
def self_hosted(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    """The vendor is the chart API of a running `openbell up`, the key a token of it."""
    settings = {"CHART_IMG_URL": f"http://{up.host}", "CHART_IMG_PLAN": "ULTRA"}
    with chart_image(tmp_path_factory.mktemp("self_hosted"), key=up.tokens["writer"], **settings) as server:
        yield Setup(server, up.host, "vendor", "package")


@pytest.fixture(scope="module")
def double() -> Iterator[ChartImgServer]:
    with ChartImgServer() as made:
        yield made


@pytest.fixture(scope="module")
def impatient(double: ChartImgServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChartImage]:
    """A server of the double that gives up soon."""
    settings = {"CHART_IMG_URL": double.url, "CHART_IMG_PLAN": "ULTRA", "POOL_CHART_IMG_TIMEOUT": str(SECONDS)}
    with chart_image(tmp_path_factory.mktemp("impatient"), key=KEY, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def failing(double: ChartImgServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    """The vendor fails before it answers each request, in turn: too many requests, two errors, a broken connection."""
    at_once = {"Retry_After": "0"}
    faults: list[list[bytes | Work]] = [
        [message(429, "Too Many Requests", **at_once)],
        [message(500, "Internal Server Error", **at_once), reply(502, b"<html>", "text/html", **at_once)],
        [message(503, "busy", "error", **at_once), message(429, "Too Many Requests", **at_once)],
    ]

    def fail() -> None:
        double.script.extend(faults[0])
        faults.append(faults.pop(0))

    double.reset()
    double.page = PAGE.encode()
    pair = {"symbol": "BTCUSDT", "description": "Bitcoin / TetherUS", "type": "crypto", "exchange": "Binance"}
    double.symbols = {"BINANCE": {"updatedAt": None, "payload": [pair]}}
    settings = {"CHART_IMG_URL": double.url, "CHART_IMG_DOCS_URL": double.url, "CHART_IMG_PLAN": "ULTRA"}
    with chart_image(tmp_path_factory.mktemp("failing"), key=KEY, **settings) as server:
        yield Setup(server, double.url.partition("//")[2], "vendor", "vendor", fail, lambda: not double.script)


@pytest.fixture(params=["here", "self_hosted", "failing"])
def setup(request: pytest.FixtureRequest) -> Setup:
    found: Setup = request.getfixturevalue(request.param)
    return found


def constructed(setup: Setup, sentence: str, **arguments: Any) -> dict[str, Any]:
    found = setup.server.ask("construct_chart_config", naturalLanguage=sentence, **arguments)
    config: dict[str, Any] = {**found["config"], **SMALL}
    return config


def drawn(setup: Setup, config: dict[str, Any]) -> None:
    """Draws a config as Base64 and as a URL."""
    setup.fail()
    found = setup.server.ask("generate_chart_image", config=config, format="png")
    assert (found["success"], found["apiResponse"]["statusCode"]) == (True, 200)
    assert found["metadata"]["engine"] == setup.engine
    resolution = f"{config['width']}x{config['height']}"
    assert (found["metadata"]["format"], found["metadata"]["resolution"]) == ("PNG", resolution)
    shown = opened(setup.server.picture(config=config))
    assert shown.size == (config["width"], config["height"])
    setup.fail()
    stored = setup.server.ask("generate_chart_image", config=config, storage=True)
    assert stored["metadata"]["expiresAt"] > stored["metadata"]["generatedAt"]
    assert setup.failed()
    if stored["imageUrl"].startswith("http://127.0.0.1"):
        with urllib.request.urlopen(stored["imageUrl"], timeout=PATIENCE) as answer:
            assert opened(answer.read()).size == shown.size


def test_pattern_1_simple_chart_generation(setup: Setup) -> None:
    config = constructed(setup, "Show Bitcoin with Bollinger Bands and RSI for the last 7 days")
    assert setup.server.ask("validate_chart_config", config=config)["valid"] is True
    drawn(setup, config)


def test_pattern_2_exploration_first(setup: Setup) -> None:
    setup.fail()
    exchanges = setup.server.ask("get_exchanges")
    assert exchanges["source"] == setup.lists
    exchange = next(each["id"] for each in exchanges["exchanges"] if each["name"] == "Binance")
    setup.fail()
    symbols = setup.server.ask("get_symbols", exchange=exchange, search="bitcoin", limit=10)
    assert symbols["source"] == setup.lists
    chosen = next(each for each in symbols["symbols"] if each["symbol"] == "BTCUSDT")
    config = constructed(setup, "4h candles of the last month with MACD", symbol=chosen["fullSymbol"])
    assert (config["symbol"], config["range"], config["interval"]) == ("BINANCE:BTCUSDT", "1M", "4h")
    drawn(setup, config)


def test_pattern_3_documentation_driven(setup: Setup) -> None:
    documented = setup.server.ask("fetch_chart_documentation", section="indicators")
    assert documented["source"] == setup.documentation
    known = {each["displayName"]: each for each in documented["data"]["indicators"]}
    study = known["Average True Range"]
    longest = study["inputs"]["length"]["max"]
    config = constructed(setup, "Ethereum since the start of the year, line chart, dark")
    config["studies"] = [{"name": study["name"], "inputs": {"length": longest + 1}}]
    wrong = setup.server.ask("validate_chart_config", config=config)
    assert [each["field"] for each in wrong["errors"]] == ["studies[0].inputs.length"]
    config["studies"][0]["inputs"]["length"] = study["inputs"]["length"]["default"]
    assert setup.server.ask("validate_chart_config", config=config)["valid"] is True
    drawn(setup, config)


def test_pattern_4_iterative_refinement(setup: Setup) -> None:
    sentence = "AAPL daily for 1 year with 50 and 200 day moving averages, RSI, MACD and volume"
    wishes: dict[str, Any] = {"resolution": "1920x1080"}
    first = setup.server.ask("construct_chart_config", naturalLanguage=sentence, preferences=wishes)["config"]
    refused = setup.server.ask("validate_chart_config", config=first, planLevel="BASIC")
    assert (refused["valid"], refused["rateLimitCheck"]["withinLimits"]) == (False, False)
    sentence = corrected(sentence, wishes, first, refused["suggestions"])
    config = setup.server.ask("construct_chart_config", naturalLanguage=sentence, preferences=wishes)["config"]
    checked = setup.server.ask("validate_chart_config", config=config, planLevel="BASIC")
    assert checked["valid"] is True
    assert (config["width"], config["height"], len(config["studies"])) == (800, 600, 3)
    assert checked["rateLimitCheck"]["withinLimits"] is True
    drawn(setup, config)


def corrected(sentence: str, wishes: dict[str, Any], config: dict[str, Any], suggestions: list[str]) -> str:
    """Follows suggestions: changes the preferences, and returns a sentence without the studies that are too many."""
    for text in suggestions:
        if size := re.match(r"Reduce width to (\d+) and height to (\d+)", text):
            wishes["resolution"] = f"{size[1]}x{size[2]}"
        elif number := re.match(r"Remove (\d+) of the studies", text):
            names = [each["name"].partition("@")[0] for each in config["studies"][-int(number[1]) :]]
            sentence += "".join(f", no {name}" for name in names)
    return sentence


# A vendor that fails


async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Sends nothing until the client goes."""
    await reader.read()


BUSY = message(429, "Too Many Requests", Retry_After="0")
NO_KEY = "Invalid API key. Check CHART_IMG_API_KEY environment variable."
CONFIG = {"symbol": "BINANCE:BTCUSDT", "interval": "1h", **SMALL}
FAILURES: dict[str, tuple[list[bytes | Work], str]] = {
    "quota": ([message(429, "Limit Exceeded")], r"Try again in \d+ seconds\. The vendor says: Limit Exceeded"),
    "500": ([message(500, "oh", Retry_After="0")] * 4, "the vendor failed with HTTP 500: oh"),
    "501": ([message(501, "oh")], "the vendor failed with HTTP 501: oh"),
    "resolution": (
        [message(403, "Exceed Max Usage Resolution Limit (800x600)")],
        r"Exceed Max Usage Resolution Limit \(800x600\)",
    ),
    "parameters": ([message(403, "Exceed Max Usage Parameter Limit (3)")], r"Exceed Max Usage Parameter Limit \(3\)"),
    "wrong key": ([message(403, "Forbidden")], NO_KEY),
    "no key": ([message(401, "Missing API Key")], NO_KEY),
    "409": ([message(409, "session")], "the vendor refused the request with HTTP 409: session"),
    "page": ([reply(200, b"<html>hotel</html>", "text/html")], "the vendor sent no picture but text/html"),
    "GIF": ([image(b"GIF89a")], "the vendor sent a picture that is neither PNG nor JPEG"),
    "part": ([image(picture()[:-20])], "the vendor sent only a part of a picture; try again"),
    "redirect": ([reply(302, b"", Location="http://127.0.0.1/")], "the vendor answered with a redirect"),
    "slow": ([silent], "did not answer in time; try again later"),
}
"""What the vendor does, and a pattern of the error."""


@pytest.mark.parametrize("name", FAILURES)
def test_each_failure_of_the_vendor_has_its_answer(impatient: ChartImage, double: ChartImgServer, name: str) -> None:
    script, pattern = FAILURES[name]
    double.script = deque(script)
    found = impatient.refused("generate_chart_image", config=CONFIG)
    assert re.search(pattern, found["error"]), found
    assert ("retryAfter" in found) == (name in {"quota", "500"})
    assert not double.script


def test_a_refused_config_has_the_vendors_details(impatient: ChartImage, double: ChartImgServer) -> None:
    for body, field, text in (
        ([problem("x", "studies[0].name")], "studies[0].name", "Invalid value"),
        ("Invalid Symbol", "symbol", "Invalid Symbol"),
    ):
        double.script = deque([message(422, body)])
        assert impatient.refused("generate_chart_image", config=CONFIG) == {
            "success": False,
            "error": "Invalid configuration",
            "details": [{"field": field, "message": text}],
        }


@pytest.mark.parametrize(
    "script", [[BUSY], [BUSY, BUSY, BUSY], [cut], [hung_up]], ids=["one", "three", "cut", "hung up"]
)
def test_a_failure_that_passes_is_not_seen(
    impatient: ChartImage, double: ChartImgServer, script: list[bytes | Work]
) -> None:
    double.script = deque(script)
    assert opened(impatient.picture(config=CONFIG)).size == (400, 300)
    assert not double.script
