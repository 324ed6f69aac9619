"""The documentation: what a page says, what this package adds, and what remains if the page fails."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.charts.config.choices import INTERVALS, PLANS, PRESETS, STYLES, THEMES
from openbell.charts.config.ranges import read_range
from openbell.charts.studies.catalogue import all_studies, find
from openbell.desk.pictures.chart_image.documentation import (
    Documentation,
    DocumentationService,
    catalogue_documentation,
    is_documentation,
    make_documentation,
    merged_documentation,
)
from openbell.desk.pictures.chart_image.http import VendorHttp
from openbell.desk.pictures.chart_image.page_facts import PageFacts, read_facts, read_page
from openbell.desk.settings import load
from tests.desk.chart_image.clients import NOON, HandClock
from tests.desk.chart_image.pages import PAGE, PLANS_ACROSS, USELESS
from tests.servers.chart_img_server import ChartImgServer, hung_up
from tests.servers.quotes_server import forever, reply, silent

TITLES = frozenset(study.title for study in all_studies().values())
DAY = 24 * 3600.0
TOKENS = [
    *"<>/!-&;'\" \nabt",
    "<td>",
    "</td>",
    "<table>",
    "</table>",
    "<tr>",
    "<h1>",
    "</h2>",
    "<pre>",
    "<code>",
    "BASIC",
    "\u0130",
]


def facts(html: str) -> PageFacts:
    return read_facts(html, TITLES)


class TestCatalogue:
    def test_it_has_every_study_value_and_plan(self) -> None:
        data = catalogue_documentation()

        assert is_documentation(data)
        assert {each["name"] for each in data["indicators"]} == set(all_studies())
        parameters = data["chartParameters"]
        assert [parameters[name] for name in ("intervals", "ranges", "themes", "styles")] == [
            [*INTERVALS],
            [*PRESETS],
            [*THEMES],
            [*STYLES],
        ]
        assert len(parameters["drawings"]) == 15
        assert parameters["drawings"][0] == "Horizontal Line: price (text)"
        assert data["rateLimits"]["BASIC"] == {
            "requestsPerSecond": 1,
            "dailyMax": 50,
            "maxResolution": "800x600",
            "maxStudies": 3,
        }
        assert list(data["rateLimits"]) == list(PLANS)

    def test_an_indicator_is_described_as_in_the_contract(self) -> None:
        by_name = {each["name"]: each for each in catalogue_documentation()["indicators"]}
        bands = by_name["BollingerBands@tv-basicstudies"]

        assert (bands["displayName"], bands["category"]) == ("Bollinger Bands", "Volatility")
        assert bands["inputs"]["length"] == {
            "type": "number",
            "default": 20,
            "description": "length, bars",
            "min": 1,
            "max": 500,
        }
        assert by_name["RSI@tv-basicstudies"]["inputs"]["length"]["default"] == 14
        for each in by_name.values():
            for name, wanted in each["inputs"].items():
                assert wanted["description"], (each["name"], name)
                assert ("min" in wanted) == (wanted["type"] == "number")

    def test_its_examples_are_valid_configs(self) -> None:
        for example in catalogue_documentation()["examples"]:
            config = example["config"]
            assert config["interval"] in INTERVALS and ":" in config["symbol"] and example["description"]
            assert read_range(config["range"]) == config["range"]
            assert config.get("style", "candle") in STYLES and config.get("theme", "light") in THEMES
            for each in config["studies"]:
                study = find(each["name"])
                assert study.name == each["name"]
                by_name = {one.name: one for one in study.inputs}
                for name, value in each.get("inputs", {}).items():
                    assert by_name[name].check(value) == value


class TestPage:
    def test_allowed_values_are_those_of_the_page(self) -> None:
        assert facts(PAGE).parameters == {
            "intervals": ["1D", "1m", "3m", "5m", "1h", "10h", "1W"],
            "ranges": ["1D", "5D", "1M", "ALL", "YTD"],
            "themes": ["light", "dark", "sepia"],
            "styles": ["bar", "candle", "renko"],
        }

    def test_limits_are_put_together_from_several_tables(self) -> None:
        found = facts(PAGE).limits

        assert found["BASIC"] == {"requestsPerSecond": 2, "dailyMax": 60, "maxResolution": "820x620", "maxStudies": 4}
        assert found["ENTERPRISE"] == {
            "requestsPerSecond": 35,
            "dailyMax": 5000,
            "maxResolution": "2048x1920",
            "maxStudies": 50,
        }
        assert list(found) == list(PLANS)

    def test_plans_may_be_columns(self) -> None:
        assert facts(PLANS_ACROSS).limits == {
            "BASIC": {"requestsPerSecond": 2, "dailyMax": 51, "maxResolution": "801x601"},
            "PRO": {"requestsPerSecond": 11, "dailyMax": 501, "maxResolution": "1921x1081"},
        }

    def test_studies_are_found_in_headings_and_code_and_drawings_are_none(self) -> None:
        assert facts(PAGE).studies == {
            "Volume": {},
            "MACD": {"in_0": 13, "in_3": "hl2"},
            "Bollinger Bands": {"in_0": 25, "in_2": 500},
            "Relative Strength Index": {},
            "Brand New Study": {"in_0": 7, "smooth": True, "mode": "fast"},
        }

    def test_examples_are_found_in_json_and_in_commands(self) -> None:
        found = facts(PAGE).examples

        assert [each["config"]["symbol"] for each in found] == ["BINANCE:ETHUSDT", "NASDAQ:AAPL"]
        assert found[0]["description"] == "TradingView Snapshot v2 / Advanced Chart"

    def test_what_the_page_lacks_is_the_catalogues_and_that_is_known(self) -> None:
        data, sources = merged_documentation(facts(PAGE))
        by_name = {each["name"]: each for each in data["indicators"]}

        assert is_documentation(data)
        assert sources == {
            "indicators": "page and catalogue",
            "chartParameters": "page and catalogue",
            "rateLimits": "page",
            "examples": "page and catalogue",
        }
        assert len(by_name) == len(all_studies()) + 1
        assert by_name["Brand New Study"]["inputs"]["smooth"] == {
            "type": "boolean",
            "default": True,
            "description": "smooth",
        }
        bands = by_name["BollingerBands@tv-basicstudies"]["inputs"]
        assert (bands["length"]["default"], bands["stdDev"]["default"]) == (25, 2.0), "500 is out of its bounds"
        _, sources = merged_documentation(facts(PLANS_ACROSS))
        assert (sources["rateLimits"], sources["indicators"]) == ("page and catalogue", "catalogue")

    def test_json_that_cannot_be_sent_again_is_left_out(self) -> None:
        for bad in (
            '{"symbol": "A:B", "width": NaN}',
            '{"symbol": "A:B\\ud800"}',
            '{"symbol": "A:B", "x": ' + "[" * 9000,
        ):
            assert facts(f"<pre>{bad}</pre>").examples == []

    @pytest.mark.parametrize("name", USELESS)
    def test_a_page_of_something_else_is_not_the_documentation(self, name: str) -> None:
        assert not facts(USELESS[name]).useful

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.sampled_from(TOKENS), max_size=60).map("".join))
    def test_any_text_is_a_page(self, text: str) -> None:
        data, _ = merged_documentation(facts(text))
        assert is_documentation(data)

    @pytest.mark.parametrize(
        "unit",
        [
            "<a ",
            "<",
            "</",
            "<!--",
            "<!",
            "<?",
            "<a b='",
            "<![CDATA[",
            "<script",
            "<table>",
            "<td>",
            "<pre>",
            "<code>",
            "&",
            "{",
            "<li>",
        ],
    )
    def test_a_broken_page_takes_linear_time(self, unit: str) -> None:
        def seconds(size: int) -> float:
            begun = time.process_time()
            facts(unit * (size // len(unit)))
            return time.process_time() - begun

        small, large = seconds(2**15), seconds(2**18)
        assert large < 0.5 or large / small < 24, "eight times the size; quadratic would be 64 times"

    def test_a_page_cut_anywhere_is_read(self) -> None:
        whole = len(read_page(PAGE))
        counts = [len(read_page(PAGE[:at])) for at in range(0, len(PAGE), 97)]
        assert max(counts) <= whole and counts[-1] > whole / 2


class Docs:
    """A service in front of the double."""

    def __init__(self, server: ChartImgServer, folder: Path, **options: Any) -> None:
        self.clock = HandClock()
        self.server = server
        self.folder = folder
        self.options = options

    def make(self) -> DocumentationService:
        http = VendorHttp(self.server.url, connect=1.0)
        return DocumentationService(http, self.folder, timing=self.clock.timing, **self.options)

    def get(self, *forces: bool) -> list[Documentation]:
        """What one process gets, one call after the other."""

        async def run() -> list[Documentation]:
            service = self.make()
            try:
                return [await service.get(force=force) for force in forces or (False,)]
            finally:
                await service.close()

        return asyncio.run(run())


@pytest.fixture
def docs(server: ChartImgServer, tmp_path: Path) -> Docs:
    server.page = PAGE.encode()
    return Docs(server, tmp_path / "chart-image")


class TestCache:
    def test_the_page_is_fetched_once_a_day(self, docs: Docs, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "openbell")
        first, second = docs.get(False, False)
        assert (first.state, second.state, first.cached_at, first.error) == ("fetched", "cached", NOON, None)
        assert first.data["rateLimits"]["BASIC"]["dailyMax"] == 60 and first.sources["rateLimits"] == "page"
        docs.clock.passed = DAY - 1
        (third,) = docs.get()
        assert (third.state, third.cached_at, third.data) == ("cached", NOON, first.data), "by another process"
        assert len(docs.server.asked) == 1
        docs.clock.passed = DAY
        assert docs.get()[0].state == "fetched"
        assert len(docs.server.asked) == 2
        assert "documentation: cache hit" in caplog.text and "documentation: cache miss" in caplog.text

    def test_a_forced_refresh_fetches_a_fresh_page(self, docs: Docs) -> None:
        docs.get(False, True)
        assert len(docs.server.asked) == 2

    def test_concurrent_calls_fetch_once(self, docs: Docs) -> None:
        async def run() -> list[Documentation]:
            service = docs.make()
            try:
                return await asyncio.gather(*(service.get() for _ in range(8)))
            finally:
                await service.close()

        assert {each.state for each in asyncio.run(run())} == {"fetched"}
        assert len(docs.server.asked) == 1

    def test_a_copy_answers_in_a_millisecond(self, docs: Docs) -> None:
        async def run() -> float:
            service = docs.make()
            await service.get()
            begun = time.process_time()
            for _ in range(100):
                await service.get()
            await service.close()
            return time.process_time() - begun

        assert asyncio.run(run()) < 1.0

    def test_nothing_is_written_under_read_only(self, server: ChartImgServer, tmp_path: Path) -> None:
        server.page = PAGE.encode()
        docs = Docs(server, tmp_path / "chart-image", read_only=True)
        assert [each.state for each in docs.get(False, False)] == ["fetched", "cached"]
        assert list(tmp_path.iterdir()) == []

    def test_settings_make_the_service(self, server: ChartImgServer, tmp_path: Path) -> None:
        server.page = PAGE.encode()
        made = make_documentation(load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_CHART_IMG_DOCS_URL": server.url}))

        async def run() -> Documentation:
            try:
                return await made.get()
            finally:
                await made.close()

        assert asyncio.run(run()).state == "fetched"
        assert (tmp_path / "chart-image" / "documentation.json").exists()

    @pytest.mark.parametrize(
        "change",
        [
            lambda table: b"",
            lambda table: b"{",
            lambda table: b"[" * 100_000,
            lambda table: b"\xff\xfe",
            lambda table: json.dumps(table)[:-50].encode(),
            lambda table: json.dumps([]).encode(),
            lambda table: json.dumps(table | {"data": {}}).encode(),
            lambda table: json.dumps(table | {"data": table["data"] | {"indicators": [1]}}).encode(),
            lambda table: json.dumps(table | {"data": table["data"] | {"rateLimits": {"BASIC": 5}}}).encode(),
            lambda table: json.dumps(table | {"fetchedAt": "x"}).encode(),
            lambda table: json.dumps(table | {"fetchedAt": float("inf")}).encode(),
            lambda table: json.dumps(table | {"fetchedAt": table["fetchedAt"] + 1e6}).encode(),
            lambda table: json.dumps(table | {"url": "https://elsewhere.example"}).encode(),
            lambda table: json.dumps(table | {"version": "0.0.0"}).encode(),
            lambda table: json.dumps(table | {"sources": None}).encode(),
        ],
    )
    def test_a_damaged_copy_is_ignored(self, docs: Docs, tmp_path: Path, change: Any) -> None:
        docs.get()
        file = tmp_path / "chart-image" / "documentation.json"
        file.write_bytes(change(json.loads(file.read_bytes())))
        docs.server.script.append(reply(503, b"", "text/html"))
        assert docs.get()[0].state in {"catalogue", "stale"}
        assert docs.get()[0].state == "fetched"
        assert docs.get()[0].state == "cached"


class TestFailures:
    @pytest.mark.parametrize("name", USELESS)
    def test_a_useless_page_is_a_failure(self, docs: Docs, name: str) -> None:
        docs.server.page = USELESS[name].encode()
        (found,) = docs.get()
        assert (found.state, found.error) == ("catalogue", "the page of 127.0.0.1 has nothing of the documentation")

    @pytest.mark.parametrize(
        ("plan", "says"),
        [
            (reply(500, b"<h1>oops</h1>", "text/html"), "HTTP 500"),
            (reply(302, PAGE.encode(), "text/html", Location="/elsewhere"), "HTTP 302"),
            (reply(200, PAGE.encode(), "application/json"), "did not send an HTML page"),
            (reply(200, b"x" * (5 * 2**20), "text/html"), "more than 4,194,304 bytes"),
            (hung_up, "failed"),
            (silent, "in time"),
            (forever(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"<p>", 0.02), "in time"),
        ],
    )
    def test_without_a_copy_it_is_the_catalogue(
        self, server: ChartImgServer, tmp_path: Path, plan: Any, says: str
    ) -> None:
        server.always = plan
        (found,) = Docs(server, tmp_path, limit=0.3).get()

        assert (found.state, found.cached_at) == ("catalogue", NOON)
        assert found.error is not None and says in found.error
        assert found.data == catalogue_documentation() and set(found.sources.values()) == {"catalogue"}
        assert list(tmp_path.iterdir()) == [], "a failure is not kept"

    def test_the_catalogue_serves_when_the_docs_site_is_down(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        service = DocumentationService(VendorHttp(f"http://127.0.0.1:{port}"), tmp_path, timing=HandClock().timing)
        found = asyncio.run(service.get())
        assert found.state == "catalogue" and is_documentation(found.data)

    def test_an_old_copy_is_better_than_none(self, docs: Docs) -> None:
        (before,) = docs.get()
        docs.clock.passed = 3 * DAY
        docs.server.always = reply(503, b"", "text/html")
        (found,) = docs.get()

        assert (found.state, found.cached_at, found.data) == ("stale", NOON, before.data)
        assert found.error == "127.0.0.1 answered with HTTP 503"

    def test_a_forced_refresh_that_fails_returns_the_copy(self, docs: Docs) -> None:
        docs.get()
        docs.server.always = reply(503, b"", "text/html")
        _, found = docs.get(False, True)
        assert (found.state, found.error) == ("cached", "127.0.0.1 answered with HTTP 503")

    def test_after_a_failure_it_is_not_asked_for_a_minute(self, docs: Docs) -> None:
        docs.server.script.extend([reply(503, b"", "text/html")] * 2)

        async def run() -> list[str]:
            service, found = docs.make(), []
            for force, passed in ((False, 0.0), (False, 59.0), (True, 59.0), (False, 100.0), (False, 120.0)):
                docs.clock.passed = passed
                found.append((await service.get(force=force)).state)
            await service.close()
            return found

        assert asyncio.run(run()) == ["catalogue", "catalogue", "catalogue", "catalogue", "fetched"]
        assert len(docs.server.asked) == 3
