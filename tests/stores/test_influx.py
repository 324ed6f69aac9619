"""The InfluxDB store with a real server: the contract of every store, and its own guarantees."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.bars import Bars, empty_of, merge, resample
from openbell.market.errors import StoreError, StoreTimeout
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.influx.bars import InfluxBars
from openbell.stores.influx.http import InfluxHttp, pool_bounds
from openbell.stores.influx.store import InfluxStore
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import BarStore, Span
from tests.counts import runs
from tests.stores.contract import BarStoreContract
from tests.stores.influx_server import InfluxServer, own_server
from tests.stores.influx_server import shared as server
from tests.stores.model import assert_same
from tests.stores.native_contract import NativeContract
from tests.stores.samples import (
    DAY,
    EVER,
    FILE,
    LIVE,
    MANY,
    MINUTE,
    NOVEMBER,
    OCTOBER,
    SEPTEMBER,
    bits,
    minutes_of,
    run,
)

WRITES = runs(6, soak=60)


def database_of(folder: Path) -> str:
    return "t" + hashlib.sha1(str(folder).encode()).hexdigest()[:16]


def open_store(folder: Path, **pool: float) -> InfluxStore:
    """The store of a folder, in a database of its own."""
    http = InfluxHttp(server().url, database_of(folder), bounds=pool_bounds(**pool))  # type: ignore[arg-type]
    return InfluxStore(http, folder)


class TestInfluxStore(BarStoreContract):
    @pytest.fixture
    def store(self, folder: Path) -> Iterator[BarStore]:
        store = open_store(folder)
        yield store
        store.close()
        server().query(f'DROP DATABASE "{database_of(folder)}"')

    def open_store(self, folder: Path) -> BarStore:
        return open_store(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "influx"
    server().query(f'DROP DATABASE "{database_of(tmp_path / "influx")}"')


class Outages:
    """Tests with a server of their own that they may kill."""

    @pytest.fixture
    def own(self) -> Iterator[InfluxServer]:
        with own_server() as made:
            yield made


def stored_at(own: InfluxServer, folder: Path, **pool: float) -> InfluxStore:
    return InfluxStore(InfluxHttp(own.url, "bars", bounds=pool_bounds(**pool)), folder)  # type: ignore[arg-type]


class TestOutages(Outages):
    """Outages of the server: no acknowledged bar is lost, and every call ends in time."""

    def test_small_writes_succeed_during_an_outage_and_are_copied_later(
        self, own: InfluxServer, tmp_path: Path
    ) -> None:
        store = stored_at(own, tmp_path)
        store.write([run("AAPL", OCTOBER, 5)], LIVE)
        own.kill()
        store.write([run("AAPL", OCTOBER + 5 * MINUTE, 5)], LIVE, covers=Span(OCTOBER, OCTOBER + 10 * MINUTE))
        assert store.waiting() == 5
        with pytest.raises(StoreError, match="cannot be reached"):
            store.read(minutes_of("AAPL"), 0, EVER)
        assert store.compact(EVER) == 0
        own.start()
        assert_same(store.read(minutes_of("AAPL"), 0, EVER), run("AAPL", OCTOBER, 10))
        store._not_before = 0.0
        assert store.copy()
        assert store.waiting() == 0
        assert store.compact(EVER) == 10
        assert_same(store.read(minutes_of("AAPL"), 0, EVER), run("AAPL", OCTOBER, 10))
        store.close()

    @pytest.mark.parametrize("how", ["kill", "pause"])
    def test_a_large_write_fails_clearly_and_can_be_repeated(self, own: InfluxServer, tmp_path: Path, how: str) -> None:
        store, hasty = stored_at(own, tmp_path), stored_at(own, tmp_path, answer=0.3)
        store.write([run("AAPL", SEPTEMBER, MANY)], LIVE, covers=Span(SEPTEMBER, OCTOBER))
        getattr(own, how)()
        offered = run("AAPL", OCTOBER, MANY)
        with pytest.raises(StoreError):
            hasty.write([offered], LIVE, covers=Span(OCTOBER, NOVEMBER))
        assert store.gaps(minutes_of("AAPL"), Span(OCTOBER, NOVEMBER)) == [Span(OCTOBER, NOVEMBER)]
        own.start() if how == "kill" else own.resume()
        store.write([offered], LIVE, covers=Span(OCTOBER, NOVEMBER))
        assert_same(store.read(minutes_of("AAPL"), OCTOBER, EVER), offered)
        assert store.count(minutes_of("AAPL"), Timeframe.H1, EVER) == 2 * -(-MANY // 60)
        hasty.close()
        store.close()

    def test_a_server_that_does_not_answer_raises_a_timeout(self, own: InfluxServer, tmp_path: Path) -> None:
        store, hasty = stored_at(own, tmp_path), stored_at(own, tmp_path, answer=0.3)
        store.write([run("AAPL", OCTOBER, MANY)], LIVE)
        own.pause()
        began = time.monotonic()
        with pytest.raises(StoreTimeout, match="did not answer in time"):
            hasty.read(minutes_of("AAPL"), 0, EVER)
        hasty.write([run("AAPL", NOVEMBER, 3)], LIVE)
        hasty.write([run("AAPL", NOVEMBER + 3 * MINUTE, 3)], LIVE)
        assert time.monotonic() - began < 5.0, "a second write does not wait for the server again"
        own.resume()
        assert len(store.read(minutes_of("AAPL"), 0, EVER)) == MANY + 6
        hasty.close()
        store.close()

    def test_no_acknowledged_bar_is_lost_when_the_server_is_killed(self, own: InfluxServer, tmp_path: Path) -> None:
        """A writer continues through several kills and restarts of the server."""
        store = stored_at(own, tmp_path, answer=1.0)
        ended = threading.Event()

        def disturb() -> None:
            while not ended.wait(0.15):
                own.kill()
                own.start()

        thread = threading.Thread(target=disturb)
        thread.start()
        acknowledged: list[Bars] = []
        try:
            for number in range(60):
                small = run("BTC/USD", NOVEMBER + number * 3 * MINUTE, 3)
                store.write([small], LIVE)
                acknowledged.append(small)
                if number % 10 == 0:
                    large = run("ETH/USD", SEPTEMBER + number * MANY * MINUTE // 10, MANY)
                    with suppress(StoreError):
                        store.write([large], LIVE)
                        acknowledged.append(large)
        finally:
            ended.set()
            thread.join()
        for symbol in ("BTC/USD", "ETH/USD"):
            expected = merge(
                empty_of(minutes_of(symbol)), *(each for each in acknowledged if each.series.name == symbol)
            )
            found = store.read(minutes_of(symbol), 0, EVER)
            kept = found.take(np.isin(found.time, expected.time))
            assert_same(kept, expected, symbol)
        store.close()

    def test_two_writers_of_one_home_store_the_same_bars(self, own: InfluxServer, tmp_path: Path) -> None:
        stores = [stored_at(own, tmp_path) for _ in range(2)]

        def fill(store: InfluxStore, offset: int) -> None:
            for number in range(offset, 40, 2):
                store.write([run("AAPL", OCTOBER + number * 50 * MINUTE, 50)], LIVE)
                if number % 8 == offset:
                    store.write([run("BTC/USD", OCTOBER + number * 100 * MINUTE, MANY)], LIVE)
                    store.compact(OCTOBER + number * 25 * MINUTE)

        threads = [threading.Thread(target=fill, args=(store, at)) for at, store in enumerate(stores)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in stores:
            assert_same(store.read(minutes_of("AAPL"), 0, EVER), run("AAPL", OCTOBER, 2000))
            for timeframe in (Timeframe.H1, Timeframe.D1):
                minutes = store.read(minutes_of("BTC/USD"), 0, EVER)
                whole = resample(minutes, timeframe, EVER)
                assert bits(store.resampled(minutes_of("BTC/USD"), timeframe, EVER, EVER)) == bits(whole)
            store.close()


class TestInInflux:
    """The content of the database, as other programs see it."""

    def test_candles_are_as_the_contract_names_them(self, folder: Path) -> None:
        store = open_store(folder)
        store.write([run("BTC/USD", OCTOBER, 2)], LIVE)
        answer: Any = server().query('SELECT * FROM "candles"', database_of(folder))
        series = answer["results"][0]["series"][0]
        assert series["columns"] == ["time", "close", "currency_pair", "high", "low", "open", "volume"]
        assert [row[0] for row in series["values"]] == [OCTOBER, OCTOBER + 60]
        assert {row[2] for row in series["values"]} == {"BTC/USD"}
        store.close()

    def test_resampled_bars_have_measurements_of_their_own(self, folder: Path) -> None:
        store = open_store(folder)
        store.write([run("BTC/USD", OCTOBER, MANY)], LIVE)
        store.resampled(minutes_of("BTC/USD"), Timeframe.H2, 5, NOVEMBER)
        answer: Any = server().query("SHOW MEASUREMENTS", database_of(folder))
        names = {row[0] for row in answer["results"][0]["series"][0]["values"]}
        made = {f"candles_{each}" for each in ("m5", "m15", "h1", "h4", "d1", "h2")}
        assert names == {"candles", "openbell_rollups", *made}
        store.close()

    def test_bars_written_by_other_programs_are_read(self, folder: Path) -> None:
        http = InfluxHttp(server().url, database_of(folder))
        others = InfluxBars(http, lambda _: None)
        written = run("BTC/USD", OCTOBER, 3000)
        http.create()
        others.write(written)
        http.write(
            [f"candles,currency_pair=BTC/USD open=1 {OCTOBER - 60}", "candles,currency_pair=odd\\ name close=1 60"]
        )
        store = InfluxStore(InfluxHttp(server().url, database_of(folder)), folder, shared=True)
        assert store.stored() == [minutes_of("BTC/USD")]
        assert_same(store.read(minutes_of("BTC/USD"), 0, EVER), written)
        assert store.count(minutes_of("BTC/USD"), Timeframe.H1, EVER) == 50
        version = store.versions.of(minutes_of("BTC/USD"))
        changed = store.versions.changed_since(minutes_of("BTC/USD"), version)
        assert changed is not None
        assert time.time() - changed >= 7200
        store.close()
        http.close()

    @pytest.mark.parametrize("timeframe", [Timeframe.H1, Timeframe.D1, Timeframe.W1])
    def test_late_minutes_of_other_programs_are_in_the_resampled_bars(self, folder: Path, timeframe: Timeframe) -> None:
        """Late minutes, backfills and corrections, in this process and in the next one."""
        http = InfluxHttp(server().url, database_of(folder))
        others = InfluxBars(http, lambda _: None)
        series = minutes_of("BTC/USD")
        end = OCTOBER + 5 * DAY
        day = run("BTC/USD", OCTOBER, 1440)
        for written in (
            day.take(slice(0, 1439)),
            day,
            run("BTC/USD", OCTOBER + DAY, 3 * 1440),
            run("BTC/USD", OCTOBER, 3, 7),
            run("BTC/USD", OCTOBER - DAY, 60),
        ):
            others.write(written)
            for _ in range(2):
                store = InfluxStore(InfluxHttp(server().url, database_of(folder)), folder, shared=True)
                whole = resample(store.read(series, 0, end), timeframe, end)
                assert bits(store.resampled(series, timeframe, EVER, end)) == bits(whole)
                assert store.count(series, timeframe, end) == len(whole)
                store.close()
        http.close()

    def test_answers_of_another_kind_of_server_are_refused(self, tmp_path: Path) -> None:
        """A proxy or a login page that answers 200 to everything has stored nothing."""
        web = HTTPServer(("127.0.0.1", 0), AlwaysFine)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        store = InfluxStore(InfluxHttp(f"http://127.0.0.1:{web.server_port}", "x"), tmp_path)
        store.write([run("AAPL", OCTOBER, 5)], LIVE)
        assert store.waiting() == 5
        assert store.compact(EVER) == 0
        with pytest.raises(StoreError):
            store.write([run("AAPL", OCTOBER, MANY)], LIVE)
        with pytest.raises(StoreError, match="did not answer like InfluxDB") as caught:
            store.read(minutes_of("AAPL"), 0, EVER)
        assert "\n" not in str(caught.value)
        store.close()
        web.shutdown()
        web.server_close()

    def test_reading_creates_no_database(self, folder: Path) -> None:
        store = open_store(folder)
        assert len(store.read(minutes_of("AAPL"), 0, EVER)) == 0
        assert store.stored() == []
        assert "not there yet" in store.where()
        assert database_of(folder) not in str(server().query("SHOW DATABASES"))
        store.close()

    def test_a_token_that_cannot_be_sent_is_not_quoted(self) -> None:
        http = InfluxHttp(server().url, "x", "tok-SECRET\n")
        with pytest.raises(StoreError, match="OPENBELL_INFLUX_TOKEN") as caught:
            http.rows("SHOW DATABASES")
        assert "SECRET" not in str(caught.value)
        http.close()

    @pytest.mark.parametrize("text", ["'; DROP MEASUREMENT candles; --", "x' OR '1'='1", 'a"b', "a,b=c d", "a\\b"])
    def test_hostile_text_cannot_change_a_query(self, folder: Path, text: str) -> None:
        store = open_store(folder)
        store.write([run("AAPL", OCTOBER, 3)], LIVE)
        hostile = Series(Instrument(text, AssetClass.STOCK))
        bars_ = InfluxBars(store._http, lambda _: None)
        bars_.write(replace(run("AAPL", OCTOBER, 2), instrument=hostile.instrument))
        assert len(bars_.read(hostile, 0, EVER)) == 2
        bars_.delete(hostile, Span(0, NOVEMBER))
        assert len(bars_.read(hostile, 0, EVER)) == 0
        assert len(store.read(minutes_of("AAPL"), 0, EVER)) == 3
        store.close()

    def test_another_source_is_replaced_only_on_demand(self, folder: Path) -> None:
        store = open_store(folder)
        store.write([run("AAPL", OCTOBER, MANY)], LIVE)
        store.write([run("AAPL", OCTOBER + MANY * MINUTE, 5)], LIVE)
        assert store.sources.conflicts(run("AAPL", OCTOBER, 1), FILE) == [f"2025-10 ({LIVE})"]
        live, some = run("AAPL", OCTOBER, MANY + 5), run("AAPL", OCTOBER + 50 * MINUTE, 80, 2)
        assert store.count(minutes_of("AAPL"), Timeframe.H1, EVER) == len(resample(live, Timeframe.H1, EVER))
        store.write([some], FILE, replace=True)
        whole = merge(live, some)
        assert_same(store.read(minutes_of("AAPL"), 0, EVER), whole)
        assert_same(
            store.resampled(minutes_of("AAPL"), Timeframe.H1, 99, EVER), resample(whole, Timeframe.H1, EVER).tail(99)
        )
        assert store.sources.of(minutes_of("AAPL"), Span(OCTOBER, OCTOBER + 60 * MINUTE)) == {FILE, LIVE}
        assert store.sources.of(minutes_of("AAPL"), Span(OCTOBER + 50 * MINUTE, OCTOBER + 60 * MINUTE)) == {FILE}
        all_of_it = run("AAPL", OCTOBER, MANY + 5, 3)
        store.write([all_of_it], replace(FILE, feed="another"), replace=True)
        assert_same(store.read(minutes_of("AAPL"), 0, EVER), all_of_it)
        assert store.sources.of(minutes_of("AAPL"), Span(OCTOBER, NOVEMBER)) == {replace(FILE, feed="another")}
        store.close()

    def test_a_refused_token_says_so_and_is_never_shown(self, folder: Path) -> None:
        class Refusing(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(401)
                self.end_headers()
                self.wfile.write(b'{"error":"authorization failed"}')

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None: ...

        refusing = HTTPServer(("127.0.0.1", 0), Refusing)
        threading.Thread(target=refusing.serve_forever, daemon=True).start()
        http = InfluxHttp(f"http://127.0.0.1:{refusing.server_port}", "x", "very:secret")
        with pytest.raises(StoreError, match="OPENBELL_INFLUX_TOKEN") as caught:
            http.rows("SHOW DATABASES")
        assert "secret" not in str(caught.value)
        http.close()
        refusing.shutdown()
        refusing.server_close()


@settings(deadline=None, max_examples=WRITES)
@given(data=st.data())
def test_parquet_and_influxdb_answer_the_same(data: st.DataObject) -> None:
    """After any writes in any order, for every timeframe, page and end time."""
    with TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        pair: list[BarStore] = [ParquetStore(folder / "files"), open_store(folder / "influx")]
        for store in pair:
            stack.callback(store.close)
        symbol = data.draw(st.sampled_from(["BTC/USD", "AAPL", "EUR/USD"]))
        for version in range(data.draw(st.integers(1, 5))):
            start = OCTOBER + data.draw(st.integers(-3000, 3000)) * MINUTE
            count = data.draw(st.sampled_from([1, 7, 90, MANY]))
            offered = run(symbol, start, count, version)
            offered = offered.take(
                np.random.default_rng(version).random(count) < data.draw(st.sampled_from([0.3, 1.0]))
            )
            for store in pair:
                store.write([offered], LIVE)
            if data.draw(st.booleans()):
                for store in pair:
                    store.compact(start)
        series = minutes_of(symbol)
        assert pair[0].stored() == pair[1].stored()
        for _ in range(8):
            end = OCTOBER + data.draw(st.integers(-4000, 7000)) * MINUTE
            timeframe = data.draw(st.sampled_from(list(Timeframe)))
            count, skip = data.draw(st.integers(1, 200)), data.draw(st.integers(0, 300))
            found = [bits(store.resampled(series, timeframe, count, end, skip)) for store in pair]
            assert found[0] == found[1], (end, timeframe, count, skip)
            totals = [store.count(series, timeframe, end) for store in pair]
            assert totals[0] == totals[1]
        server().query(f'DROP DATABASE "{database_of(folder / "influx")}"')


class AlwaysFine(BaseHTTPRequestHandler):
    """Answers 200 to every request."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>\n<body>Please\nsign in</body></html>")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None: ...


