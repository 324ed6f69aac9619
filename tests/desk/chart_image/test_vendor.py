"""The client of the vendor: what it sends, retries, refuses and returns."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from openbell.charts.config.model import KINDS, ConfigAnnotation, ConfigStudy
from openbell.charts.studies.catalogue import all_studies
from openbell.desk.pictures.chart_image.errors import (
    ConfigRefused,
    KeyRefused,
    PlanRefused,
    RateLimited,
    VendorError,
    VendorFailed,
    VendorRefused,
    VendorUnreachable,
)
from openbell.desk.pictures.chart_image.vendor import call_seconds, make_client
from openbell.desk.settings import load
from tests.desk.chart_image.clients import CONFIG, NOON, HandClock, StillClock, client, used
from tests.servers.chart_img_server import (
    CHUNKED,
    KEY,
    ChartImgServer,
    cut,
    hung_up,
    image,
    message,
    picture,
    problem,
)
from tests.servers.quotes_server import forever, reply, silent

BUSY = message(429, "Too Many Requests")
DOWN = reply(503, b"<html>down</html>", "text/html")


def drawn(server: ChartImgServer, home: Path, clock: HandClock, **options: Any) -> Any:
    return used(client(server.url, home, clock, **options), lambda made: made.draw(CONFIG, NOON))


def refusal(server: ChartImgServer, home: Path, clock: HandClock, *plan: Any, **options: Any) -> VendorError:
    server.script.extend(plan)
    with pytest.raises(VendorError) as caught:
        drawn(server, home, clock, **options)
    assert KEY not in f"{caught.value!r} {caught.value.message} {vars(caught.value)}"
    return caught.value


class TestRequests:
    def test_a_picture_is_drawn(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        found = drawn(server, tmp_path, clock)

        assert (found.format, found.status, found.remaining, found.notes) == ("png", 200, 2999, ())
        assert Image.open(BytesIO(found.data)).size == (800, 600)
        (asked,) = server.asked
        assert (asked.method, asked.path) == ("POST", "/v2/tradingview/advanced-chart")
        assert asked.headers["x-api-key"] == KEY
        assert asked.json["range"] == {"from": "2026-03-11T12:00:00.000Z", "to": "2026-03-18T12:00:00.000Z"}

    def test_every_study_and_drawing_is_one_that_the_vendor_accepts(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        studies = tuple(
            ConfigStudy(each, {one.name: one.default for one in each.inputs}) for each in all_studies().values()
        )
        line = ConfigAnnotation(KINDS["Horizontal Line"], {"price": 65_000.0}, {}, 'a "line" \ud800')
        config = replace(CONFIG, studies=studies, drawings=(line,))
        assert used(client(server.url, tmp_path, clock), lambda made: made.draw(config, NOON)).status == 200

    def test_the_format_is_sent_and_jpeg_comes_as_jpeg(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        found = used(client(server.url, tmp_path, clock), lambda made: made.draw(replace(CONFIG, format="jpeg"), NOON))

        assert (found.format, found.notes) == ("jpeg", ())
        assert [each.json["format"] for each in server.asked] == ["jpeg"]

    def test_a_png_that_was_asked_as_jpeg_is_said(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.script.append(image(picture()))
        found = used(client(server.url, tmp_path, clock), lambda made: made.draw(replace(CONFIG, format="jpeg"), NOON))

        assert found.format == "png"
        assert found.notes == ("jpeg was asked for, and the vendor sent png",)

    def test_the_vendors_count_of_what_is_left_is_used_if_it_sends_one(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.script.append(image(picture(), X_RateLimit_Remaining="498"))
        assert drawn(server, tmp_path, clock).remaining == 498
        server.script.append(image(picture(), X_RateLimit_Remaining="-1"))
        assert drawn(server, tmp_path, clock).remaining == 2998

    def test_settings_make_the_client(self, server: ChartImgServer, tmp_path: Path) -> None:
        settings = load(
            {"OPENBELL_HOME": str(tmp_path), "OPENBELL_CHART_IMG_URL": server.url, "OPENBELL_CHART_IMG_PLAN": "pro"}
        )
        assert make_client(settings, {}) is None
        assert make_client(settings, {"CHART_IMG_API_KEY": " "}) is None
        made = make_client(settings, {"CHART_IMG_API_KEY": f"{KEY}\n"})
        assert made is not None
        assert used(made, lambda it: it.draw(CONFIG, NOON)).remaining == 499
        assert call_seconds(settings) == pytest.approx(9.5), "the error must arrive within the timeout of the call"
        assert KEY not in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())

    def test_a_key_that_cannot_be_one_is_not_sent(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        for key in ("a b", "k\u00e9y", "a\r\nx: y", "x" * 501):
            with pytest.raises(KeyRefused):
                drawn(server, tmp_path, clock, key=key)
        assert server.asked == []


class TestRetries:
    def test_retries_fire_on_429_and_5xx(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        for status in (429, 500, 502, 503, 504):
            server.reset()
            clock.waits.clear()
            server.script.extend([reply(status, b"", "text/plain")] * 2)
            assert drawn(server, tmp_path, clock).format == "png", status
            assert len(server.asked) == 3
            assert 0.25 <= clock.waits[0] < 0.5 <= clock.waits[1] < 1.0, "they double, with jitter"

    def test_the_jitter_is_that_of_the_seed(self, server: ChartImgServer, tmp_path: Path) -> None:
        waits = []
        for _ in range(2):
            one = HandClock()
            refusal(server, tmp_path, one, *[DOWN] * 4)
            waits.append(one.waits)
        assert waits[0] == waits[1] and len(set(waits[0])) == 3

    def test_at_most_three_retries(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        server.always = DOWN
        found = refusal(server, tmp_path, clock)

        assert isinstance(found, VendorFailed) and found.status == 503
        assert found.message == "the vendor failed with HTTP 503", "the text of a page says nothing"
        assert len(server.asked) == 4

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 301, 307, 501, 520])
    def test_others_are_not_repeated(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, status: int
    ) -> None:
        server.always = message(status, "no", Location=f"{server.url}/elsewhere")
        assert refusal(server, tmp_path, clock).status == status
        assert (len(server.asked), clock.waits) == (1, [])

    def test_retry_after_is_honoured_within_the_time_limit(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        later = format_datetime(NOON + timedelta(seconds=7), usegmt=True)
        for header, seconds in (("5", 5.0), (later, 7.0), ("0", 0.0)):
            clock.waits.clear()
            clock.passed = 0.0
            server.script.append(message(429, "Too Many Requests", Retry_After=header))
            drawn(server, tmp_path, clock)
            assert clock.waits == [seconds]

    @pytest.mark.parametrize("status", [429, 503])
    def test_a_longer_retry_after_is_an_error_at_once(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, status: int
    ) -> None:
        found = refusal(server, tmp_path, clock, message(status, "Too Many Requests", Retry_After="21"))

        assert (found.retry_after, len(server.asked), clock.waits) == (21, 1, [])

    def test_a_429_has_the_words_and_seconds_of_the_contract(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.always = BUSY
        found = refusal(server, tmp_path, clock)

        assert isinstance(found, RateLimited)
        assert (found.message, found.retry_after) == ("Rate limit exceeded. Try again in 60 seconds.", 60)
        assert len(server.asked) == 4

    def test_a_used_quota_is_not_repeated(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        found = refusal(server, tmp_path, clock, message(429, "Limit Exceeded"))

        assert (len(server.asked), found.retry_after) == (1, 43_200), "until midnight of UTC"
        assert "The vendor says: Limit Exceeded" in found.message
        found = refusal(server, tmp_path, clock, *[message(429, "Rate limit exceeded")] * 4)
        assert found.retry_after == 60

    def test_a_connection_that_ends_is_made_again(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.script.extend([hung_up, cut])
        assert drawn(server, tmp_path, clock).format == "png"
        assert len(server.asked) == 3

    def test_nobody_there_is_said_and_does_not_count(self, tmp_path: Path, clock: HandClock) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        made = client(f"http://127.0.0.1:{port}", tmp_path, clock, plan="BASIC")
        with pytest.raises(VendorUnreachable, match=r"127\.0\.0\.1 cannot be reached"):
            used(made, lambda it: it.draw(CONFIG, NOON))
        assert len(clock.waits) >= 3
        assert '": 0}' in (tmp_path / "chart-image" / "requests.json").read_text()

    def test_a_call_ends_with_its_time_limit(self, server: ChartImgServer, tmp_path: Path) -> None:
        for plan in (silent, forever(CHUNKED, b"1\r\nx\r\n", 0.02)):
            server.reset()
            server.always = plan
            begun = time.monotonic()
            found = refusal(server, tmp_path, HandClock(), limit=0.3)
            assert isinstance(found, VendorUnreachable) and "in time" in found.message
            assert time.monotonic() - begun < 5


class TestResponses:
    def test_a_redirect_is_not_followed(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        found = refusal(server, tmp_path, clock, reply(302, b"", Location=f"{server.url}/v2/elsewhere"))
        assert "redirect" in found.message and "OPENBELL_CHART_IMG_URL" in found.message
        assert len(server.asked) == 1

    def test_a_huge_response_is_cut(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        declared = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 99999999999999999999\r\n\r\n"
        for plan in (declared, forever(CHUNKED, b"100000\r\n" + b"x" * 2**20 + b"\r\n")):
            found = refusal(server, tmp_path, clock, plan)
            assert isinstance(found, VendorFailed) and "more than" in found.message
        assert len(server.asked) == 2

    @pytest.mark.parametrize(
        ("plan", "says"),
        [
            (reply(200, {"message": "Something is wrong"}), "no picture: Something is wrong"),
            (reply(200, {"error": "Something is wrong"}), "no picture: Something is wrong"),
            (reply(200, b"<html>sign in</html>", "text/html"), "no picture but text/html"),
            (reply(200, b"", ""), "no picture but something else"),
            (reply(204, b"", ""), "no picture"),
            (image(b'{"message": "x"}'), "neither PNG nor JPEG"),
            (image(b"GIF89a", "image/gif"), "neither PNG nor JPEG"),
            (image(picture()[:-20]), "only a part"),
            (image(picture(kind="jpeg")[:-2], "image/jpeg"), "only a part"),
            (image(picture(), Content_Encoding="gzip"), "encoded"),
        ],
    )
    def test_what_is_no_picture_is_an_error(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, plan: bytes, says: str
    ) -> None:
        found = refusal(server, tmp_path, clock, plan)
        assert isinstance(found, VendorFailed) and says in found.message
        assert len(server.asked) == 1

    def test_a_bad_key_is_said_in_the_words_of_the_contract(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        said = "Invalid API key. Check CHART_IMG_API_KEY environment variable."
        with pytest.raises(KeyRefused, match=said):
            drawn(server, tmp_path, clock, key="wrong")
        for plan in (message(401, "Missing"), message(403, "Invalid API Key"), reply(403, b"", "text/html")):
            assert refusal(server, tmp_path, clock, plan).message == said

    @pytest.mark.parametrize(
        "words", ["Exceed Max Usage Resolution Limit (800x600)", "Exceed Max Usage Parameter Limit (3)"]
    )
    @pytest.mark.parametrize("field", ["message", "error"])
    def test_a_refusal_of_the_plan_has_the_vendors_words(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, words: str, field: str
    ) -> None:
        found = refusal(server, tmp_path, clock, message(403, words, field))
        assert isinstance(found, PlanRefused) and found.message == words

    def test_another_refusal_has_the_vendors_words(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        found = refusal(server, tmp_path, clock, message(409, "Session conflict"))
        assert isinstance(found, VendorRefused) and "HTTP 409: Session conflict" in found.message
        assert "HTTP 418" in refusal(server, tmp_path, clock, reply(418, {"code": 1})).message

    @pytest.mark.parametrize(
        ("body", "problems"),
        [
            ({"message": "Invalid Symbol"}, [{"field": "symbol", "message": "Invalid Symbol"}]),
            ({"error": "Invalid Interval"}, [{"field": "interval", "message": "Invalid Interval"}]),
            ({"message": "Unknown study"}, [{"field": "studies", "message": "Unknown study"}]),
            ([problem("2x", "interval")], [{"field": "interval", "message": "Invalid value"}]),
            ({"message": [problem(1, "width"), problem(2, "height", "Too small")]}, None),
            ({"errors": [problem(1, "width"), problem(2, "height", "Too small")]}, None),
            ({}, [{"field": "config", "message": "the vendor does not accept it"}]),
            ([None, 5], [{"field": "config", "message": "the vendor does not accept it"}]),
        ],
    )
    def test_a_refused_config_names_its_fields(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, body: object, problems: Any
    ) -> None:
        both = [{"field": "width", "message": "Invalid value"}, {"field": "height", "message": "Too small"}]
        found = refusal(server, tmp_path, clock, reply(422, body))
        assert isinstance(found, ConfigRefused)
        assert (found.message, found.problems, found.status) == ("Invalid configuration", problems or both, 422)

    def test_the_vendors_own_422_is_read(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        config = replace(CONFIG, interval="7x", range=None)
        with pytest.raises(ConfigRefused) as caught:
            used(client(server.url, tmp_path, clock), lambda made: made.draw(config, NOON))
        assert [each["field"] for each in caught.value.problems] == ["interval"]

    @pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"message": NaN}'])
    @pytest.mark.parametrize("status", [400, 403, 409, 422])
    def test_a_refusal_without_a_message_is_still_the_right_error(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, body: bytes, status: int
    ) -> None:
        found = refusal(server, tmp_path, clock, reply(status, body))
        kinds = {400: ConfigRefused, 403: KeyRefused, 409: VendorRefused, 422: ConfigRefused}
        assert type(found) is kinds[status]

    def test_the_vendors_text_is_short_and_printable(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        text = "a\x00\x1b[31mred\n\u202e" + "x" * 5000
        found = refusal(server, tmp_path, clock, message(409, text))
        assert found.message.isprintable() and len(found.message) < 400
        found = refusal(server, tmp_path, clock, reply(422, [problem(1, text, text)] * 500))
        assert isinstance(found, ConfigRefused) and len(found.problems) == 20
        assert all(len(value) <= 300 and value.isprintable() for each in found.problems for value in each.values())

    def test_an_echoed_key_is_nowhere(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        for library in ("httpx2", "httpcore2"):  # as the command line sets them
            caplog.set_level(logging.WARNING, library)
        caplog.set_level(logging.DEBUG)
        echo = f"bad key {KEY} ({KEY.upper()})"
        for plan in (
            message(409, echo, X_Key=KEY),
            message(403, f"limit of {echo}"),
            message(422, [problem(KEY, KEY, echo)]),
            message(429, f"Limit Exceeded {echo}"),
            reply(409, echo.encode(), "text/plain"),
            reply(200, {"message": echo}),
            image(b"", KEY),
            reply(302, b"", Location=f"https://x.example/{KEY}"),
            *(message(409, blank * count + KEY) for blank in " y" for count in (0, 280, 295, 3980, 3990, 3999)),
        ):
            found = refusal(server, tmp_path, clock, plan)
            assert KEY.upper()[:8] not in found.message.upper()
        stored = [{"url": f"https://x.example/{KEY}.png"}, {"url": "https://x.example/1.png", "etag": KEY}]
        server.script.extend(reply(200, each) for each in stored)
        with pytest.raises(VendorFailed):
            used(client(server.url, tmp_path, clock), lambda made: made.store(CONFIG, NOON))
        assert used(client(server.url, tmp_path, clock), lambda made: made.store(CONFIG, NOON)).etag == "[key]"
        assert KEY not in caplog.text and "HTTP 409" in caplog.text


class TestStorage:
    def stored(self, server: ChartImgServer, home: Path, clock: HandClock, **options: Any) -> Any:
        return used(client(server.url, home, clock, **options), lambda made: made.store(CONFIG, NOON))

    @pytest.mark.parametrize(
        "fields",
        [
            {"expire": "2026-04-01T00:00:00.000Z"},
            {"expire": "2026-04-01T02:00:00+02:00"},
            {"expireAt": "2026-04-01T00:00:00Z"},
            {"expire": 1_775_001_600},
            {"expire": 1_775_001_600_000},
            {"expire": "1775001600"},
            {"expireAt": 1_775_001_600_000.0, "expire": "2020-01-01T00:00:00Z"},
        ],
    )
    def test_the_vendors_expiry_is_read_in_every_form(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, fields: dict[str, Any]
    ) -> None:
        server.stored = {**fields, "size": 4242, "createdAt": "2026-03-18T12:00:00Z"}
        found = self.stored(server, tmp_path, clock)

        assert found.expires_at == datetime(2026, 4, 1, tzinfo=UTC)
        assert (found.created_at, found.size, found.etag) == (NOON, 4242, "e7a9")
        assert found.url.startswith("https://r2.chart-img.com/") and found.format == "png"
        assert server.asked[-1].path == "/v2/tradingview/advanced-chart/storage"

    @pytest.mark.parametrize(
        "expire", [None, "soon", 0, -1, True, 1e300, "1e999", [], "9999-12-31T23:59:59-23:59", 10**400]
    )
    def test_without_an_expiry_it_is_the_plans(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, expire: Any
    ) -> None:
        server.stored = {"expire": expire, "size": "big", "createdAt": expire, "etag": 5}
        found = self.stored(server, tmp_path, clock, plan="PRO")
        assert (found.expires_at, found.size, found.etag) == (NOON + timedelta(days=30), None, None)

    @pytest.mark.parametrize(
        "url",
        [
            *(
                "http://r2.chart-img.com/1.png",
                "ftp://x/1.png",
                "javascript:alert(1)",
                "//x.example/1.png",
                "",
                "https://",
            ),
            *(
                "https://user:word@x.example/1.png",
                "https://x.example/a b.png",
                "https://x.example/\u202e",
                "https://[::1/x",
            ),
            *("http://127.0.0.1:1/1.png", "http://localhost/1.png", "https://x.example/" + "x" * 3000, 5, None),
        ],
    )
    def test_an_address_that_is_not_safe_is_refused(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, url: Any
    ) -> None:
        server.script.append(reply(200, {"url": url}))
        with pytest.raises(VendorFailed, match="address"):
            self.stored(server, tmp_path, clock)

    def test_a_service_on_this_machine_may_name_itself(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.stored = {"url": f"{server.url}/images/1.jpg"}
        found = self.stored(server, tmp_path, clock)
        assert (found.url, found.format) == (f"{server.url}/images/1.jpg", "jpeg")


class TestPlan:
    def test_requests_stay_below_rate_and_burst(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        made = client(server.url, tmp_path, clock, plan="BASIC")
        sent: list[float] = []

        async def several(it: Any) -> None:
            for _ in range(8):
                await it.exchanges()
                sent.append(clock.passed)

        used(made, several)
        assert all(sum(at <= each < at + 1 for each in sent) <= 3 for at in sent), "no more than the burst in a second"
        assert sent[-1] > 5, "then one a second"

    def test_concurrent_calls_share_the_rate(self, server: ChartImgServer, tmp_path: Path) -> None:
        clock = StillClock()
        made = client(server.url, tmp_path, clock, plan="BASIC", limit=4.0)

        async def at_once(it: Any) -> list[Any]:
            return await asyncio.gather(*(it.exchanges() for _ in range(12)), return_exceptions=True)

        found = used(made, at_once)
        refused = [each for each in found if isinstance(each, RateLimited)]
        assert (len(server.asked), len(refused)) == (5, 7)
        assert sorted(clock.waits) == pytest.approx([1 / 0.9, 2 / 0.9, 3 / 0.9]), (
            "two at once, then one after the other"
        )
        assert {each.retry_after for each in refused} == {5}

    def test_the_51st_request_of_a_basic_day_is_refused_here(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        async def fifty(it: Any) -> None:
            for _ in range(50):
                await it.exchanges()

        used(client(server.url, tmp_path, clock, plan="BASIC"), fifty)
        clock.passed = 3600.0
        found = refusal(server, tmp_path, clock, plan="BASIC")

        assert isinstance(found, RateLimited) and len(server.asked) == 50
        assert found.retry_after == 43_200 - 3600
        assert found.message.startswith("Rate limit exceeded. Try again in 39600 seconds. The 50 requests")
        clock.passed = 43_200.0
        assert drawn(server, tmp_path, clock, plan="BASIC").remaining == 49, "a new day"

    def test_a_retry_counts(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        server.script.extend([BUSY, DOWN])
        assert drawn(server, tmp_path, clock, plan="PRO").remaining == 497


class TestLists:
    @pytest.mark.parametrize("contract", [False, True])
    def test_the_real_path_and_then_that_of_the_contract(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, contract: bool
    ) -> None:
        server.contract_paths = contract
        server.symbols["BINANCE"] = {"payload": [{"symbol": "BTCUSDT"}]}
        exchanges = used(client(server.url, tmp_path, clock), lambda it: it.exchanges())
        (symbol,) = used(client(server.url, tmp_path, clock), lambda it: it.symbols("BINANCE"))
        assert [each.id for each in exchanges] == ["BINANCE", "FX", "NASDAQ"]
        assert symbol.full_symbol == "BINANCE:BTCUSDT"
        assert len(server.asked) == (4 if contract else 2)

    @pytest.mark.parametrize(
        "body", [["A"], {"payload": ["A"]}, {"exchanges": ["A"]}, {"data": ["A"], "payload": None}]
    )
    def test_every_form_of_a_list(self, server: ChartImgServer, tmp_path: Path, clock: HandClock, body: object) -> None:
        server.exchanges = body
        assert [each.id for each in used(client(server.url, tmp_path, clock), lambda it: it.exchanges())] == ["A"]

    @pytest.mark.parametrize("body", [{"message": "no"}, 5, None, "x", {"payload": {}}, [5, None, {}, [], "a b"]])
    def test_what_is_no_list_is_an_error(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, body: object
    ) -> None:
        server.exchanges = body
        with pytest.raises(VendorFailed, match=r"no list of exchanges|cannot be read"):
            used(client(server.url, tmp_path, clock), lambda it: it.exchanges())

    def test_a_name_cannot_change_the_path(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        with pytest.raises(VendorRefused):
            used(client(server.url, tmp_path, clock), lambda it: it.symbols("../../v2/x?a=b#c"))
        assert server.asked[0].path == "/v3/tradingview/exchange/..%2F..%2Fv2%2Fx%3Fa%3Db%23c"