def test_bars_of_a_new_buffer_are_copied_although_its_numbers_begin_again(folder: Path) -> None:
    store = open_store(folder)
    for day in range(5):
        store.write([run("AAPL", SEPTEMBER + day * DAY, 2)], LIVE)
    for path in folder.glob("buffer.sqlite*"):
        path.rename(path.with_name(f"old {path.name}"))
    store.write([run("AAPL", SEPTEMBER + 9 * DAY, 2)], LIVE)
    counted: Any = server().query("SELECT count(close) FROM candles", database_of(folder))
    assert counted["results"][0]["series"][0]["values"][0][1] == 12
    assert store.waiting() == 0
    store.close()


def test_there_are_never_more_connections_than_allowed() -> None:
    open_now, most, guard = 0, 0, threading.Lock()
    full = threading.Event()

    class Counting(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            nonlocal open_now, most
            super().setup()
            with guard:
                open_now += 1
                most = max(most, open_now)
                if open_now >= 5:
                    full.set()

        def finish(self) -> None:
            nonlocal open_now
            super().finish()
            with guard:
                open_now -= 1

        def do_GET(self) -> None:
            full.wait(10)
            body = b'{"results":[{}]}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    counting = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    thread = threading.Thread(target=counting.serve_forever, daemon=True)
    thread.start()
    http = InfluxHttp(f"http://127.0.0.1:{counting.server_port}", "x", bounds=pool_bounds(answer=20, connect=20))
    threads = [threading.Thread(target=http.rows, args=("SHOW DATABASES",)) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    http.close()
    counting.shutdown()
    counting.server_close()
    assert most == 5


class TestNativeSeries(NativeContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        yield tmp_path / "influx"
        server().query(f'DROP DATABASE "{database_of(tmp_path / "influx")}"')

    def open_store(self, folder: Path) -> BarStore:
        return open_store(folder)
